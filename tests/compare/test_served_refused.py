"""Prompts that are too long for the server: which lines, how long, what to do; and what the others' answers tell."""

import dataclasses
from typing import Any

import pytest

from orchestrator.compare.served_refused import is_too_long, refused_of, too_long, without
from orchestrator.report.bench_content import BenchReport, report_bench
from remote_payload.schema.bench import RequestSample
from tests.support.made_bench import made_bench, made_point, made_request, made_server

REFUSED = 'HTTP 400: {"error": {"message": "%s"}}'
LONGER = REFUSED % "The input (1200 tokens) is longer than the model's context length (1024 tokens)."
BOTH = REFUSED % (
    "Requested token count exceeds the model's maximum context length of 1024 tokens. You requested a total of 1064 "
    "tokens: 1000 tokens from the input messages and 64 tokens for the completion. Please reduce the number of tokens."
)
ALLOWED = (
    "the server broke the request off: Input length (1200 tokens) exceeds the maximum allowed length (1018 tokens)."
)
FILES = {"files": ("/p/train.jsonl", "/p/held.jsonl"), "lines": (1, 3, 4, 2, 7), "heldout_from": 3}


def failed(prompt: int, error: str, **more: Any) -> RequestSample:
    nothing: dict[str, Any] = {"chunk_s": (), "chunk_tokens": (), "completion_tokens": None, "output_ids": None}
    return made_request(0, prompt, **{**nothing, "error": error, "prompt_tokens": None, **more})


def report(*bad: RequestSample, users: int = 1, **workload: Any) -> BenchReport:
    """Five prompts, those of `bad` among them."""
    own = {item: made_request(0, item, histogram=[10, 20]) for item in range(5)} | {item.prompt: item for item in bad}
    requests = [own[prompt] for prompt in sorted(own)]
    result = made_bench([made_server()], [made_point(0, requests, concurrency=users)])
    asked = dataclasses.replace(result.workload, prompts=5, **{**FILES, **workload})
    return report_bench(dataclasses.replace(result, workload=asked), requests)


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (LONGER, "line 3 of /p/train.jsonl (1200 tokens) is too long for the 1024 tokens that the server takes"),
        (BOTH, "line 3 of /p/train.jsonl (1000 tokens and 64 of an answer) is too long for the 1024 tokens"),
        (ALLOWED, "line 3 of /p/train.jsonl (1200 tokens) is too long for the 1018 tokens that the server takes"),
    ],
)
def test_each_way_in_which_a_server_says_so(error: str, words: str) -> None:
    made = report(failed(1, error))
    assert words in made.diagnosis.headline
    (load,) = made.figures.loads
    assert (load.valid, load.failed, len(load.answered), made.diagnosis.verdict) == (False, 1, 4, "invalid")
    fix = "name a copy of /p/train.jsonl without line 3"
    assert made.diagnosis.fix[0].startswith(fix)
    assert ("lower --max-new-tokens" in made.diagnosis.fix[0]) is (error is BOTH)


def test_lines_of_both_files_are_named_each_once() -> None:
    bad = [failed(prompt, LONGER, prompt_tokens=1100 + prompt) for prompt in (1, 2, 4)]
    found = refused_of(report(*bad).result.workload, [*bad, *bad])
    assert too_long(found) == (
        "line 3 of /p/train.jsonl (1101 tokens), line 4 of /p/train.jsonl (1102 tokens) and line 7 of /p/held.jsonl "
        "(1104 tokens) are too long for the 1024 tokens that the server takes"
    )
    assert (
        without(found)
        == "name a copy of /p/train.jsonl without lines 3 and 4 and a copy of /p/held.jsonl without line 7"
    )


def test_many_lines_are_counted() -> None:
    bad = [failed(prompt, LONGER) for prompt in range(5)]
    found = refused_of(report(*bad).result.workload, bad)
    assert "line 4 of /p/train.jsonl (1200 tokens) and 2 more are too long for" in too_long(found)
    assert not report(*bad).figures.tells_acceptance  # nothing was answered


def test_a_record_that_tells_no_lines() -> None:
    made = report(failed(1, LONGER), files=(), lines=())
    assert "prompt 1 (1200 tokens) is too long for" in made.diagnosis.headline
    assert made.diagnosis.fix[0].startswith("leave the prompts out that are too long")


def test_a_request_that_failed_otherwise_leaves_nothing_to_judge_by() -> None:
    made = report(failed(1, LONGER), failed(2, "timed out"))
    assert "too long" not in made.diagnosis.headline
    assert not made.figures.tells_acceptance
    assert made.figures.loads[0].answered == ()


def test_what_broke_off_midway_was_taken() -> None:
    assert is_too_long(failed(0, LONGER))
    assert not is_too_long(failed(0, LONGER, chunk_s=(0.1,), chunk_tokens=(1,)))
    assert not is_too_long(failed(0, "HTTP 400: the length is wrong"))
    assert report().figures.tells_acceptance


def test_what_the_server_keeps_free_is_said_where_it_decides() -> None:
    short = failed(1, LONGER.replace("1200", "1026"), prompt_tokens=1022)
    words = (
        "line 3 of /p/train.jsonl (1022 tokens, 1026 with those that the server keeps free) is too long for the 1024"
    )
    assert words in report(short).diagnosis.headline
    assert "(1200 tokens)" in report(failed(1, LONGER.replace("1200", "1204"), prompt_tokens=1200)).diagnosis.headline
