"""What a measured or a typed figure can be at all, pooled and of each prompt."""

import dataclasses

import pytest

from orchestrator.compare.metrics import METRICS
from orchestrator.compare.possible import MOST_A_SECOND, impossible, impossible_figures
from orchestrator.records.measurement import Series
from tests.support.made_sets import lengths, measurement, throughputs

STEPS = [10.0, 10.0, 20.0]


def beyond(series: Series) -> tuple[str, ...]:
    return impossible_figures(measurement(series, hard={"num_draft_tokens": "4"}))


def test_one_prompt_that_cannot_be_is_seen_behind_the_pooled_length() -> None:
    assert beyond(lengths([20.0, 40.0, 80.0], STEPS)) == ()  # every draft of two prompts was accepted
    odd = lengths([20.0, 20.0, 99.0], STEPS)
    assert beyond(odd) == (f"`accept_length_pooled` of a prompt cannot be 4.95 ({odd.keys[2]}): expected 4 at most",)
    tokens = dataclasses.replace(odd, metric="accept_length_per_verify")
    assert beyond(tokens) == ()  # a token of the prefill is among them, one a request
    assert len(beyond(dataclasses.replace(tokens, y=(20.0, 20.0, 101.0)))) == 1
    assert beyond(dataclasses.replace(odd, y=(20.0, 20.0, 19.0))) == ()  # a step after the last token


def test_a_share_of_a_prompt_is_no_more_than_all() -> None:
    share = dataclasses.replace(lengths([5.0, 5.0, 21.0], STEPS), metric="accept_rate", unit="share")
    assert beyond(share) == (f"`accept_rate` of a prompt cannot be 1.05 ({share.keys[2]}): expected 1 at most",)
    assert beyond(dataclasses.replace(share, y=(10.0, 10.0, 20.0))) == ()


@pytest.mark.parametrize(("value", "fits"), [(MOST_A_SECOND, True), (1e12, False), (0.0, False)])
def test_no_server_gives_so_many_tokens_a_second(value: float, fits: bool) -> None:
    assert (impossible(METRICS["output_throughput_tok_s"], value) is None) == fits
    if value:
        assert (beyond(throughputs(90.0, value)) == ()) == fits
