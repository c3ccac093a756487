"""What records name goes, whatever it is called; numbers, choices of ours and ordinary words stay."""

import dataclasses

import pytest

from orchestrator.config import HostConfig
from orchestrator.records import RunHost
from orchestrator.report.private_names import private_in
from orchestrator.report.redaction import Redaction
from remote_payload.schema import BenchJob, to_json
from remote_payload.schema.slurm import SlurmSettings
from tests.support.made_runs import made_run

JOB = BenchJob(
    model="acme-corp/secret-7b",
    draft="secret-eagle",
    prompts="acme/asked.jsonl",
    heldout_prompts="~/acme held out.jsonl",
    server_args=(
        "--served-model-name=sunrise", "--lora-paths", "tuned=acme/lora", "--attention-backend", "triton",
        "--json-model-override-args", '{"name": "moonset", "layers": 3}', "--page-size", "16", "--trust-remote-code",
    ),
    server_environment=("ACME_CACHE=warehouse", "SGLANG_LOG=1"),
    exec_prefix=("docker", "exec", "-i", "acmebox"),
    server_python="envs/acme/bin/python",
    api_key_env="ACME_KEY",
    algorithm="EAGLE3",
    dtype="float32",
)  # fmt: skip
TABLE = HostConfig(
    ssh="eve@login7.acme.example:2222",
    python="~/venv/bin/python",
    environment={"TEAM": "blueteam", "OMP_NUM_THREADS": "4"},
    notify_command=("~/bin/tell", "eve-phone"),
    secrets=("ACME_HF",),
    scheduler="slurm",
    slurm=SlurmSettings(partition="acmepart", account="grant42", options=("--constraint=bigbox",)),
)


def told(text: str) -> str:
    """The text without what the job, the host's table and one run name."""
    run = made_run()
    spec = dataclasses.replace(run.spec, job_kind="bench", job_json=to_json(JOB), launched_by="mallory@desk9")
    run = dataclasses.replace(run, spec=spec, host=RunHost(name="h1", destination="eve@10.1.2.3:22"))
    return Redaction(private=private_in(TABLE, {"host": "h1"}, run, None)).text(text)


@pytest.mark.parametrize(
    "name",
    [
        "acme-corp/secret-7b", "secret-7b", "secret-eagle", "acme/asked.jsonl", "asked.jsonl", "~/acme held out.jsonl",
        "acme held out.jsonl", "sunrise", "acme/lora", "moonset", "ACME_CACHE", "warehouse", "acmebox",
        "envs/acme/bin/python", "ACME_KEY", "login7.acme.example", "login7", "eve", "blueteam", "eve-phone", "ACME_HF",
        "acmepart", "grant42", "bigbox", "mallory", "desk9", "h1", "10.1.2.3",
    ],
)  # fmt: skip
def test_whatever_a_record_names_goes(name: str) -> None:
    for text in (f"see {name}, then", f"--flag {name}", f"({name})"):
        assert name not in told(text), told(text)


@pytest.mark.parametrize(
    "text",
    [
        "the drafter is fed 3 states, EAGLE3 in float32 on triton with page size 16",
        "--server-arg --attention-backend --json-model-override-args --served-model-name --trust-remote-code",
        "eagle3-remote run bench, docker exec, OMP_NUM_THREADS and SGLANG_LOG; prompts: bundled",
    ],
)
def test_what_tells_nothing_of_anybody_stays(text: str) -> None:
    assert told(text) == text


def test_a_setting_that_nobody_thought_of_is_private() -> None:
    @dataclasses.dataclass(frozen=True, kw_only=True)
    class Tomorrow:
        newer: str
        many: tuple[str, ...]

    private = private_in(Tomorrow(newer="nightfall", many=("/x/dawn.v2", "daybreak")))
    assert (private.names, private.paths) == (["dawn.v2", "daybreak", "nightfall"], ["/x/dawn.v2"])
