"""Which of a host's interpreters runs which job."""

import pytest

from orchestrator.config import HostConfig
from orchestrator.errors import HostNotReadyError
from orchestrator.pipeline import _needed, _note_key
from orchestrator.remote.preflight import DRAFTER_PACKAGES, SERVER_PACKAGES, choose_python
from remote_payload.schema import BenchJob, HostFacts, PythonFacts, SelftestJob, StandaloneJob

SERVING = PythonFacts(path="/venvs/sglang/bin/python", version="3.12.1", torch="2.9.0", sglang="0.5.23")
TRAINING = PythonFacts(path="/venvs/train/bin/python", version="3.11.7", torch="2.13.0", safetensors="0.6.2")
OLD = PythonFacts(path="/usr/bin/python3", version="3.8.10", problem="older than Python 3.10", sglang="0.4.0")


def host(*pythons: PythonFacts) -> HostFacts:
    return HostFacts(
        hostname="gpu1",
        user="me",
        system="Linux",
        time_unix_s=0.0,
        root="/r",
        root_writable=True,
        pythons=pythons,
        gpu_answer="no_nvidia_smi",
    )


def test_each_kind_of_job_gets_the_first_interpreter_that_has_what_it_needs() -> None:
    facts, config = host(OLD, TRAINING, SERVING), HostConfig(ssh="gpu1")
    assert choose_python(facts, config, "gpu1") == TRAINING
    assert choose_python(facts, config, "gpu1", SERVER_PACKAGES) == SERVING


def test_a_host_without_sglang_says_what_was_looked_at() -> None:
    with pytest.raises(HostNotReadyError) as caught:
        choose_python(host(OLD, TRAINING), HostConfig(ssh="gpu1"), "gpu1", SERVER_PACKAGES)
    assert str(caught.value) == (
        "host `gpu1`: expected a Python >= 3.10 with sglang, found: /usr/bin/python3: older than Python 3.10; "
        "/venvs/train/bin/python: Python 3.11.7 without sglang"
    )
    assert "SGLang environment" in (caught.value.hint or "")


def test_a_benchmark_needs_sglang_only_where_it_starts_the_server_with_its_own_python() -> None:
    assert _needed(BenchJob(model="m")) == SERVER_PACKAGES
    assert _needed(StandaloneJob(draft="d", rows="r")) == DRAFTER_PACKAGES
    assert _needed(SelftestJob()) == ()
    elsewhere = (
        BenchJob(attach_url="http://127.0.0.1:30000"),
        BenchJob(model="m", exec_prefix=("docker", "exec", "-i", "sglang")),
        BenchJob(model="m", server_python="/venvs/sglang/bin/python"),
    )
    assert {_needed(job) for job in elsewhere} == {()}
    assert {_note_key(job) for job in elsewhere} == {"bench elsewhere"}  # its Python may lack SGLang
    assert _note_key(BenchJob(model="m")) == "bench"
    assert _note_key(SelftestJob()) == "selftest"


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("gpu-1", "under [hosts.gpu-1] in eagle3.toml"),
        ("me@box:2222", 'under [hosts.NAME] with `ssh = "me@box:2222"` in eagle3.toml, and give --host NAME'),
    ],
)
def test_the_hint_is_a_table_that_toml_takes(name: str, told: str) -> None:
    with pytest.raises(HostNotReadyError) as caught:
        choose_python(host(OLD), HostConfig(ssh=name), name)
    assert (caught.value.hint or "").endswith(told)
