import dataclasses
import os
import socket
import subprocess
from pathlib import Path
from typing import Any

import pytest

from remote_payload import processes
from remote_payload.failure import JobFailure
from remote_payload.schema.bench_job import BenchJob
from remote_payload.sglang_bench import leftovers
from remote_payload.sglang_bench.attached import attach
from remote_payload.sglang_bench.starting import start
from tests.payload.sglang_bench.conftest import Site
from tests.support.patience import PATIENCE_S, Within, wait_for

OVERRIDE: dict[str, Any] = {"num_steps": 1, "eagle_topk": 1, "num_draft_tokens": 16}


def failure_of(site: Site, job: BenchJob, but: int | None = None) -> JobFailure:
    with pytest.raises(JobFailure) as caught:
        site.start(job)
    left = [pid for pid in processes.descendants(os.getpid()) if "stand_in" in command(pid) and pid != but]
    assert left == []
    return caught.value


def command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/environ").read_bytes().decode() + Path(f"/proc/{pid}/cmdline").read_bytes().decode()
    except OSError:
        return ""


def test_a_server_is_ready_asked_and_stopped(site: Site) -> None:
    running = site.start(site.job({"starting_s": 1.0}, **OVERRIDE))
    facts = running.facts
    assert facts.pid is not None
    assert processes.is_alive(facts.pid)
    assert facts.ready_s is not None
    assert facts.ready_s > 1.0
    assert {phase.name for phase in facts.phases} == {"imports", "weights", "cache", "warm-up"}
    assert sum(phase.seconds for phase in facts.phases) == pytest.approx(facts.ready_s, abs=0.2)
    assert [name for name in site.named("phase") if name != "other_server"][:3] == ["imports", "weights", "cache"]
    assert (facts.model_class, facts.draft_class) == ("LlamaForCausalLM", "LlamaForCausalLMEagle3")
    assert "draft_tokens_adjusted" in {line.rule for line in facts.lines}
    told = {fact.name: fact for fact in facts.arguments}
    assert (told["speculative_num_draft_tokens"].requested, told["speculative_num_draft_tokens"].effective) == (
        "16",
        "2",
    )
    assert told["draft_class"].effective == '"LlamaForCausalLMEagle3"'
    running.check()
    stopped = running.stop()
    assert (stopped.stopped, stopped.survivors, stopped.gpu_memory_left_bytes) == ("term", (), None)
    assert not processes.is_alive(facts.pid)
    assert running.stop() is stopped
    assert "Load weight end" in site.log


def test_the_plain_side_is_the_same_server_without_speculation(site: Site) -> None:
    job = site.job(server_args=("--speculative-attention-mode", "decode", "--enable-metrics"), **OVERRIDE)
    running = site.start(job, "plain")
    assert not [word for word in running.facts.argv if "speculative" in word]
    assert "--enable-metrics" in running.facts.argv
    assert not [fact for fact in running.facts.arguments if fact.name == "draft_class"]


def test_a_slow_health_endpoint_is_waited_for(site: Site) -> None:
    running = site.start(site.job({"health_s": 2.0}))
    assert running.facts.ready_s is not None
    assert running.facts.ready_s > 2.0


def test_a_server_that_ignores_term_is_killed_with_its_children(site: Site) -> None:
    running = site.start(site.job({"ignores_term": True, "child": True}))
    tree = [pid for pid in processes.descendants(os.getpid()) if "stand_in" in command(pid)]
    assert len(tree) == 2  # the server and its scheduler; the guard itself has our environment
    stopped = running.stop()
    assert (stopped.stopped, stopped.survivors) == ("kill", ())
    assert [pid for pid in tree if processes.is_alive(pid)] == []


def test_a_scheduler_that_outlives_its_server_is_ended_too(site: Site) -> None:
    running = site.start(site.job({"child": True}))
    schedulers = [one.pid for one in leftovers.find_leftovers() if one.title.startswith("sglang::scheduler")]
    ours = [pid for pid in schedulers if pid in processes.descendants(os.getpid())]
    assert len(ours) == 1
    assert running.stop().stopped == "term"
    assert not processes.is_alive(ours[0])


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("OSError: Repo id must be in the form 'repo_name' or 'namespace/repo_name': '/nowhere'.", "hub_lookup"),
        ("sglang serve: error: unrecognized arguments: --no-such-flag", "bad_flag"),
        ("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.", "out_of_memory"),
        ("RuntimeError: mat1 and mat2 shapes cannot be multiplied (24x128 and 192x64)", "aux_states"),
    ],
)
def test_a_death_at_start_is_noticed_at_once_and_named(site: Site, text: str, name: str) -> None:
    with Within(PATIENCE_S):
        failure = failure_of(site, site.job({"dies": [text, 1]}, ready_timeout_s=2 * PATIENCE_S)).failure
    assert failure.kind == "server"
    assert f"({name})" in failure.message
    assert "exit code 1" in failure.message
    assert failure.details[0] == text
    assert failure.hint


def test_a_server_that_never_listens_is_given_up(site: Site) -> None:
    failure = failure_of(site, site.job({"hangs": True}, ready_timeout_s=1.5)).failure
    assert "not ready after 1.5 s" in failure.message
    assert "phase `warm-up`" in failure.message
    assert any(line.endswith('"POST /freeze_gc HTTP/1.1" 200 OK') for line in failure.details)


def test_a_port_that_is_taken_is_told_before_anything_starts(site: Site) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        failure = failure_of(site, site.job(port=other.getsockname()[1])).failure
    assert "(port_taken)" in failure.message
    assert site.named("phase") == []


@pytest.mark.parametrize("prefix", [(), ("unshare", "--pid", "--fork", "--mount", "--mount-proc")])
def test_the_line_fired_up_is_not_believed(
    site: Site, monkeypatch: pytest.MonkeyPatch, prefix: tuple[str, ...]
) -> None:
    """The port is taken while the server loads, by one that serves the same model and so answers its warm-up."""
    if prefix and subprocess.run([*prefix, "true"], capture_output=True, check=False).returncode != 0:
        pytest.skip("cannot enter another namespace here")
    other = site.start(site.job())
    port = int(other.url.rpartition(":")[2])
    monkeypatch.setattr("remote_payload.sglang_bench.ports.is_free", lambda _port: True)
    failure = failure_of(site, site.job({"lingers_s": 3.0}, port=port, exec_prefix=prefix), other.facts.pid).failure
    assert "(port_taken)" in failure.message
    other.check()


def test_where_proc_tells_nothing_the_log_must(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """As behind `docker exec`: our server is not below us. Its log says that it could not take the port."""
    other = site.start(site.job())
    port = int(other.url.rpartition(":")[2])
    monkeypatch.setattr("remote_payload.sglang_bench.ports.is_free", lambda _port: True)
    monkeypatch.setattr("remote_payload.sglang_bench.ports.listeners", lambda _port, _pids: None)
    silent = site.result / "silent.log"
    silent.write_text("")
    failure = failure_of(site, site.job({"lingers_s": 3.0, "log": str(silent)}, port=port), other.facts.pid).failure
    assert "address already in use" in failure.message


def test_a_missing_interpreter_is_named(site: Site) -> None:
    failure = failure_of(site, site.job(server_python="/nowhere/python")).failure
    assert failure.message.endswith("No such file or directory: /nowhere/python")


def test_a_python_without_sglang_is_named(site: Site) -> None:
    failure = failure_of(site, site.job(server_environment=("PYTHONPATH=",))).failure
    assert "(no_sglang)" in failure.message


def test_a_server_that_dies_later_is_told(site: Site) -> None:
    running = site.start(site.job({"lives_s": 1.5}))
    wait_for(lambda: running.has_died, "the server's death")
    with pytest.raises(JobFailure, match="it was ended by signal 9"):
        running.check()
    assert running.stop().stopped == "died"


def test_secrets_stand_in_no_log_and_no_fact(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BENCH_KEY", "sk-very-secret")
    noise = {"dies": ["hello sk-very-secret", 0]}
    with pytest.raises(JobFailure) as caught:
        site.start(site.job(noise, api_key_env="BENCH_KEY"))
    assert "sk-very-secret" not in site.log + repr(caught.value.failure)
    assert "hello <redacted>" in site.log
    job = site.job({"key": "sk-other", "changes": {"api_key": "sk-other"}}, server_args=("--api-key", "sk-other"))
    running = site.start(job)
    assert running.key == "sk-other"
    assert "sk-other" not in repr(running.facts)
    assert {fact.name: fact.effective for fact in running.facts.arguments}["api_key"] == '"<redacted>"'


def test_attaching_starts_and_stops_nothing(site: Site) -> None:
    ours = site.start(site.job(more_environment=("SGLANG_SIMULATE_ACC_LEN=3",), **OVERRIDE))
    found = attach(BenchJob(attach_url=ours.url + "/"), site.events.append)
    told = {fact.name: fact for fact in found.facts.arguments}
    assert found.facts.attached
    assert found.facts.side == "spec"
    assert (told["speculative_num_draft_tokens"].requested, told["speculative_num_draft_tokens"].effective) == (
        "16",
        "2",
    )
    assert told["SGLANG_SIMULATE_ACC_LEN"].effective == '"3"'
    assert found.stop().stopped == "left"
    found.check()
    ours.check()


def test_an_old_server_does_not_tell_what_it_was_asked_for_but_the_job_does(site: Site) -> None:
    ours = site.start(site.job({"changes": {"launch_command": None}}))
    found = attach(BenchJob(attach_url=ours.url, draft="/models/draft", **OVERRIDE), site.events.append)
    tokens = {fact.name: fact for fact in found.facts.arguments}["speculative_num_draft_tokens"]
    assert (tokens.requested, tokens.effective) == ("16", "2")


def test_an_attached_server_is_held_against_what_the_job_asks(site: Site) -> None:
    """It was launched with other flags: what is asked here is what this run is about."""
    ours = site.start(site.job(num_steps=3, eagle_topk=1, num_draft_tokens=4, dtype="bfloat16"))
    asked = BenchJob(attach_url=ours.url, num_draft_tokens=16, dtype="float32", server_args=("--page-size", "64"))
    told = {fact.name: fact for fact in attach(asked, site.events.append).facts.arguments}
    assert told["speculative_num_draft_tokens"].requested == "16"
    assert (told["dtype"].requested, told["page_size"].requested) == ('"float32"', "64")
    assert told["speculative_num_steps"].requested == "3"  # where the job is silent, its launch speaks


def test_attaching_by_a_path_of_ones_home(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/somebody")
    ours = site.start(site.job({"model": "/home/somebody/target"}, model="/home/somebody/target"))
    assert attach(BenchJob(attach_url=ours.url, model="~/target"), site.events.append).facts.attached


def test_attaching_to_another_model_is_refused(site: Site) -> None:
    ours = site.start(site.job())
    with pytest.raises(JobFailure, match="serves another model: models/target"):
        attach(BenchJob(attach_url=ours.url, model="/models/other"), site.events.append)


def test_attaching_with_the_wrong_key_is_refused_at_once(site: Site) -> None:
    ours = site.start(site.job({"key": "k-right"}, server_args=("--api-key", "k-right")))
    with Within(), pytest.raises(JobFailure, match="the server wants another API key"):
        attach(BenchJob(attach_url=ours.url), site.events.append)


def test_an_old_server_info_is_found(site: Site) -> None:
    running = site.start(site.job({"info_path": "/get_server_info"}))
    assert running.facts.server_info is not None


def test_an_older_server_is_found_and_named(site: Site) -> None:
    site.start(site.job({"child": True}))
    site.start(site.job())
    warning = next(event.message for event in reversed(site.events) if event.name == "other_server")
    assert f"sglang.launch_server (pid {site.running[0].facts.pid}, " in warning
    assert "started by run run)" in warning
    assert "sglang::scheduler" in warning
    assert "`eagle3-remote cancel run` " in warning
    assert "left of ended runs" in warning


def test_a_job_without_a_model_starts_nothing(site: Site) -> None:
    job = dataclasses.replace(BenchJob(attach_url="http://x"), model=None)
    with pytest.raises(JobFailure, match="`model` must name"):
        start(job, "spec", 0, site.result, site.events.append)
