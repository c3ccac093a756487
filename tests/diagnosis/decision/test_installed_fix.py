"""The fix is spelled for the SGLang that is installed, by its own source; the rules are those of real versions."""

from dataclasses import replace

import pytest

from orchestrator.diagnosis.decision.decide import decide
from orchestrator.diagnosis.decision.fix import Fix
from orchestrator.diagnosis.decision.inputs import Known
from orchestrator.diagnosis.installed_ids import Source
from tests.diagnosis.decision.scenes import fed, offline, story
from tests.diagnosis.test_effective_capture import KIMI, LLAMA, MOE, OSS, rule, target


def fix(version, target_class, layers, trained, served=(5, 6, 7), **changes) -> Fix:
    capture = replace(fed(served, trained), target_class=target_class, target_layers=layers, sglang_version=version)
    read = replace(rule(version, target_class), **changes)
    found = decide(Known(fed=capture, source=Source(rule=read, target_config=target(target_class, layers)))).fix
    assert found is not None
    return found


def ids_of(found: Fix) -> list[int]:
    return found.config["eagle_config"]["eagle_aux_hidden_state_layer_ids"]


@pytest.mark.parametrize(
    ("version", "target_class", "layers", "trained", "ids"),
    [
        ("0.5.12", KIMI, 61, (3, 31, 59), [2, 30, 58]),
        ("0.5.15", KIMI, 61, (3, 31, 59), [3, 31, 59]),
        ("0.5.23", KIMI, 61, (0, 3, 31), [0, 3, 31]),
        ("0.5.23", KIMI, 61, (1, 30, 57), [30, 1, 57]),
        ("0.5.9", OSS, 36, (2, 18, 34), [1, 17, 33]),
        ("0.5.23", OSS, 36, (1, 18, 36), [1, 18, 36]),
        ("0.4.10", MOE, 48, (2, 21, 40), [1, 20, 39]),
        ("0.5.23", LLAMA, 8, (0, 2, 4), [-1, 1, 3]),
    ],
)
def test_ids_that_the_installed_source_reads_as_meant(version, target_class, layers, trained, ids):
    found = fix(version, target_class, layers, trained)
    assert ids_of(found) == ids
    assert found.can_be_applied
    assert found.valid_for == f"SGLang {version}, as installed"


@pytest.mark.parametrize(
    ("version", "target_class", "layers", "trained", "ids", "newer"),
    [
        ("0.5.12", KIMI, 61, (0, 3, 31), [-1, 2, 30], "SGLang 0.5.15 to 0.5.23 with ids [0, 3, 31]"),
        ("0.5.21", LLAMA, 8, (0, 2, 4), [-1, 1, 3], "SGLang 0.5.22 to 0.5.23"),
    ],
)
def test_a_source_without_the_embedding_names_its_patch_and_the_ids_with_it(
    version, target_class, layers, trained, ids, newer
):
    found = fix(version, target_class, layers, trained)
    assert ids_of(found) == ids
    assert not found.can_be_applied
    assert "cannot capture the embedding output" in str(found.sglang)
    assert "where `residual is None`" in str(found.sglang)
    assert newer in str(found.sglang)
    assert found.valid_for == f"SGLang {version} with that change"


@pytest.mark.parametrize(
    ("version", "target_class", "layers", "trained", "words"),
    [
        ("0.5.9", KIMI, 61, (3, 31, 59), "cannot be told which layers to capture"),
        ("0.5.23", LLAMA, 8, (2, 4, 8), "is never met"),
    ],
)
def test_what_this_sglang_cannot_do_at_all(version, target_class, layers, trained, words):
    found = fix(version, target_class, layers, trained)
    assert not found.config
    assert not found.can_be_applied
    assert words in str(found.sglang)


@pytest.mark.parametrize(
    ("version", "trained", "words"),
    [
        ("0.5.12", (3, 31, 59), "[2, 30, 58]"),
        ("0.5.15", (3, 31, 59), "[3, 31, 59]"),
        ("0.5.12", (0, 3, 31), "residual"),
    ],
)
def test_the_remedy_of_the_finding_is_spelled_as_the_fix_is(version, trained, words):
    capture = replace(fed((5, 6, 7), trained), target_class=KIMI, target_layers=61, sglang_version=version)
    source = Source(rule=rule(version, KIMI), target_config=target(KIMI, 61))
    (finding,) = (one for one in decide(Known(fed=capture, source=source)).findings if one.check == "K12")
    assert words in " ".join(finding.remedy)


def test_a_class_without_a_table_is_found_by_its_source():
    """The rule of a class that no table names: the candidates alone are tried."""
    found = fix("0.5.23", LLAMA, 8, (2, 4, 5))
    odd = replace(fed((5, 6, 7), (2, 4, 5)), target_class="ExaoneMoEForCausalLM", target_layers=8)
    read = replace(rule("0.5.23", LLAMA), target_class="ExaoneMoEForCausalLM")
    same = decide(Known(fed=odd, source=Source(rule=read, target_config=target("ExaoneMoEForCausalLM", 8)))).fix
    assert same is not None
    assert ids_of(same) == ids_of(found) == [1, 3, 4]
    assert same.can_be_applied


def test_a_source_that_does_not_tell_leaves_the_table_and_says_so():
    found = fix("0.5.23", LLAMA, 8, (2, 4, 5), forward=None)
    assert ids_of(found) == [1, 3, 4]
    assert "by table, not read on host" in str(found.valid_for)


def test_the_storys_own_fix_is_that_of_the_installed_source():
    source = Source(rule=rule("0.5.23", LLAMA), target_config=target(LLAMA, 8))
    found = decide(story(source=source)).fix
    assert found is not None
    assert ids_of(found) == [-1, 1, 3]
    assert found.can_be_applied
    assert found.valid_for == "SGLang 0.5.23, as installed"
    old = decide(story(source=Source(rule=rule("0.5.21", LLAMA), target_config=target(LLAMA, 8)))).fix
    assert old is not None
    assert not old.can_be_applied
    assert ids_of(old) == [-1, 1, 3]


def test_the_offline_tests_own_finding_is_spelled_as_the_fix_is():
    """The rows alone prove it, so the remedy is the wiring verdict's: it names what is installed, as the fix does."""
    old = story(fed=None, served=None, source=Source(rule=rule("0.5.21", LLAMA), target_config=target(LLAMA, 8)))
    found = decide(old)
    (finding,) = (one for one in found.findings if one.check == "K5")
    assert found.fix is not None
    assert f"first: {found.fix.sglang}" == finding.remedy[0]
    assert "[-1, 1, 3]" in finding.remedy[1]
    assert finding.remedy[2].endswith("by SGLang 0.5.21 with that change")
    assert "by SGLang 0.5.21, as installed" in finding.remedy[3]
    by_table = decide(story(fed=None, served=None))
    (finding,) = (one for one in by_table.findings if one.check == "K5")
    assert "by the rule `id + 1 (LlamaForCausalLM)`, SGLang 0.5.22 to 0.5.23" in finding.remedy[1]


def test_every_check_spells_ids_by_what_is_installed():
    """On 0.5.12 this class's ids are one below the states, on 0.5.15 they are the states."""
    for version, ids in (("0.5.12", "[2, 30, 58]"), ("0.5.15", "[3, 31, 59]")):
        source = Source(rule=rule(version, KIMI), target_config=target(KIMI, 61))
        found = offline().by(source).measured
        spelled = replace(
            found,
            result=replace(found.result, declared=replace(found.result.declared, target_class=KIMI, target_layers=61)),
        )
        assert str(list(spelled.spelling((3, 31, 59)).ids or ())) == ids
