"""What is made of states that a server returned."""

import dataclasses
from typing import Any

import pytest

from orchestrator.diagnosis.served_states import identified, judge_capture
from orchestrator.report.capture_text import CaptureReport, capture_blocks
from remote_payload.schema.capture import CapturedRows, CaptureResult, ServedState, StateMatch
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
    report = CaptureReport(result=result, diagnosis=told, draft="/d", model="/t")
    lines = [line for block in capture_blocks(report, 100, verbose=False) for line in block]
    text = "\n".join(lines)
    assert lines[0].startswith("SGLang feeds [layer 2, layer 4, layer 5]; the drafter was trained on")
    assert "slot 1 (state 2)" in text
    assert "so the drafter is fed [layer 2, layer 4, layer 5]" in text
    assert "the server agrees" in text
    text = " ".join(text.split())  # long lines are wrapped
    assert "3 of 4 rows, 90 tokens: /runs/x/captured/heldout" in text
    assert "--rows /runs/x/captured/heldout" in text
    assert max(map(len, lines)) <= 100


def test_states_captured_without_a_drafter_have_no_rule_to_agree_with() -> None:
    found = judge_capture(fed(2, 4, 5, method="aux_flag", draft_config=None))
    assert (found.verdict, found.results[1].outcome) == ("identified", "cannot_tell")
    assert "no ids to follow" in found.results[1].summary
