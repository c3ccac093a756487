"""Each class of fault by its name, five and more double faults, ten sound pairs without any, and no fact so empty
that a decision breaks."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.diagnosis.decision.decide import decide
from orchestrator.diagnosis.decision.inputs import Known, Resolved
from orchestrator.diagnosis.measured import gather
from orchestrator.report.decision_json import decision_json
from orchestrator.report.decision_markdown import decision_markdown
from orchestrator.report.decision_text import decision_text
from orchestrator.report.document_json import json_text
from remote_payload.schema.standalone import MapReading, SharedTensorFacts, TensorProblem
from tests.diagnosis.decision.scenes import (
    FED_WRONG,
    fed,
    offline,
    offline_of,
    predicted,
    published_story,
    served,
    served_of,
    sound,
    story,
)
from tests.diagnosis.decision.test_decide import dead, halved
from tests.diagnosis.test_diagnose import FACTS, emptied
from tests.support.made_bench import made_bench, made_server
from tests.support.made_measured import LATER, SHIFTED, Made, Rows, made_measured, sound_lint, sound_vocabulary
from tests.support.made_results import made_declared

WRONG: dict[str, Any] = {"declared": made_declared((2, 4, 5), LATER, config_ids=(1, 3, 4))}
NO_HEAD = (SharedTensorFacts(name="lm_head", stored=False, used="target", served="random"),)
MISSING = (TensorProblem(problem="missing", name="fc.weight", expected="[128, 384]", found="nothing"),)
ABSOLUTE = sound_vocabulary(
    readings=(
        MapReading(reading="offset", in_range=400, distinct=400, increasing=True),
        MapReading(reading="absolute", in_range=640, distinct=640, increasing=True),
    )
)
FEEDBACK = "feedback=normed"
MISREAD = (
    Made(changes=(FEEDBACK,)),
    Made((0.75, 0.3, 0.3, 0.3)),
    Made((0.45, 0.4, 0.4, 0.4), LATER, 1, (FEEDBACK,)),
    Made((0.45, 0.2, 0.2, 0.2), LATER),
    SHIFTED,
)
THETA = "rope=theta 1e+06"
ROTARY = tuple(replace(item, changes=tuple(THETA for _ in item.changes)) for item in MISREAD)
MAPPED = tuple(replace(item, changes=tuple("vocabulary=absolute" for _ in item.changes)) for item in MISREAD)
SLOW = (60.0, 61.0, 59.0)
GAP: dict[str, Any] = {"rows": Rows(count=24), "heldout": Rows(count=24, seed="held-out", lift=-0.3)}


def test_of(**changes: Any):
    readings = changes.pop("readings", None)
    return offline_of(made_measured(**changes) if readings is None else made_measured(readings, **changes))


test_of.__test__ = False  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("known", "expected"),
    [
        pytest.param(lambda: Known(offline=test_of(**WRONG)), ("wiring",), id="L other layers"),
        pytest.param(lambda: Known(offline=test_of(readings=MISREAD)), ("wiring",), id="N feedback"),
        pytest.param(lambda: Known(offline=test_of(readings=ROTARY)), ("wiring",), id="R rotary base"),
        pytest.param(lambda: Known(offline=test_of(checkpoint_shared=NO_HEAD)), ("loading",), id="W no head"),
        pytest.param(lambda: Known(offline=test_of(checkpoint_problems=MISSING)), ("loading",), id="C no fc"),
        pytest.param(lambda: Known(offline=test_of(checkpoint_vocabulary=ABSOLUTE)), ("loading",), id="V map"),
        pytest.param(
            lambda: Known(offline=test_of(readings=MAPPED, checkpoint_vocabulary=ABSOLUTE)),
            ("loading",),
            id="V map, read better as what it is",
        ),
        pytest.param(lambda: Known(offline=test_of(rows_lint=sound_lint(with_nan=3))), ("data",), id="D not a number"),
        pytest.param(lambda: Known(offline=test_of(**GAP)), ("generalization",), id="D gap"),
        pytest.param(lambda: sound(served=served(asked=(3, 1, 16))), ("parameters",), id="P draft tokens"),
        pytest.param(lambda: sound(served=served(spec=SLOW)), ("economics",), id="B slower"),
        pytest.param(lambda: sound(served=served(change=halved)), ("engine",), id="E served below"),
        pytest.param(lambda: sound(fed=fed((None,) * 3), served=None), ("engine",), id="Q another basis"),
        pytest.param(story, ("wiring", "parameters", "economics"), id="the story"),
        pytest.param(
            lambda: Known(offline=test_of(readings=MISREAD, **WRONG, **GAP)), ("wiring", "generalization"), id="L N D"
        ),
        pytest.param(
            lambda: Known(offline=test_of(checkpoint_shared=NO_HEAD, **WRONG)), ("loading", "wiring"), id="W L"
        ),
        pytest.param(
            lambda: Known(offline=test_of(checkpoint_vocabulary=ABSOLUTE, **GAP)),
            ("loading", "generalization"),
            id="V D",
        ),
        pytest.param(
            lambda: sound(served=served(change=halved, asked=(3, 1, 16))), ("engine", "parameters"), id="E P"
        ),
        pytest.param(
            lambda: sound(served=served(asked=(3, 1, 16), spec=SLOW)), ("parameters", "economics"), id="P B"
        ),
        pytest.param(
            lambda: story(served=served("embed_story_wrong", change=halved), predicted=predicted("wrong")),
            ("wiring", "engine"),
            id="L E",
        ),
        pytest.param(
            lambda: Known(offline=test_of(readings=MISREAD), served=served(asked=(3, 1, 16))),
            ("wiring", "parameters"),
            id="N P",
        ),
    ],
)  # fmt: skip
def test_a_fault_is_called_by_its_name_and_no_other(known, expected):
    found = decide(known())
    assert found.causes == expected, found.headline
    for cause in expected:
        assert cause in found.headline
    text = decision_text(found)
    assert len(text.splitlines()) <= 24
    assert all(cause in text for cause in expected)


@pytest.mark.parametrize("seed", range(10))
def test_ten_sound_pairs_have_no_cause(seed):
    rows = Rows(count=(8, 12, 24)[seed % 3], greedy=[(1.0,), (1.0, 0.6), (0.7,)][seed % 3], seed=f"train {seed}")
    heldout = replace(rows, seed=f"held-out {seed}", lift=(0.0, -0.05)[seed % 2])
    measured = made_measured(rows=rows, heldout=heldout)
    for known in (Known(offline=offline_of(measured)), Known(offline=offline_of(measured), fed=fed())):
        found = decide(known)
        assert found.causes == (), found.headline
        assert [item for item in found.findings if item.severity in ("fatal", "serious")] == []


PARTS = {
    "offline": [None, "right", "wrong", "emptied"],
    "served": [None, "right", "wrong", "dead", "none"],
    "fed": [None, (0, 2, 4), FED_WRONG, (0, None, 4), (2,)],
    "predicted": [False, True],
    "resolved": [None, (0, 2, 4), ()],
}


@settings(max_examples=40, deadline=None, derandomize=True)
@given(
    st.fixed_dictionaries({name: st.sampled_from(values) for name, values in PARTS.items()}),
    st.sets(st.sampled_from(FACTS)),
)
def test_nothing_that_is_missing_breaks_a_decision_or_its_texts(parts, absent):
    tests = {"right": offline, "wrong": lambda: offline("wrong")}
    test = tests[parts["offline"]]() if parts["offline"] in tests else None
    if parts["offline"] == "emptied":
        base = offline("wrong").measured
        gone = tuple(sorted(absent - {"result.heldout"}))
        test = offline_of(gather(emptied(base.result, gone), (base.train.rows, base.train.hits)))
    ran = {
        "right": served,
        "wrong": lambda: served("embed_story_wrong"),
        "dead": lambda: served(change=dead, plain=()),
        "none": lambda: served_of(made_bench([made_server()], []), ()),
    }
    known = Known(
        offline=test,
        served=ran[parts["served"]]() if parts["served"] else None,
        fed=None if parts["fed"] is None else fed(parts["fed"], None if parts["fed"] == (2,) else (0, 2, 4)),
        predicted=predicted() if parts["predicted"] else (),
        resolved=None if parts["resolved"] is None else Resolved(states=parts["resolved"] or None, sglang_version=None),
    )
    found = decide(known)
    assert found.causes or found.verdict in ("healthy", "cannot_tell")
    assert found.next_runs or found.certain or found.causes
    assert decision_text(found)
    assert decision_markdown(found)
    assert json_text(decision_json(found))


def test_the_published_story_needs_no_rows():
    assert decide(published_story()).causes == ("wiring", "parameters", "economics")


def test_a_small_gap_is_told_and_is_no_fault():
    small = offline_of(made_measured(rows=Rows(count=40), heldout=Rows(count=40, seed="held-out", lift=-0.13)))
    (gap,) = [item for item in small.diagnosis.findings if item.check == "gap"]
    assert gap.severity == "minor"
    found = decide(Known(offline=small))
    assert found.place["heldout"] == "small_gap"
    assert found.causes == ()
    assert any(item.check == "gap" for item in found.findings)
    assert any("generalization gap" in text for text in found.also)
