"""Runs -> what a decision rests on: the splits of what was served, and which rows stand for which prompt."""

import dataclasses
from collections.abc import Sequence

import pytest

from orchestrator.diagnosing.gathering import splits_of
from orchestrator.diagnosing.mended import answers_of, walked_of
from orchestrator.diagnosis.decision.decide import decide
from orchestrator.diagnosis.decision.foretold import compare
from orchestrator.diagnosis.decision.inputs import SPLITS, Known, Predicted, PredictedRequest, Served
from orchestrator.diagnosis.measured import Split
from orchestrator.report.bench_content import BenchReport, report_bench
from remote_payload.schema.bench import RequestSample
from remote_payload.schema.capture import CapturedAnswer, CapturedRows
from tests.diagnosing.test_stages import asked
from tests.diagnosis.decision import scenes
from tests.diagnosis.test_served_states import fed
from tests.support.made_bench import made_bench, made_point, made_request, made_server

DIGESTS = ("aaaaaaaaaaaa", "bbbbbbbbbbbb", "cccccccccccc")


def report(border: int | None) -> BenchReport:
    """Three prompts; at two users too, which is not the lowest load."""
    requests: list[RequestSample] = []
    points = []
    for point, users in enumerate((2, 1)):
        own = [made_request(point, prompt, histogram=[10, 20]) for prompt in range(3)]
        points.append(made_point(point, own, concurrency=users))
        requests += own
    result = made_bench([made_server()], points)
    workload = dataclasses.replace(result.workload, prompts=3, heldout_from=border, prompt_sha256=DIGESTS)
    return report_bench(dataclasses.replace(result, workload=workload), requests)


@pytest.mark.parametrize(
    ("border", "only_training", "expected"),
    [
        (2, False, {"train": [0, 1], "held-out": [2]}),
        (2, True, {"train": [0, 1], "held-out": [2]}),
        (None, False, {"held-out": [0, 1, 2]}),
        (None, True, {"train": [0, 1, 2]}),  # --merged without --heldout-prompts
    ],
)
def test_the_splits_of_what_was_served(
    border: int | None, only_training: bool, expected: dict[str, Sequence[int]]
) -> None:
    about = dataclasses.replace(asked(), only_training=only_training)
    found = {split.split: [item.prompt for item in split.requests] for split in splits_of(about, "r", report(border))}
    assert found == expected
    assert all(item.point == 1 for split in splits_of(about, "r", report(border)) for item in split.requests)


def rows(*sources: str | None) -> Split:
    base = scenes.offline().measured.train.rows[0]
    made = [dataclasses.replace(base, name=f"hs_{place}", source=source) for place, source in enumerate(sources)]
    return Split(rows=made, figures={})


def served(*, ended: int | None = None) -> Served:
    made = report(2)
    splits = tuple(splits_of(asked(), "r", made))
    if ended is not None:
        short = tuple(dataclasses.replace(item, completion_tokens=ended) for item in splits[0].requests)
        splits = (dataclasses.replace(splits[0], requests=short), *splits[1:])
    return Served(run_id="r", result=made.result, figures=made.figures, diagnosis=made.diagnosis, splits=splits)


def test_rows_are_found_by_what_was_asked() -> None:
    some = rows("prompt bbbbbbbbbbbb greedy", "prompt dddddddddddd greedy", None, "odd", "prompt aaaaaaaaaaaa greedy")
    found = walked_of("train", some, served(), 3, {})
    assert found is not None
    assert (found.prompts, found.steps, found.max_new_tokens) == ({"hs_0": 1, "hs_4": 0}, 3, 64)


def test_a_prompt_of_both_files_is_found_in_its_own_split() -> None:
    made = served()
    twice = dataclasses.replace(made.result.workload, prompt_sha256=(DIGESTS[2], *DIGESTS[1:]))
    both = dataclasses.replace(made, result=dataclasses.replace(made.result, workload=twice))
    some = rows("prompt cccccccccccc greedy")
    found = [walked_of(name, some, both, 3, {}) for name in SPLITS]
    assert [None if item is None else dict(item.prompts) for item in found] == [{"hs_0": 0}, {"hs_0": 2}]


def test_an_answer_that_ended_by_itself_is_known_by_its_length() -> None:
    found = walked_of("train", rows("prompt aaaaaaaaaaaa greedy"), served(ended=20), 3, {})
    assert found is not None
    assert found.ends == {0: 20, 1: 20}


def test_a_split_that_was_not_served_foretells_nothing() -> None:
    made = served()
    alone = dataclasses.replace(made, splits=made.splits[:1])
    assert walked_of("held-out", rows("prompt cccccccccccc greedy"), alone, 3, {}) is None


def test_the_same_number_of_tokens_is_not_the_same_text() -> None:
    """Answers as long as those of the capture, one of them with another token in it."""
    answers = tuple(
        CapturedAnswer(prompt_sha256=digest, output_ids=tuple(range(9))) for digest in (*DIGESTS, "eeeeeeeeeeee")
    )
    made = CapturedRows(split="answered", folder="/c", rows=3, tokens=99, asked=3, answers=answers)
    outputs = answers_of(dataclasses.replace(fed(2, 4, 5), made=(made,)))
    some = rows("prompt aaaaaaaaaaaa greedy", "prompt bbbbbbbbbbbb greedy")
    walked = walked_of("train", some, served(), 3, outputs)
    assert walked is not None
    assert walked.outputs == dict.fromkeys(range(2), tuple(range(9)))
    told = [
        PredictedRequest(prompt=index, histogram=(1, 1), tokens=4, greedy=True, output_ids=walked.outputs[index])
        for index in (0, 1)
    ]
    requests = [
        made_request(1, index, histogram=[1, 1], completion_tokens=4, output_ids=ids)
        for index, ids in enumerate(((0, 1, 2, 3), (0, 1, 7, 3)))
    ]
    predicted = Predicted(
        split="train", run_id="r", part="best", reading="x", states=None, dtype="float32", requests=tuple(told)
    )
    found = compare(predicted, requests, 1, exact=True)
    assert (found.requests, found.other_text) == (1, 1)


def test_what_was_answered_beside_prompts_that_are_too_long_tells_of_acceptance() -> None:
    """And of nothing else: the load is no measurement of speed."""
    told = "HTTP 400: The input (1200 tokens) is longer than the model's context length (1024 tokens)."
    whole = report(2)
    requests = [
        dataclasses.replace(
            item, error=told, prompt_tokens=1200, chunk_s=(), chunk_tokens=(), histogram=None, verify_steps=None
        )
        if item.prompt == 1
        else item
        for item in whole.requests
    ]
    points = [made_point(place, [r for r in requests if r.point == place], concurrency=2 - place) for place in (0, 1)]
    result = dataclasses.replace(whole.result, points=tuple(points))
    made = report_bench(result, requests)
    splits = tuple(splits_of(asked(), "r", made))
    assert {split.split: [item.prompt for item in split.requests] for split in splits} == {
        "train": [0],
        "held-out": [2],
    }
    assert all(split.acceptance is not None for split in splits)
    known = Known(
        served=Served(run_id="r", result=result, figures=made.figures, diagnosis=made.diagnosis, splits=splits)
    )
    decision = decide(known)
    assert any(
        "prompt 1 (1200 tokens) is too long for the 1024 tokens that the server takes" in one for one in decision.also
    )
    mends = "leave the prompts out that are too long, or serve a longer context (--context-length)"
    assert f"to have its speed: {mends}" in decision.also
    serve = [run.what for run in decision.next_runs if run.cost == "serve"]
    assert serve
    assert all(what.endswith("(leave the prompts out that are too long first)") for what in serve)
    untold = [item.summary for item in decision.checks if "is no measurement" in item.summary]
    assert untold == []
    assert decision.place["pays"] == "unknown"


@pytest.mark.parametrize(("source", "word"), [("bundled", "bundled"), ("/srv/merged.jsonl", "held-out")])
def test_bundled_prompts_are_called_that(source: str, word: str) -> None:
    made = report(None)
    result = dataclasses.replace(made.result, workload=dataclasses.replace(made.result.workload, source=source))
    splits = tuple(splits_of(asked(), "r", made))
    known = Known(
        served=Served(run_id="r", result=result, figures=made.figures, diagnosis=made.diagnosis, splits=splits)
    )
    told = [item.summary for signal in decide(known).signals for item in signal.results]
    assert any(f" on {word} prompts, and nothing was foretold of them" in text for text in told)
