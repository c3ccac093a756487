"""Every version's names, and the identities of an answer's own numbers."""

from typing import Any

import pytest

from remote_payload.sglang_bench.answer import Asked, read_answer
from tests.support.answering_server import RECORDED_META

BASE = {
    "prompt_tokens": 36,
    "completion_tokens": 64,
    "cached_tokens": 0,
    "finish_reason": {"type": "length", "length": 64},
}
VERSIONS: dict[str, dict[str, Any]] = {
    "0.4.5": {"spec_verify_ct": 29},
    "0.5.5": {"spec_verify_ct": 29, "spec_accept_length": 64 / 29, "spec_accept_rate": 0.4},
    "0.5.6": {"spec_verify_ct": 29, "spec_accept_token_num": 34, "spec_draft_token_num": 87},
    "0.5.9": {
        "spec_verify_ct": 29,
        "spec_accept_token_num": 34,
        "spec_draft_token_num": 87,
        "spec_accept_histogram": [11, 10, 0, 8],
    },
    "0.5.11": {
        "spec_verify_ct": 29,
        "spec_accepted_drafts": 34,
        "spec_proposed_drafts": 87,
        "spec_accept_histogram": [11, 10, 0, 8],
    },
    "0.5.12": {
        "spec_verify_ct": 29,
        "spec_accepted_drafts": 34,
        "spec_num_correct_drafts": 34,
        "spec_proposed_drafts": 87,
        "spec_num_proposed_drafts": 87,
        "spec_accept_histogram": [11, 10, 0, 8],
        "spec_correct_drafts_histogram": [11, 10, 0, 8],
    },
    "0.5.21": {
        "spec_verify_ct": 29,
        "spec_num_correct_drafts": 34,
        "spec_num_proposed_drafts": 87,
        "spec_correct_drafts_histogram": [11, 10, 0, 8],
    },
}


@pytest.mark.parametrize("version", VERSIONS)
def test_every_version_gives_the_same_numbers_as_far_as_it_tells_them(version: str) -> None:
    said = VERSIONS[version]
    answer = read_answer({**BASE, **said}, Asked(width=3, streamed=64))
    tells = " ".join(said)
    assert answer.verify_steps == 29
    assert answer.correct_drafts == (34 if "correct" in tells or "accepted" in tells or "token_num" in tells else None)
    assert answer.proposed_drafts == (87 if "proposed" in tells or "draft_token_num" in tells else None)
    assert answer.histogram == ((11, 10, 0, 8) if "histogram" in tells else None)
    assert (answer.prompt_tokens, answer.completion_tokens, answer.cached_tokens) == (36, 64, 0)
    assert answer.finish == "length"
    assert answer.broken_identities == ()


def test_a_recorded_answer_holds_together() -> None:
    assert read_answer(RECORDED_META, Asked(width=3, streamed=64)).broken_identities == ()


def test_plain_decoding_has_no_numbers_of_speculation() -> None:
    for extra in ({}, {"spec_verify_ct": 0, "spec_accept_length": 0.0, "spec_accept_token_num": 0}):  # 0.5.5: zeros
        answer = read_answer({**BASE, **extra})
        assert (answer.verify_steps, answer.correct_drafts, answer.proposed_drafts, answer.histogram) == (None,) * 4
        assert answer.broken_identities == ()


def test_the_prefills_token_and_a_cut_last_step_are_no_contradiction() -> None:
    # a public sample: 106 tokens of 43 steps with 63 drafts, so one token of the last step was cut off
    meta = {
        "completion_tokens": 106,
        "spec_verify_ct": 43,
        "spec_num_correct_drafts": 63,
        "spec_num_proposed_drafts": 215,
        "spec_correct_drafts_histogram": [11, 14, 11, 4, 0, 3],
        "spec_accept_length": 2.4651162790697674,
    }
    assert read_answer(meta, Asked(width=5)).broken_identities == ()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"spec_verify_ct": 30}, "sum(histogram) = 29, verify steps = 30"),
        ({"spec_correct_drafts_histogram": [12, 9, 0, 8]}, "sum(i * histogram[i]) = 33, correct drafts = 34"),
        ({"spec_num_proposed_drafts": 90}, "proposed drafts = 90, verify steps x 3 = 87"),
        ({"completion_tokens": 65}, "streamed tokens = 64, completion tokens = 65"),
        ({"completion_tokens": 65}, "completion tokens = 65, 1 + verify steps + correct drafts = 64"),
        ({"completion_tokens": 60}, "completion tokens = 60, more than one step below 1 + verify + correct = 64"),
        ({"spec_accept_length": 2.5}, "spec_accept_length = 2.5000, completion / verify steps = 2.2069"),
    ],
)
def test_a_broken_identity_is_told(change: dict[str, Any], words: str) -> None:
    assert words in read_answer({**RECORDED_META, **change}, Asked(width=3, streamed=64)).broken_identities


@pytest.mark.parametrize(
    ("change", "known", "words"),
    [
        ({"completion_tokens": 320}, Asked(ids=32), "output ids = 32, completion tokens = 320"),
        ({"prompt_tokens": 37}, Asked(prompt_ids=36), "prompt tokens = 37, prompt ids sent = 36"),
        ({}, Asked(max_new_tokens=8, width=3), "completion tokens = 64, max_new_tokens = 8"),
        ({"cached_tokens": 40}, Asked(), "cached tokens = 40, prompt tokens = 36"),
        ({"spec_accepted_drafts": 5}, Asked(), "spec_num_correct_drafts = 34, spec_accepted_drafts = 5"),
    ],
)
def test_what_was_sent_and_what_came_is_held_against_what_is_told(
    change: dict[str, Any], known: Asked, words: str
) -> None:
    assert words in read_answer({**RECORDED_META, **change}, known).broken_identities


def test_a_last_step_that_goes_beyond_the_limit_is_no_contradiction() -> None:
    assert read_answer(RECORDED_META, Asked(width=3, max_new_tokens=61, ids=64, prompt_ids=36)).broken_identities == ()


def test_a_retracted_request_is_prefilled_again() -> None:
    meta = {**RECORDED_META, "num_retractions": 1, "completion_tokens": 65, "spec_accept_length": 65 / 29}
    assert read_answer(meta, Asked(width=3, streamed=65)).broken_identities == ()


def test_an_unknown_or_changing_width_is_not_checked() -> None:
    assert read_answer({**RECORDED_META, "spec_num_proposed_drafts": 90}, Asked(streamed=64)).broken_identities == ()


@pytest.mark.parametrize("odd", [float("inf"), float("nan"), "29", [1], True, -3, 2.5, 10**400, 10**25])
def test_what_is_no_count_is_unknown(odd: object) -> None:
    answer = read_answer({**BASE, "spec_verify_ct": odd, "cached_tokens": odd, "spec_accept_length": float("inf")})
    assert answer.verify_steps is None
    assert answer.cached_tokens is None


@pytest.mark.parametrize("odd", ["[1]", [1, "2"], [1, None], {"0": 1}, [float("inf")], [10**400]])
def test_an_odd_histogram_is_unknown(odd: object) -> None:
    assert read_answer({**RECORDED_META, "spec_correct_drafts_histogram": odd}).histogram is None


@pytest.mark.parametrize(
    ("reason", "finish", "error"),
    [
        ({"type": "stop", "matched": 2}, "stop", None),
        ("length", "length", None),
        (None, None, None),
        (
            {"type": "abort", "message": "Decode out of memory"},
            "abort",
            "the server aborted the request: Decode out of memory",
        ),
        ("abort", "abort", "the server aborted the request"),
        ({"type": "x" * 1000}, "x" * 40, None),
    ],
)
def test_how_it_ended(reason: object, finish: str | None, error: str | None) -> None:
    answer = read_answer({**BASE, "finish_reason": reason})
    assert (answer.finish, answer.error) == (finish, error)
