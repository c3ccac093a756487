"""What a sweep executes: every unit, and of starts that came home their servers' commands."""

import dataclasses

from orchestrator.config import Config
from orchestrator.report.explain_text import explain_json, explain_text
from orchestrator.sweep.file import from_table
from orchestrator.sweep.plan import Circumstances, plan
from orchestrator.sweeping import planning
from remote_payload.schema import to_json
from tests.support.made_bench import made_server
from tests.support.made_runs import made_run


def test_a_start_that_came_home_has_its_servers_command() -> None:
    file = from_table(
        {"job": "bench", "base": {"model": "/m", "draft": "/d", "eagle_topk": 1}, "grid": {"num_steps": [1, 2]}}, "s"
    )
    wanted = planning.wanted(file, {}, Config(), "gpu1")
    job = plan(file, wanted.base, wanted.expanded, Circumstances(payload_sha256="a" * 64))
    run = made_run("night")
    record = dataclasses.replace(run, spec=dataclasses.replace(run.spec, job_json=to_json(job), job_kind="sweep"))
    server = made_server(argv=("python", "-m", "sglang.launch_server", "--port", "3000"))

    text = explain_text(record, job, {"night.u0001.0": (server,)}, 100)
    assert "night.u0001.0 started: python -m sglang.launch_server --port 3000" in text
    assert "server commands stand here once it is at home" in text  # of the other two
    told = explain_json(record, job, {"night.u0001.0": (server,)})
    assert [[*unit["servers"]] for unit in told["units"]] == [[], ["night.u0001.0"], []]
    whole = {f"night.{unit.unit_id}.0": (server,) for unit in job.units}
    assert "once it is at home" not in explain_text(record, job, whole, 100)
