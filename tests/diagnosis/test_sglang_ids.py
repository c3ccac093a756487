import itertools

import pytest

from orchestrator.diagnosis.sglang_ids import spell

declared = pytest.importorskip("remote_payload.standalone.checkpoint.declared")

TABLE = [
    # states (fc order), class, layers -> ids
    ((0, 2, 4), "LlamaForCausalLM", 8, (-1, 1, 3)),
    ((2, 4, 5), "LlamaForCausalLM", 8, (1, 3, 4)),
    ((2, 30, 58), "Qwen3MoeForCausalLM", 61, (1, 29, 57)),
    ((0, 3, 31), "KimiK25ForConditionalGeneration", 61, (0, 3, 31)),
    ((0, 2, 30), "DeepseekV3ForCausalLM", 61, (0, 2, 30)),
    ((2, 30, 58), "DeepseekV3ForCausalLM", 61, (1, 29, 57)),
    ((3, 31, 59), "DeepseekV3ForCausalLM", 61, (3, 31, 59)),
    ((1, 30, 57), "DeepseekV3ForCausalLM", 61, (30, 1, 57)),
    ((1, 18, 33), "GptOssForCausalLM", 36, (0, 17, 32)),
    ((1, 18, 36), "GptOssForCausalLM", 36, (1, 18, 36)),
]


@pytest.mark.parametrize(("states", "target_class", "layers", "ids"), TABLE)
def test_states_are_spelled_for_their_class(
    states: tuple[int, ...], target_class: str, layers: int, ids: tuple[int, ...]
) -> None:
    assert spell(states, target_class, layers).ids == ids


def _captured(ids: tuple[int, ...], target_class: str, layers: int, slots: int) -> tuple[int, ...] | None:
    """What the payload's forward rule makes of the ids."""
    rule = declared._rule(target_class, ids, layers)
    wanted = [index + rule.shift for index in ids]
    captured: tuple[int, ...] = declared._captured(wanted, layers, rule)
    assert declared._shortfall(captured, slots, wanted) is None
    return captured


@pytest.mark.parametrize("target_class", ["LlamaForCausalLM", "DeepseekV3ForCausalLM", "GptOssForCausalLM"])
def test_every_spelling_is_read_back_by_the_forward_rule(target_class: str) -> None:
    layers = 6
    spelled = 0
    for states in itertools.permutations(range(layers + 1), 3):
        spelling = spell(states, target_class, layers)
        if spelling.ids is None:
            assert max(states) == layers
            assert target_class != "GptOssForCausalLM"
            continue
        spelled += 1
        assert _captured(spelling.ids, target_class, layers, 3) == tuple(sorted(states))
    assert spelled >= 6 * 5 * 4


def test_another_order_needs_the_fc_reordered() -> None:
    spelling = spell((4, 0, 2), "LlamaForCausalLM", 8)
    assert spelling.ids == (-1, 1, 3)
    assert spelling.block_order == (1, 2, 0)
    assert spell((0, 2, 4), "LlamaForCausalLM", 8).block_order is None


def test_what_cannot_be_spelled_says_why() -> None:
    assert "cannot capture state 8" in (spell((0, 2, 8), "LlamaForCausalLM", 8).problem or "")
    assert "no rule is known" in (spell((0, 2, 4), "MambaForCausalLM", 8).problem or "")
    assert "unnamed" in (spell((0, 2, 4), None, None).problem or "")
    assert spell((1,), "DeepseekV3ForCausalLM", 8).problem is not None
    assert "does not exist" in (spell((0, 2, 9), "GptOssForCausalLM", 8).problem or "")


@pytest.mark.parametrize(
    ("states", "target_class", "since"),
    [
        ((0, 2, 4), "LlamaForCausalLM", "0.5.22"),
        ((0, 2, 4), "Llama4ForConditionalGeneration", "0.5.23"),
        ((0, 2, 4), "Glm4MoeForCausalLM", "0.5.23"),
        ((2, 4, 5), "Glm4MoeForCausalLM", "0.5.6"),
        ((0, 2, 4), "MiniMaxM2ForCausalLM", "0.5.12"),
        ((0, 2, 4), "Qwen3ForCausalLM", "0.4.10"),
        ((2, 4, 5), "Gemma3ForCausalLM", "0.5.12"),
        ((2, 30, 58), "KimiK25ForConditionalGeneration", "0.5.10"),
        ((0, 3, 31), "Glm4MoeLiteForCausalLM", "0.5.23"),
        ((0, 3, 31), "DeepseekV3ForCausalLM", "0.5.15"),
        ((2, 18, 34), "GptOssForCausalLM", "0.5.3"),
        ((0, 18, 34), "GptOssForCausalLM", "0.5.21"),
    ],
)
def test_the_oldest_version_is_that_of_the_class(states: tuple[int, ...], target_class: str, since: str) -> None:
    assert spell(states, target_class, 61).valid_for.startswith(f"SGLang {since} to 0.5.23")
