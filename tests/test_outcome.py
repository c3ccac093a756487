"""What the end of a run is called, and what to try."""

import dataclasses

import pytest

from orchestrator.errors import JobError, RowsError
from orchestrator.outcome import cause_of, error_of
from orchestrator.report.head import head
from remote_payload.schema import Failure, RunState
from remote_payload.schema.run import RunPhase
from tests.support.made_runs import made_run


def ended(phase: RunPhase, kind: str, failure: Failure | None = None) -> JobError:
    state = RunState(run_id="run-a", sequence=9, phase=phase, exit_code=1, failure=failure)
    error = error_of(state, job_kind=kind, host="gpu1")
    assert isinstance(error, JobError)
    return error


def test_a_served_benchmark_that_fails_speaks_of_flags_and_its_details_say_where_a_log_is() -> None:
    failure = Failure(
        kind="server",
        message="the server failed: `num_steps` is given without `eagle_topk`",
        hint="give all three of `num_steps`, `eagle_topk` and `num_draft_tokens`, check the host's `exec_prefix`",
        details=("a line of its `log`",),
    )
    error = ended("failed", "bench", failure)
    assert error.message == (
        "the server failed: `--num-steps` is given without `--eagle-topk`\n  - a line of its `log`"
    )
    assert error.hint == (
        "give all three of `--num-steps`, `--eagle-topk` and `--num-draft-tokens`, check the host's `exec_prefix`"
    )
    assert error.exit_code == 20


def test_a_value_beside_a_setting_goes_along() -> None:
    hint = "choose another backend in `server_args`, or `eagle_topk = 1`"
    error = ended("failed", "bench", Failure(kind="job", message="no", hint=hint))
    assert error.hint == "choose another backend in `--server-arg`, or `--eagle-topk 1`"


def test_prompts_that_cannot_be_used_need_no_log() -> None:
    error = ended("failed", "bench", Failure(kind="rows", message="line 3: expected JSON"))
    assert isinstance(error, RowsError)
    assert error.hint == "each line of --prompts is an object with `input_ids`, `messages` or `text`"


@pytest.mark.parametrize(
    ("phase", "kind", "words"),
    [
        ("timed_out", "bench", "or ask for fewer loads, --repeats or --requests; launch it again"),
        ("timed_out", "standalone", "or lower --max-rows; `eagle3-remote run standalone --host gpu1 --resume run-a`"),
        ("out_of_memory", "bench", "what the server loads does not fit"),
        ("out_of_memory", "standalone", "try --dtype bfloat16"),
    ],
)
def test_what_to_try_is_of_the_jobs_own_kind(phase: RunPhase, kind: str, words: str) -> None:
    assert words in str(ended(phase, kind).hint)


def test_the_drafters_test_keeps_its_words() -> None:
    failure = Failure(kind="job", message="`steps` is `num_steps`", hint="see `states`")
    error = ended("failed", "standalone", failure)
    assert (error.message, error.hint) == ("`steps` is `num_steps`", "see `states`")


def test_the_report_on_a_failed_run_has_the_same_words() -> None:
    failure = Failure(kind="server", message="`num_steps` is wrong", hint="`eagle_topk = 1`")
    run = made_run(phase="failed")
    state = dataclasses.replace(run.state, failure=failure)  # type: ignore[type-var] # it has one
    for kind, words in (("bench", ("`--num-steps` is", "`--eagle-topk 1`")), ("standalone", ("`num_steps` is", "`e"))):
        spec = dataclasses.replace(run.spec, job_kind=kind)
        text = "\n".join(head(dataclasses.replace(run, spec=spec, state=state)))
        assert all(word in text for word in words)


@pytest.mark.parametrize("phase", ["cancelled", "lost", "killed"])
def test_a_sweep_that_ended_early_can_be_gone_on_with(phase: RunPhase) -> None:
    hint = ended(phase, "sweep").hint
    assert hint is not None
    assert "`eagle3-remote sweep resume run-a` measures what is left" in hint


def test_a_line_that_the_message_quotes_is_told_once() -> None:
    line = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB"
    failure = Failure(
        kind="server", message=f"the GPU's memory is too small (out_of_memory): {line}", details=(line, "x")
    )
    state = RunState(run_id="r", sequence=1, phase="failed", failure=failure)
    told = str(error_of(state, job_kind="bench", host="gpu1"))
    assert (told.count(line), told.endswith("  - x")) == (1, True)


@pytest.mark.parametrize(
    ("phase", "words"),
    [("failed", "it failed with exit code 3"), ("cancelled", "somebody cancelled it"), ("killed", "ended by SIGKILL"),
     ("timed_out", "the deadline passed"), ("succeeded", None), ("running", None)],
)  # fmt: skip
def test_why_a_run_ended_early(phase: RunPhase, words: str | None) -> None:
    state = RunState(run_id="r", sequence=1, phase=phase, exit_code=3, signal="SIGKILL")
    assert cause_of(state) == words


def test_a_command_in_a_hint_names_the_host_as_it_is_called_here() -> None:
    failure = Failure(kind="disk_full", message="full", hint="e.g. by `eagle3-remote gc --host NAME`, then try again")
    state = RunState(run_id="r", sequence=1, phase="failed", failure=failure)
    told = error_of(state, job_kind="selftest", host="gpu1")
    assert told is not None
    assert told.hint == "e.g. by `eagle3-remote gc --host gpu1`, then try again"
