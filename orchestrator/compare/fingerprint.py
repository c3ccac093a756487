"""Whether two measurements may be compared: which circumstances must be alike, which should be, which are under test.

The vocabulary of facts. Hard: `target`, `draft`, `target_weights`, `draft_weights` (what lies at these paths),
`algorithm`, `num_steps`, `eagle_topk`, `num_draft_tokens`, `dtype`, `quantization`, `draft_quantization`,
`kv_cache_dtype`, `gpu`, `tp`, `dp`, `ep`, `pp`, `dataset`, `prompts_sha256`, `prompts`, `temperature`, `top_p`,
`top_k`, `max_new_tokens`, `ignore_eos`, `harness`, `simulated_acceptance`, `cache_policy`, and `speculative_adaptive`
where a server has it on; the load itself (`side`, `concurrency`, `request_rate`, `split`) is the case. Soft:
`sglang_version`, `attention_backend`, `cuda_graph_max_bs`, `mem_fraction_static`, `requests_a_point`, `host`, ...
What a side does not tell is unknown, and unknown is no mismatch; it is told, also where neither side tells it. Other
definitions of a metric are the series' own matter.
"""

import difflib
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from orchestrator.compare.bench_facts import DRAFT_ARGUMENTS, HARD_ARGUMENTS
from orchestrator.compare.comparison import Difference, SideName
from orchestrator.errors import UsageError
from orchestrator.records.measurement import Fact, Measurement

SERVED = (
    *HARD_ARGUMENTS,
    *DRAFT_ARGUMENTS,
    *("target_weights", "draft_weights"),
    *("gpu", "dataset", "prompts_sha256", "prompts", "temperature", "top_p", "top_k", "max_new_tokens", "ignore_eos"),
    *("harness", "simulated_acceptance", "cache_policy"),
)
"""Hard circumstances of a served benchmark: one that neither side tells is unknown as well."""
PROMPTS = ("dataset", "prompts_sha256", "prompts", "prompts_path")
IMPLIED = {
    "side": ("side", *DRAFT_ARGUMENTS, "draft_weights", "draft_config", "simulated_acceptance", "speculative_adaptive"),
    "draft": ("draft", "draft_folder", "draft_weights", "draft_config"),
    "target": ("target", "target_weights", "target_config"),
    "num_steps": ("num_steps", "num_draft_tokens"),
    "eagle_topk": ("eagle_topk", "num_draft_tokens"),
    "gpu": ("gpu", "gpus_of_the_host"),
    **dict.fromkeys(PROMPTS, PROMPTS),
}
"""What cannot but vary with a factor: SGLang makes num_draft_tokens of num_steps; plain decoding has no drafter."""
SAME_BY_CONTENT = {"dataset": "prompts_sha256", "target": "target_weights", "draft": "draft_weights"}
"""Names of a place, and the fact that tells what lies there."""
ALIASES = {argument: name for name, argument in {**HARD_ARGUMENTS, **DRAFT_ARGUMENTS}.items() if argument != name}
"""Server arguments by the name of the fact they tell."""
HARD_WHERE_ON = "speculative_adaptive"
"""With this argument on the number of steps changes while a server runs; one that tells its arguments and not this one
runs without it."""
PLACES = frozenset({"host", "port", "nccl_port", "dist_init_addr", "served_model_name", "random_seed", "log_level"})
"""Arguments that differ from start to start and change no figure."""


@dataclass(frozen=True, kw_only=True)
class Circumstances:
    """What is not alike between two measurements, by what it means."""

    hard: tuple[Difference, ...]
    soft: tuple[Difference, ...]
    arguments: tuple[Difference, ...]
    varied: tuple[Difference, ...]
    unknown: tuple[str, ...]
    """Hard circumstances that a side does not tell."""
    silent: tuple[SideName, ...]
    """Sides that tell none of them, but perhaps the tool."""


def circumstances(ours: Measurement, theirs: Measurement, vary: Collection[str] = ()) -> Circumstances:
    """Hold two measurements against each other; `vary` names the factors under test."""
    factors = implied(vary)
    names = () if _is_drafter_test(ours) or _is_drafter_test(theirs) else SERVED
    hard, unknown = _differences(_known(ours.case, ours.hard), _known(theirs.case, theirs.hard), names)
    soft = _soft(ours, theirs)
    soft = [item for item in soft if item.name not in {difference.name for difference in hard}]
    for name, content in SAME_BY_CONTENT.items():  # the very same under another name
        if _same(content, ours, theirs):
            soft += [item for item in hard if item.name == name]
            hard = [item for item in hard if item.name != name]
    arguments = _arguments(ours, theirs)
    adaptive = [item for item in arguments if item.name == HARD_WHERE_ON]
    hard += [item for item in adaptive if any("true" in (value or "").lower() for value in (item.ours, item.theirs))]
    arguments = [item for item in arguments if item not in adaptive]
    if "draft" in factors and "side" in factors:  # plain decoding has none of the drafter's arguments
        arguments = [item for item in arguments if not item.name.startswith("speculative_")]
    return Circumstances(
        hard=tuple(item for item in hard if item.name not in factors),
        soft=tuple(item for item in soft if item.name not in factors),
        arguments=tuple(item for item in arguments if item.name not in factors),
        varied=tuple(item for item in (*hard, *soft, *arguments) if item.name in factors),
        unknown=tuple(name for name in unknown if name not in factors),
        silent=_silent(ours, theirs),
    )


def _is_drafter_test(measurement: Measurement) -> bool:
    return any(fact.name == "split" for fact in measurement.case)


def _silent(ours: Measurement, theirs: Measurement) -> tuple[SideName, ...]:
    def is_silent(one: Measurement) -> bool:
        return not any(fact.value for fact in one.hard if fact.name != "harness")

    sides: tuple[tuple[SideName, Measurement], ...] = (("ours", ours), ("theirs", theirs))
    return tuple(name for name, one in sides if is_silent(one))


def _soft(ours: Measurement, theirs: Measurement) -> list[Difference]:
    """Soft circumstances that differ, also where a side alone tells them; not where a side tells none at all."""
    mine, other = _known(ours.soft), _known(theirs.soft)
    if not any(mine.values()) or not any(other.values()):
        return []
    names = dict.fromkeys((*mine, *other))
    return [
        Difference(name=name, ours=mine.get(name), theirs=other.get(name))
        for name in names
        if mine.get(name) != other.get(name)
    ]


def _arguments(ours: Measurement, theirs: Measurement) -> list[Difference]:
    """Effective arguments that no other circumstance tells; one that a server alone tells differs from an unknown."""
    mine, other = _known(ours.arguments), _known(theirs.arguments)
    if not mine or not other:
        return []
    told = {ALIASES.get(item.name, item.name) for item in (*ours.hard, *ours.soft, *theirs.hard, *theirs.soft)}
    return [
        Difference(name=name, ours=mine.get(name), theirs=other.get(name))
        for name in dict.fromkeys((*mine, *other))
        if mine.get(name) != other.get(name) and name not in PLACES and ALIASES.get(name, name) not in told
    ]


def implied(vary: Iterable[str]) -> frozenset[str]:
    """The factors and what cannot but vary with them, under the facts' names."""
    names = [ALIASES.get(key, key) for key in vary]
    return frozenset(name for key in names for name in IMPLIED.get(key, (key,)))


def value_of(measurement: Measurement, key: str) -> str | None:
    """What a measurement tells of a circumstance, wherever it stands; None = it does not tell."""
    name = ALIASES.get(key, key)
    for facts in (measurement.case, measurement.hard, measurement.soft, measurement.arguments):
        for fact in facts:
            if ALIASES.get(fact.name, fact.name) == name and fact.value is not None:
                return fact.value
    return None


def require_known(keys: Iterable[str], option: str, measurements: Sequence[Measurement]) -> None:
    """Refuse circumstances that nobody tells. Raises UsageError with the closest names."""
    known = {
        ALIASES.get(fact.name, fact.name)
        for item in measurements
        for fact in (*item.case, *item.hard, *item.soft, *item.arguments)
    }
    for key in keys:
        if ALIASES.get(key, key) not in known:
            close = difflib.get_close_matches(key, sorted({*known, *ALIASES}), n=3)
            told = ", ".join(close or sorted(name for name in known if name in _case_and_hard(measurements)))
            raise UsageError(f"{option}: none of these measurements tells of: {key}", hint=f"they tell of: {told}")


def _case_and_hard(measurements: Sequence[Measurement]) -> set[str]:
    return {fact.name for item in measurements for fact in (*item.case, *item.hard)}


def _known(*groups: tuple[Fact, ...]) -> dict[str, str | None]:
    return {fact.name: fact.value for group in groups for fact in group}


def _differences(
    ours: dict[str, str | None], theirs: dict[str, str | None], asked: Iterable[str]
) -> tuple[list[Difference], list[str]]:
    """What differs, and the names that a side does not tell, of those `asked` for as well."""
    found, unknown = [], []
    for name in dict.fromkeys((*ours, *theirs, *asked)):
        mine, other = ours.get(name), theirs.get(name)
        if mine is None or other is None:
            unknown.append(name)
        elif mine != other:
            found.append(Difference(name=name, ours=mine, theirs=other))
    return found, unknown


def _same(name: str, ours: Measurement, theirs: Measurement) -> bool:
    value = value_of(ours, name)
    return value is not None and value == value_of(theirs, name)
