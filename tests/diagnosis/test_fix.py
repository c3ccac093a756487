"""What mends a drafter, as a change that a program can make: it says what the words of the verdict say."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from orchestrator.diagnosis.fix import DrafterFix, drafter_fix, merge_patch
from orchestrator.diagnosis.wiring import judge
from remote_payload.correct import merged
from remote_payload.schema.standalone import GraphFlag
from remote_payload.standalone.checkpoint.config import read_drafter_config
from tests.support.made_measured import EMBED, LATER, WORSE, Made, made_measured
from tests.support.made_results import made_declared
from tests.support.tiny import write_model

GOLDEN = Path(__file__).parents[1] / "golden" / "standalone" / "dialects"
STORY = (Made(), Made((0.30, 0.3, 0.3, 0.3), LATER), Made((0.45, 0.4, 0.4, 0.4), (0, 2, 1)))
DECLARED = made_declared((2, 4, 5), LATER, config_ids=(1, 3, 4))


def fixed(readings: tuple[Made, ...] = STORY, **changes: Any) -> DrafterFix | None:
    measured = made_measured(readings, **{"declared": DECLARED, **changes})
    return drafter_fix(measured.result, judge(measured))


def test_the_storys_ids() -> None:
    fix = fixed()
    assert fix is not None
    block = {"use_aux_hidden_state": True, "eagle_aux_hidden_state_layer_ids": [-1, 1, 3]}
    assert fix.patch == {"eagle_config": block}
    assert fix.by_hand == ()
    assert "id + 1" in (fix.rule or "")
    assert "0.5.22" in (fix.valid_for or "")


def test_kimis_embedding_is_zero() -> None:
    declared = made_declared(
        (2, 4, 5), LATER, config_ids=(2, 4, 5), target_class="KimiK25ForConditionalGeneration", layers=61
    )
    fix = fixed(declared=declared)
    assert fix is not None
    assert fix.patch["eagle_config"]["eagle_aux_hidden_state_layer_ids"] == [0, 2, 4]


def test_nothing_to_mend_is_none() -> None:
    assert fixed((Made(), WORSE), declared=made_declared((0, 2, 4), EMBED, config_ids=(-1, 1, 3))) is None


def test_a_flag_that_config_knows() -> None:
    readings = (Made(changes=("feedback=normed",)), Made((0.75, 0.35, 0.35, 0.35)), WORSE)
    fix = fixed(readings, declared=made_declared((0, 2, 4), EMBED))
    assert fix == DrafterFix(patch={"norm_output": True})


def test_what_no_config_line_mends_is_told() -> None:
    declared = replace(made_declared((0, 2, 4), EMBED), changes=("residual=raw",))
    served = Made((0.5, 0.4, 0.4, 0.4), changes=("residual=raw",))
    flag = GraphFlag(name="residual", value="normed", source="config", evidence="config.json", served="raw")
    fix = fixed((Made(), served, WORSE), declared=declared, checkpoint_graph=(flag,))
    assert fix is not None
    assert fix.patch == {}
    assert "vLLM" in fix.by_hand[0]


def test_fcs_order_is_no_matter_of_ids() -> None:
    swapped = (Made(slots=(1, 0, 2)), Made((0.30, 0.3, 0.3, 0.3), LATER), Made((0.3, 0.3, 0.3, 0.3)))
    fix = fixed(swapped)
    assert fix is not None
    assert fix.patch == {}
    assert "fc.weight to [1, 0, 2]" in fix.by_hand[0]


@pytest.mark.parametrize(
    ("config", "label", "patch"),
    [
        ({}, "theta 1e+06", {"rope_theta": 1e6}),
        (
            {"rope_parameters": {"rope_theta": 1e4}},
            "theta 1e+06",
            {"rope_theta": 1e6, "rope_parameters": {"rope_theta": 1e6}},
        ),
        ({"rope_scaling": {"factor": 2.0}}, "unscaled", {"rope_scaling": None}),
        (
            {"rope_parameters": {"rope_theta": 1e4, "rope_type": "linear", "factor": 2.0}},
            "unscaled",
            {"rope_scaling": None, "rope_parameters": {"factor": None, "rope_type": "default"}},
        ),
        (
            {"rope_scaling": {"partial_rotary_factor": 0.5}},
            "full",
            {"partial_rotary_factor": None, "rope_scaling": {"partial_rotary_factor": None}},
        ),
    ],
)
def test_rotary_parameters_in_every_home(config: dict[str, Any], label: str, patch: dict[str, Any]) -> None:
    readings = (Made(changes=(f"rope={label}",)), Made((0.6, 0.35, 0.35, 0.35)), WORSE)
    declared = made_declared((0, 2, 4), EMBED)
    fix = fixed(readings, declared=declared, checkpoint_config_json=json.dumps(config))
    assert fix is not None
    assert fix.patch == patch


@pytest.mark.parametrize("name", [path.stem for path in sorted(GOLDEN.glob("*speculators*.json"))])
def test_a_nested_config_becomes_a_flat_one_of_the_same_drafter(tmp_path: Path, name: str) -> None:
    text = (GOLDEN / f"{name}.json").read_text(encoding="utf-8")
    fix = fixed(checkpoint_config_json=text)
    assert fix is not None
    made = merged(json.loads(text), fix.patch)
    flat = read_drafter_config(write_model(tmp_path / "flat", made, {}))
    assert (flat.nested, flat.config_ids) == (False, (-1, 1, 3))


def test_the_patch_makes_the_new_of_the_old() -> None:
    old = {"a": 1, "b": {"c": 1, "d": 2}, "e": [1], "f": 1}
    new = {"a": 1, "b": {"c": 2}, "e": [2], "g": {"h": 1}, "f": {"i": 1}}
    assert merged(old, merge_patch(old, new)) == new
