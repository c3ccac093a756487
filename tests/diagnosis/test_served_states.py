"""What is made of states that a server returned."""

import dataclasses
from typing import Any

import pytest

from orchestrator.diagnosis.recognised_states import identified, recognised
from orchestrator.diagnosis.served_states import judge_capture
from orchestrator.report.capture_text import CaptureReport, capture_blocks
from remote_payload.schema.capture import CapturedRows, CaptureResult, ServedState, StateMatch
from remote_payload.schema.state_change import StateChange
from tests.diagnosis.test_effective_capture import LLAMA, config, rule, target


def match(slot: int | None, state: int | None, error: float, **more: Any) -> StateMatch:
    values: dict[str, Any] = {"against": "captured", "tokens": 600, "exact": 0, "cosine": 1.0, "scale": 1.0, **more}
    return StateMatch(slot=slot, state=state, error=error, **values)


def served(slot: int, *matches: StateMatch, tokens: int = 600) -> ServedState:
    return ServedState(slot=slot, tokens=tokens, rms=1.0, matches=tuple(sorted(matches, key=lambda one: one.error)))


LABELS = (0, 2, 4, 5)


def fed(*states: int, **more: Any) -> CaptureResult:
    """Served states that are these of the captured ones, to bfloat16's rounding."""
    slots = [
        served(place, *(match(slot, label, 0.005 if label == state else 0.5) for slot, label in enumerate(LABELS)))
        for place, state in enumerate(states)
    ]
    values: dict[str, Any] = {
        "method": "speculating",
        "rule": rule("0.5.23", LLAMA),
        "draft_config": config([state - 1 for state in states]),
        "target_config": target(LLAMA, 8),
        "served": tuple(slots),
        "compared_tokens": 600,
        "seconds": 1.0,
    }
    return CaptureResult(**{**values, **more})


def test_the_story() -> None:
    found = judge_capture(fed(2, 4, 5), trained=(0, 2, 4))
    assert found.verdict == "other_states"
    assert (
        found.headline
        == "SGLang feeds [layer 2, layer 4, layer 5]; the drafter was trained on [embed, layer 2, layer 4]"
    )
    assert '"eagle_aux_hidden_state_layer_ids": [-1, 1, 3]' in found.fix[0]
    assert [(item.check, item.outcome) for item in found.results] == [("K12", "finding"), ("K6", "passed")]


def test_as_trained_and_not_said() -> None:
    assert judge_capture(fed(0, 2, 4), trained=(0, 2, 4)).verdict == "as_trained"
    found = judge_capture(fed(0, 2, 4))
    assert (found.verdict, found.states) == ("identified", (0, 2, 4))


def test_a_server_that_does_otherwise_than_its_source() -> None:
    found = judge_capture(fed(2, 4, 5, draft_config=config([-1, 1, 3])))
    rule_found = found.results[1]
    assert (rule_found.check, rule_found.outcome) == ("K6", "finding")
    assert found.rule.states == (0, 2, 4)


def test_states_that_are_none_of_the_captured() -> None:
    odd = served(0, match(0, 0, 0.8), match(1, 2, 0.7, r2=0.99, r2_tokens=600))
    found = judge_capture(dataclasses.replace(fed(0, 2, 4), served=(odd,)), trained=(0, 2, 4))
    assert (found.verdict, found.states) == ("unlike", (None,))
    assert "[?]" in found.headline
    assert found.results[1].outcome == "cannot_tell"


def scaled_by(factor: float, *, residual: float = 0.004, rival: float = 0.3, **more: Any) -> ServedState:
    """Served state 1: layer 4 in other numbers, beside its neighbours."""
    same = StateChange(factor=factor, scaled_error=residual, turned_error=residual)
    other = StateChange(factor=factor, scaled_error=rival, turned_error=rival)
    raw = {0: 0.9, 1: 0.5, 3: 0.5}
    near = match(2, 4, abs(factor - 1) + residual / 10, change=dataclasses.replace(same, **more))
    far = [match(slot, LABELS[slot], error, change=other) for slot, error in raw.items()]
    return served(1, near, *far)


@pytest.mark.parametrize(
    ("state", "words"),
    [
        (scaled_by(0.5), "layer 4 x 0.50"),
        (scaled_by(0.9), "layer 4 x 0.90"),
        (scaled_by(0.95), "layer 4 x 0.95"),  # near enough to be the state as it is, and surely scaled
        (scaled_by(31.0), "layer 4 x 31.00"),
        (scaled_by(0.7, residual=0.6, normed_error=0.001), "layer 4 after a norm"),
        (scaled_by(0.7, residual=0.6, unnormed_error=0.001), "layer 4 before its norm"),
        (scaled_by(0.7, residual=0.6, channels_error=0.001), "layer 4 through a norm of another weight"),
        (scaled_by(0.999), "layer 4"),  # rounding
        (scaled_by(0.5, residual=0.2), "?"),  # too much is left
        (scaled_by(0.5, residual=0.08, rival=0.1), "?"),  # either could be meant
    ],
)
def test_a_state_in_other_numbers_is_named_with_what_is_left(state: ServedState, words: str) -> None:
    result = fed(0, 4, 5)
    first, _, last = result.served
    found = judge_capture(dataclasses.replace(result, served=(first, state, last)))
    assert f"[embed, {words}, layer 5]" in found.headline
    told = recognised(state)
    large = told is not None and told.changed is not None and told.changed.is_large
    verdict = "unlike" if told is None else "changed" if large else "identified"
    assert found.verdict == verdict
    odd = [item for item in found.results if item.cause == "engine"]
    assert len(odd) == (told is not None and told.changed is not None)
    if odd:
        assert odd[0].severity == ("serious" if large else "minor")
        left = "0.4 %" if words.startswith("layer 4 x") else "0.1 %"
        assert f"captured states in other numbers, of which that leaves {left} unexplained" in odd[0].summary


def test_a_rotated_state_is_named_by_the_regression_alone() -> None:
    turned = served(0, match(1, 2, 1.4, r2=0.996), match(2, 4, 1.3, r2=0.6), match(0, 0, 1.2, r2=0.1))
    found = judge_capture(dataclasses.replace(fed(0, 2, 4), served=(turned,)), trained=(2,))
    assert (found.verdict, found.states) == ("changed", (2,))
    assert "[layer 2 in another basis (R2 0.996)]" in found.headline


def test_a_wrong_state_that_is_scaled_as_well_is_both() -> None:
    result = fed(0, 4, 5)
    first, _, last = result.served
    found = judge_capture(dataclasses.replace(result, served=(first, scaled_by(0.5), last)), trained=(0, 2, 5))
    assert [(item.check, item.cause) for item in found.results] == [("K12", "wiring"), ("K6", None), ("K12", "engine")]


def test_a_shift_by_one_token_is_no_match() -> None:
    late = served(0, match(0, 0, 0.9), match(0, 0, 0.001, token_offset=1))
    found = judge_capture(dataclasses.replace(fed(0, 2, 4), served=(late,)))
    assert (found.verdict, found.states) == ("shifted", (None,))
    assert "next token" in found.headline


@pytest.mark.parametrize(
    ("matches", "tokens", "state"),
    [
        ((match(0, 0, 0.0), match(1, 2, 0.5)), 600, 0),
        ((match(0, 0, 0.0), match(None, 0, 0.0, against="embedding")), 600, 0),  # one thing under two names
        ((match(0, None, 0.0), match(None, 0, 0.0, against="embedding")), 600, 0),
        ((match(0, 0, 0.05), match(1, 2, 0.06)), 600, None),  # either could be meant
        ((match(0, 0, 0.0), match(1, 2, 0.0)), 600, None),  # captured twice
        ((match(0, 0, 0.2), match(1, 2, 0.9)), 600, None),
        ((match(0, 0, 0.0), match(1, 2, 0.5)), 31, None),  # too few tokens
        ((), 600, None),
    ],
)
def test_what_counts_as_identified(matches: tuple[StateMatch, ...], tokens: int, state: int | None) -> None:
    found = identified(served(0, *matches, tokens=tokens))
    assert (None if found is None else found.state) == state


def test_too_few_tokens_are_no_finding() -> None:
    few = tuple(dataclasses.replace(one, tokens=20) for one in fed(0, 2, 4).served)
    found = judge_capture(dataclasses.replace(fed(0, 2, 4), served=few, compared_tokens=20), trained=(2, 4, 5))
    assert (found.verdict, found.results[0].outcome) == ("not_compared", "cannot_tell")


def test_a_version_that_returns_none_falls_back_to_its_rule() -> None:
    old = fed(method="none", why_not="SGLang 0.4.5 has no --enable-return-hidden-states", served=(),
              rule=rule("0.4.5", LLAMA), draft_config=config([-1, 1, 3]))  # fmt: skip
    found = judge_capture(old, trained=(0, 2, 4))
    assert (found.verdict, found.rule.states) == ("not_returned", (2, 4, 5))
    assert "SGLang 0.4.5 has no" in found.headline


def test_the_report_names_states_rule_and_rows() -> None:
    made = (CapturedRows(split="heldout", folder="/runs/x/captured/heldout", rows=3, tokens=90, asked=4,
                         skipped=("prompt 2 greedy: no whole answer",)),)  # fmt: skip
    result = fed(2, 4, 5, made=made)
    told = judge_capture(result, trained=(0, 2, 4))
    report = CaptureReport(result=result, diagnosis=told, draft="/my d", model="/t", host="gpu1")
    lines = [line for block in capture_blocks(report, 100, verbose=False) for line in block]
    text = "\n".join(lines)
    assert lines[0].startswith("SGLang feeds [layer 2, layer 4, layer 5]; the drafter was trained on")
    assert "slot 1 (state 2)" in text
    assert "so the drafter is fed [layer 2, layer 4, layer 5]" in text
    assert "the server agrees" in text
    text = " ".join(text.split())  # long lines are wrapped
    assert "3 of 4 rows, 90 tokens: /runs/x/captured/heldout" in text
    command = "eagle3-remote run standalone --host gpu1 --draft '/my d' --target /t --rows /runs/x/captured/heldout"
    assert f"{command} --states 2,4,5 --add-embedding" in text  # as it is typed: the states that are fed lack it
    assert max(map(len, lines)) <= 100


def test_states_captured_without_a_drafter_have_no_rule_to_agree_with() -> None:
    found = judge_capture(fed(2, 4, 5, method="aux_flag", draft_config=None))
    assert (found.verdict, found.results[1].outcome) == ("identified", "cannot_tell")
    assert "no ids to follow" in found.results[1].summary
