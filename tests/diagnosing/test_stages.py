"""What each stage of a diagnosis is asked to do, by what is known before it."""

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from orchestrator.config import Config
from orchestrator.diagnosing.asked import LONGEST_DRAFT, LONGEST_PROMPT, OF_SERVER, Asked
from orchestrator.diagnosing.replay import replay_job, served_states
from orchestrator.diagnosing.results import Results
from orchestrator.diagnosing.stages import STAGES
from orchestrator.errors import UsageError
from remote_payload.schema import BenchJob, StandaloneJob
from remote_payload.schema.capture import CapturedRows, CaptureResult
from remote_payload.schema.capture_job import CaptureJob
from remote_payload.schema.run import Failure
from tests.diagnosis.test_served_states import fed
from tests.support.made_runs import made_run

CONFIG = Config()


def asked(**changes: Any) -> Asked:
    serving = {"model": "/t", "draft": "/d", "prompts": "/p", "heldout_prompts": "/h", "num_steps": 3, **changes}
    samples = {"rows": "/r", "states": "embed,2,4,5"}
    return Asked(diagnosis_id="d", model="/t", draft="/d", samples=samples, serving=serving)


def made(split: Any, rows: int = 4) -> CapturedRows:
    return CapturedRows(split=split, folder=f"/captured/{split}", rows=rows, tokens=9 * rows, asked=4)


def replayed(result: CaptureResult, about: Asked | None = None) -> StandaloneJob | str:
    planned = replay_job(about or asked(), CONFIG, Results(captured=result))
    if isinstance(planned, str):
        return planned
    assert isinstance(planned.job, StandaloneJob)
    return planned.job


def captured(about: Asked) -> CaptureJob:
    job = about.capture(CONFIG).job
    assert isinstance(job, CaptureJob)
    return job


def test_the_capture_asks_what_is_served_and_answers_longer() -> None:
    about = asked(seed=7, max_prompts=5, max_new_tokens=100, server_args=["--x"], repeats=3, tp=2)
    job, served = captured(about), about.serve(CONFIG).job
    assert isinstance(served, BenchJob)
    for name in ("prompts", "heldout_prompts", "seed", "max_prompts", "server_args", "tp", "num_steps"):
        assert getattr(job, name) == getattr(served, name), name
    assert job.max_new_tokens >= served.max_new_tokens + 3 + 1  # the last draft is judged whole
    assert job.ignore_eos  # also behind an answer's own end
    assert job.max_tokens == LONGEST_PROMPT + job.max_new_tokens
    deep = captured(asked(num_steps=40, eagle_topk=1, num_draft_tokens=41, max_new_tokens=100))
    assert deep.max_new_tokens == 141
    assert captured(asked(max_new_tokens=100)).max_new_tokens == 100 + LONGEST_DRAFT + 1


OF_LOAD = (
    *(
        "kind",
        "prompts",
        "heldout_prompts",
        "max_prompts",
        "max_new_tokens",
        "ignore_eos",
        "seed",
        "temperature",
        "sampled",
        "top_p",
    ),
    *("top_k", "random_tokens_ok", "concurrency", "request_rate", "requests", "repeats", "starts", "with_baseline"),
    *("harness", "keep_outputs"),
)
"""Settings of a served benchmark that say what is asked of its server."""


def test_the_capture_starts_the_very_server_that_is_measured() -> None:
    names = {item.name for item in dataclasses.fields(BenchJob)} - set(OF_LOAD)
    assert names == set(OF_SERVER)
    changed = asked(draft_quantization="unquant", dp=2, ep=2, tp=2, mem_fraction=0.5, quantization="fp8")
    served = changed.serve(CONFIG).job
    assert isinstance(served, BenchJob)
    job = captured(changed)
    for name in OF_SERVER:
        assert getattr(job, name) == getattr(served, name) == getattr(job.bench(()), name), name


def test_the_capture_of_prompts_that_nobody_else_has() -> None:
    assert captured(asked(prompts="bundled", heldout_prompts=None)).prompts is None
    told = dataclasses.replace(asked(), trained="embed,2,4")
    assert captured(told).trained == told.trained_states == (0, 2, 4)


def test_eagle3_toml_bounds_what_is_captured() -> None:
    settings = Config(path=Path("eagle3.toml"), jobs={"capture": {"max_tokens": 300}})
    job = asked().capture(settings).job
    assert isinstance(job, CaptureJob)
    assert job.max_tokens == 300


@pytest.mark.parametrize(
    ("splits", "rows", "heldout"),
    [
        (("train", "answered", "heldout"), "/captured/answered", "/captured/heldout"),
        (("train", "heldout"), "/captured/heldout", None),
        (("answered",), "/captured/answered", None),
    ],
)
def test_the_replay_reads_what_was_answered(splits: tuple[str, ...], rows: str, heldout: str | None) -> None:
    job = replayed(fed(2, 4, 5, made=tuple(made(split) for split in splits)))
    assert isinstance(job, StandaloneJob)
    assert (job.rows, job.heldout, job.states, job.steps) == (rows, heldout, (2, 4, 5), 3)


def test_the_replay_measures_what_it_was_trained_on_though_the_server_feeds_no_embedding() -> None:
    done = Results(captured=fed(2, 4, 5, made=(made("heldout"),)), trained=(0, 2, 4))
    planned = replay_job(asked(), CONFIG, done)
    assert not isinstance(planned, str)
    job = planned.job
    assert isinstance(job, StandaloneJob)
    assert (job.states, job.add_embedding, job.wanted) == ((2, 4, 5), True, (0, 2, 4))
    fed_it = replayed(fed(0, 2, 4, made=(made("heldout"),)))
    assert isinstance(fed_it, StandaloneJob)
    assert (fed_it.states, fed_it.add_embedding, fed_it.wanted) == ((0, 2, 4), False, None)


@pytest.mark.parametrize(
    ("result", "words"),
    [
        (fed(2, 4, 5, why_not="SGLang 0.4.5 cannot", served=()), "SGLang 0.4.5 cannot"),
        (fed(2, 4, 5, made=(made("train"), made("heldout", rows=0))), "no prompt was answered"),
        (fed(2, 4, 5, made=(made("train"),), warnings=("prompts must hold `input_ids`",)), "must hold `input_ids`"),
        (fed(2, 4, 9, made=(made("heldout"),)), "nobody knows how to name them"),
    ],
)
def test_why_nothing_is_replayed(result: CaptureResult, words: str) -> None:
    assert words in str(replayed(result))


def test_states_without_training_rows_are_named_by_the_rule() -> None:
    known = fed(2, 4, 5, served=(), compared_tokens=0, hidden_size=8, width=24)
    assert served_states(known) == (2, 4, 5)
    assert served_states(dataclasses.replace(known, width=16)) is None  # not as many as the rule says
    assert served_states(dataclasses.replace(known, draft_config=None, rule=None)) is None


@pytest.mark.parametrize(
    ("stage", "about", "words"),
    [
        ("offline", dataclasses.replace(asked(), samples={}), "no captured training rows"),
        ("offline", dataclasses.replace(asked(), model=None), "both models"),
        ("capture", dataclasses.replace(asked(), model=None), "--model"),
        ("capture", dataclasses.replace(asked(prompts="bundled", heldout_prompts=None), samples={}), "give `--rows`"),
        (
            "capture",
            dataclasses.replace(asked(draft=None, num_steps=None), draft=None),
            "it takes the drafter's folder (--draft)",
        ),
        (
            "serve",
            dataclasses.replace(asked(draft=None, num_steps=None), draft=None),
            "it takes the drafter's folder (--draft)",
        ),
        ("replay", asked(), "no server told"),
    ],
)
def test_why_a_stage_is_left_out(stage: str, about: Asked, words: str) -> None:
    (found,) = (item for item in STAGES if item.name == stage)
    planned = found.plan(about, CONFIG, Results())
    assert isinstance(planned, str)
    assert words in planned


def test_a_server_that_is_up_has_its_drafter_whatever_is_named() -> None:
    about = dataclasses.replace(asked(draft=None, attach_url="http://127.0.0.1:9"), draft=None)
    for name in ("capture", "serve"):
        (found,) = (item for item in STAGES if item.name == name)
        assert not isinstance(found.plan(about, CONFIG, Results()), str)


DIED = (
    "the server failed: it ended with exit code 1, before it was ready; its log says: ValueError: Unknown RoPE type x"
)


@pytest.mark.parametrize(
    ("kind", "message", "is_started"),
    [
        ("server", DIED, False),
        ("server", DIED.replace("exit code 1", "exit code 2 (bad_flag)"), True),  # of a flag that a capture adds
        ("server", "not one of 8 row(s) could be had", True),
        ("server", "the server failed: it ended with exit code 1", True),  # while it was asked for states
        ("machine", "no sglang", True),
    ],
)
def test_a_server_that_died_at_its_start_is_not_started_again(kind: Any, message: str, is_started: bool) -> None:
    run = made_run("d.capture", phase="failed")
    assert run.state is not None
    run = dataclasses.replace(run, state=dataclasses.replace(run.state, failure=Failure(kind=kind, message=message)))
    (serve,) = (item for item in STAGES if item.name == "serve")
    planned = serve.plan(asked(), CONFIG, Results(records={"capture": run}))
    assert isinstance(planned, str) != is_started
    assert is_started or "did not come up for the capture (run d.capture)" in str(planned)


def test_an_id_that_leaves_no_room_for_the_stages() -> None:
    with pytest.raises(UsageError, match="at most 60 characters"):
        dataclasses.replace(asked(), diagnosis_id="x" * 61)
