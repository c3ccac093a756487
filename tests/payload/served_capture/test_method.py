"""How a SGLang is asked, by what the job names and what its source offers."""

from typing import Any

import pytest

from remote_payload.schema.capture_job import CaptureJob
from remote_payload.schema.capture_rule import CaptureRule
from remote_payload.served_capture.method import choose

OLD = CaptureRule(version="0.4.5", path="/s", target_class="L")
MIDDLE = CaptureRule(version="0.5.12", path="/s", target_class="L", returns_hidden=True)
NEW = CaptureRule(version="0.5.23", path="/s", target_class="L", returns_hidden=True, returns_aux=True)
UNREAD = CaptureRule(version=None, target_class="L")


def job(**changes: Any) -> CaptureJob:
    return CaptureJob(**{"model": "/t", "draft": "/d", "rows": "/r", **changes})


def test_with_a_drafter_it_is_served_as_it_would_be() -> None:
    for rule in (MIDDLE, NEW, UNREAD):
        found = choose(job(), rule)
        assert (found.name, found.words, found.why_not) == ("speculating", ("--enable-return-hidden-states",), None)


def test_without_one_the_newest_can_be_asked() -> None:
    found = choose(job(draft=None, layer_ids=(1, 3, 4)), NEW)
    assert found.name == "aux_flag"
    assert " ".join(found.words).endswith("--speculative-algorithm EAGLE3 --return-aux-hidden-state-layer-ids 1 3 4")


@pytest.mark.parametrize(
    ("asked", "rule", "words"),
    [
        (job(), OLD, "SGLang 0.4.5 has no --enable-return-hidden-states"),
        (job(draft=None), MIDDLE, "SGLang 0.5.12 has no --enable-return-aux-hidden-states"),
    ],
)
def test_a_version_that_cannot_says_so(asked: CaptureJob, rule: CaptureRule, words: str) -> None:
    found = choose(asked, rule)
    assert found.name == "none"
    assert words in str(found.why_not)


def test_a_long_row_is_prefilled_in_one_piece() -> None:
    assert choose(job(max_tokens=2048), NEW).words[1:] == ()
    assert choose(job(max_tokens=2049), NEW).words[1:] == ("--chunked-prefill-size", "4096")
    own = job(max_tokens=9000, server_args=("--chunked-prefill-size=128",))
    assert choose(own, NEW).words[1:] == ()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"rows": None}, "give `rows`, `prompts` or both"),
        ({"layer_ids": (1,)}, "without a `draft`"),
        ({"draft": None, "layer_ids": (-1, 3)}, "0 or more"),
        ({"rows": None, "prompts": "/p", "states": (0,)}, "label the captured states of `rows`"),
        ({"rows": None, "states": (0,)}, "label the captured states of `rows`: give their folder"),  # not prompts
        ({"rows": None, "merged": "/m"}, "`merged` belongs to `rows`: give their folder"),
        ({"trained": (0, 0)}, "different HF hidden_states"),
        ({"prompts": "bundled"}, "JSONL file of token ids"),
        ({"max_tokens": 0}, "1 to"),
        ({"model": None}, "`model` must name the target"),
        ({"attach_url": "ftp://x"}, "must be like http"),
    ],
)
def test_jobs_that_are_none(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        job(**changes)
