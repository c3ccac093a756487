"""What a run left whose supervisor is gone: described for whoever collects it, once nothing of it runs."""

import contextlib
import os

from remote_payload import heartbeat, leftovers
from remote_payload.manifest import write_manifest
from remote_payload.rundir import RunDir
from remote_payload.runstate import advance
from remote_payload.schema import RunState


def settle_lost(run: RunDir, state: RunState) -> RunState:
    """Write the manifest of a `lost` run that has none, once nothing of it lives; the state then says what it left.

    Anything else leaves the state as it is: files that are still written to, a run of another host (whose processes
    cannot be seen from here), an empty result, a disk that refuses.
    """
    if state.phase != "lost" or os.path.lexists(run.manifest) or not _has_files(run) or not _is_over(run):
        return state
    with contextlib.suppress(OSError):
        files = len(write_manifest(run).files)
        return advance(run, state, note=f"nothing of it runs any more; it left {files} result file{'s'[: files != 1]}")
    return state


def _has_files(run: RunDir) -> bool:
    if run.result.is_symlink():  # what it leads to is not this run's
        return False
    return any(names for _, _, names in os.walk(run.result))


def _is_over(run: RunDir) -> bool:
    beat = heartbeat.read_beat(run.heartbeat)
    is_elsewhere = beat is not None and beat.host != os.uname().nodename
    return not is_elsewhere and not leftovers.alive(run)
