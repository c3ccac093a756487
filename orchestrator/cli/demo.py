"""`eagle3-remote demo`: the story, told on this machine."""

import os
import sys
import tempfile
import time
from pathlib import Path

import click

from orchestrator.cli.ending import end
from orchestrator.cli.live import watching
from orchestrator.cli.options import json_option


@click.command()
@json_option
def demo(*, as_json: bool) -> None:
    """Tell the story on this machine: a drafter that is slow because serving feeds it the wrong states.

    An embedded SSH server on loopback plays the GPU host; everything else is the path of a real run. Nothing is
    installed, nothing outside a temporary folder is written.
    """
    from orchestrator import jobfile, pipeline
    from orchestrator.config import Config, HostConfig
    from orchestrator.demo.stage import stage
    from orchestrator.store import Store

    # Whatever the host's side still writes there must not end a story that was told.
    place = tempfile.TemporaryDirectory(prefix="eagle3-demo-", ignore_cleanup_errors=True)
    with place as folder, stage(Path(folder) / "host") as scene:
        os.environ["EAGLE3_REMOTE_SSH_CONFIG"] = str(scene.ssh_config)
        settings = Config(hosts={scene.host: HostConfig(ssh=scene.host, python=sys.executable)})
        order = pipeline.Order(
            planned=jobfile.plan("standalone", Config(), None, scene.settings),
            run_id=pipeline.new_run_id("demo", time.gmtime()),
        )
        store = Store(Path(folder) / "laptop")
        with watching(as_json=as_json) as tell, pipeline.session(scene.host, settings, tell, accept_new=False) as host:
            record = pipeline.run(order, host, store, tell)
        end(record, store, as_json=as_json, kept=False)
