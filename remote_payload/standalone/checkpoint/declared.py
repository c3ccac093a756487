"""What SGLang would feed the drafter, from its config and the target's class, without running SGLang.

SGLang captures the un-normed residual stream at layer entry, so capture index i is HF `hidden_states[i]`. It reads ids
only from `eagle_config`; anything else silently means its defaults [2, n // 2, n - 3]. Captures come in layer order
whatever the order of the list, and duplicates collapse. Source: SGLang 0.5.23 `set_eagle3_layers_to_capture` of each
model, seen on running servers for Llama, DeepseekV3 and KimiK25. Not covered: models without that method.
"""

from dataclasses import dataclass

from remote_payload.schema.sglang import DEEPSEEK_CLASSES, PLAIN_CLASSES
from remote_payload.schema.standalone import DeclaredWiring
from remote_payload.standalone.checkpoint.config import DrafterConfig
from remote_payload.standalone.checkpoint.flat_config import eagle_config


@dataclass(frozen=True, kw_only=True)
class _Rule:
    """SGLang's rule for a family of targets, before any ids are put through it."""

    name: str
    valid_for: str
    shift: int
    last_layer: bool = False
    """Whether the last layer's output can be captured."""


def declare(
    config: DrafterConfig,
    slots: int,
    target_class: str | None,
    target_layers: int | None,
    states: tuple[int, ...] | None,
    changes: tuple[str, ...] = (),
) -> DeclaredWiring:
    """What the drafter's config declares, as HF `hidden_states` indices and as positions in the labelled `states`.

    `changes` is how SGLang's computation differs from the checkpoint's own.
    """
    if config.reads_final_state or eagle_config(config.flat).get("use_aux_hidden_state") is False:
        return _final_state(config, target_class, target_layers, changes)
    rule = _rule(target_class, config.config_ids, target_layers)
    ids = config.config_ids
    captured: tuple[int, ...] | None = None
    problem: str | None
    if rule is None:
        problem = f"no rule is known for the target's class: {target_class or 'unnamed'}"
    elif ids is None and target_layers is None:
        problem = "the target's config.json has no num_hidden_layers, so SGLang's defaults are unknown"
    else:
        wanted = _defaults(target_layers or 0) if ids is None else [index + rule.shift for index in ids]
        captured = _captured(wanted, target_layers, rule)
        problem = _shortfall(captured, slots, wanted)
    slots_fed: tuple[int, ...] | None = None
    if captured is not None and problem is None and states is not None and set(captured) <= set(states):
        slots_fed = tuple(states.index(index) for index in captured)
    return DeclaredWiring(
        config_ids=ids,
        ignored_top_level_ids=config.top_level_ids,
        target_class=target_class,
        target_layers=target_layers,
        rule=rule.name if rule else "unknown",
        valid_for=rule.valid_for if rule else "no version",
        captured=captured,
        problem=problem,
        slots=slots_fed,
        changes=changes,
    )


def _final_state(
    config: DrafterConfig, target_class: str | None, target_layers: int | None, changes: tuple[str, ...]
) -> DeclaredWiring:
    """Nothing is captured. A drafter without fc wants it so, and any slot stands for the one it does not read.

    One with fc is fed the target's final normed state past its fc: accept length about 1 on a running server. SGLang
    looks for the flag in `eagle_config` alone.
    """
    problem = None
    if not config.reads_final_state:
        problem = (
            "`use_aux_hidden_state: false` in `eagle_config` captures no states: SGLang feeds the drafter the target's "
            "final state alone and passes over its fc, accept length about 1.00"
        )
    return DeclaredWiring(
        config_ids=config.config_ids,
        ignored_top_level_ids=config.top_level_ids,
        target_class=target_class,
        target_layers=target_layers,
        rule="the final state alone (use_aux_hidden_state: false)",
        valid_for="SGLang 0.5.23",
        captured=(),
        problem=problem,
        slots=(0,) if problem is None else None,
        changes=changes,
    )


def _rule(target_class: str | None, ids: tuple[int, ...] | None, layers: int | None) -> _Rule | None:
    if target_class in PLAIN_CLASSES:
        family = "defaults [2, n // 2, n - 3]" if ids is None else "id + 1"
        valid = "SGLang 0.4.10 to 0.5.23"
        if ids is not None and -1 in ids and target_class == "LlamaForCausalLM":
            valid = "SGLang 0.5.22 to 0.5.23; earlier versions fail at warm-up on id -1"
        return _Rule(name=f"{family} ({target_class})", valid_for=valid, shift=1)
    if target_class is not None and target_class in DEEPSEEK_CLASSES:
        return _deepseek_rule(ids, "0.5.10" if target_class.startswith("Kimi") else "0.5.5")
    if target_class == "GptOssForCausalLM":
        raw = ids is not None and layers is not None and max(ids, default=0) == layers
        name = "defaults [2, n // 2, n - 3]" if ids is None else "id as it is (max id = n)" if raw else "id + 1"
        return _Rule(
            name=f"{name} (gpt_oss)", valid_for="SGLang 0.5.21 to 0.5.23", shift=0 if raw else 1, last_layer=raw
        )
    return None


def _deepseek_rule(ids: tuple[int, ...] | None, first: str) -> _Rule:
    """deepseek_v2.py, the language model of DeepSeek V2/V3 and Kimi K2/K2.5: + 1 only when the first id is 1.

    `first` is the first SGLang version that serves EAGLE-3 on the class.
    """
    if ids is None:
        return _Rule(name="defaults [2, n // 2, n - 3] (deepseek_v2)", valid_for=f"SGLang {first} to 0.5.23", shift=1)
    if ids[:1] == (1,):
        return _Rule(name="id + 1, as the first id is 1 (deepseek_v2)", valid_for=f"SGLang {first} to 0.5.23", shift=1)
    since = "0.5.15" if 0 in ids else "0.5.13"
    return _Rule(
        name="id as it is, as the first id is not 1 (deepseek_v2)",
        valid_for=f"SGLang {since} to 0.5.23; {first} to 0.5.12 added 1",
        shift=0,
    )


def _defaults(layers: int) -> list[int]:
    return [2, layers // 2, layers - 3]


def _captured(wanted: list[int], layers: int | None, rule: _Rule) -> tuple[int, ...]:
    """Indices the forward loop meets: 0 .. n - 1, and n where the model can capture behind its last layer."""
    limit = None if layers is None else layers if rule.last_layer else layers - 1
    return tuple(sorted({index for index in wanted if index >= 0 and (limit is None or index <= limit)}))


def _shortfall(captured: tuple[int, ...], slots: int, wanted: list[int]) -> str | None:
    if len(captured) == slots:
        return None
    return (
        f"the drafter's fc joins {slots} states, SGLang would capture {len(captured)}: {list(captured)} of the "
        f"asked-for {wanted}; the server would not start"
    )
