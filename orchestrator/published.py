"""`published.json`, shipped with this package: what others published of drafters, as measurements to compare with.

SpecBundle's 440 served points, model cards, InferenceX, vLLM's and SGLang's own numbers. Names go from the general to
the particular, `specbundle/kimi-k2-instruct/3-1-4/gsm8k`; the beginning of one, up to a `/`, means all points below it.
"""

import json
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from orchestrator.compare.closest import closest
from orchestrator.compare.definitions import ACCEPT_LENGTH_PER_VERIFY, ACCEPT_LENGTH_POOLED
from orchestrator.errors import NotFoundError
from orchestrator.records.measurement import Fact, Measurement, MeasurementSet, Series
from orchestrator.records.published import PublishedPoint

COUNTED = {
    "pooled": ("accept_length_pooled", ACCEPT_LENGTH_POOLED),
    "per_verify": ("accept_length_per_verify", ACCEPT_LENGTH_PER_VERIFY),
    "unknown": ("accept_length_pooled", "an accept length; how it was counted the source does not tell"),
}
THROUGHPUT = "output tokens / seconds, as {tool} counts them"
SPEEDUP = "output throughput / that of plain decoding, in another run"
UNKNOWN_ALWAYS = ("gpu", "prompts_sha256", "temperature", "max_new_tokens", "cache_policy")
"""Hard circumstances that none of these sources tells in a form that could be compared."""
_DRAFTERS = ("draft", "num_steps", "eagle_topk", "num_draft_tokens")
_VARYING = ("target", "dataset", *_DRAFTERS)


def published_points(model: str | None = None) -> tuple[PublishedPoint, ...]:
    """Every point, or those whose target or drafter has `model` in its name (capitals do not matter)."""
    wanted = (model or "").lower()
    return tuple(point for point in _points() if wanted in f"{point.target} {point.draft}".lower())


def published_set(name: str) -> MeasurementSet:
    """The point of that name, or all points below it. Raises NotFoundError with the closest names."""
    chosen = [point for point in _points() if point.name == name or point.name.startswith(f"{name}/")]
    if not chosen:
        raise NotFoundError(f"no published number of that name: {name}", hint=_closest(name))
    first = chosen[0]
    return MeasurementSet(
        run_id=f"published:{name}",
        origin="published",
        tool=", ".join(sorted({point.tool for point in chosen})),
        job_kind="published",
        label="; ".join(sorted({point.note for point in chosen if point.note})),
        source="; ".join(sorted({point.source for point in chosen})),
        measurements=tuple(_measurements(chosen)),
        unknown=(
            f"on which GPU, with which prompts and sampling {'it' if len(chosen) == 1 else 'each'} was measured",
            "how far another run of the same would have been off",
            *(("how many prompts stand behind it",) if first.n is None else ()),
        ),
    )


def _measurements(points: Sequence[PublishedPoint]) -> Iterator[Measurement]:
    """A case a point, and a plain one where that is told; the cases tell what varies among these points."""
    varying = [name for name in _VARYING if len({getattr(point, name) for point in points}) > 1]
    plain: set[tuple[Fact, ...]] = set()
    unknown = tuple(Fact(name=name, value=None) for name in UNKNOWN_ALWAYS)
    for point in points:
        facts = _facts(point)
        yield Measurement(
            case=_case("spec", point, [fact for fact in facts if fact.name in varying]),
            series=tuple(_series(point)),
            hard=(*facts, *unknown),
            soft=tuple(Fact(name=name, value=None) for name in ("sglang_version", "host")),
            warnings=_warnings(point),
        )
        case = _case(
            "plain", point, [fact for fact in facts if fact.name in varying and fact.name in ("target", "dataset")]
        )
        if point.plain_output_tok_s is not None and case not in plain:
            plain.add(case)
            yield Measurement(
                case=case,
                series=(_one("output_throughput_tok_s", "tok/s", THROUGHPUT.format(tool=point.tool),
                             point.plain_output_tok_s, point.n),),
                hard=(*(fact for fact in facts if fact.name not in _DRAFTERS), *unknown),
                warnings=_warnings(point),
            )  # fmt: skip


def _case(side: str, point: PublishedPoint, varying: Sequence[Fact]) -> tuple[Fact, ...]:
    load = () if point.concurrency is None else (Fact(name="concurrency", value=str(point.concurrency)),)
    return (Fact(name="side", value=side), *load, *varying)


def _facts(point: PublishedPoint) -> tuple[Fact, ...]:
    told = (*((name, getattr(point, name)) for name in _VARYING), ("harness", point.tool))
    return tuple(Fact(name=name, value=value) for name, value in told)


def _series(point: PublishedPoint) -> Iterator[Series]:
    if point.accept_length is not None:
        metric, definition = COUNTED[point.counted]
        yield _one(metric, "tokens", definition, point.accept_length, point.n)
    if point.output_tok_s is not None:
        definition = THROUGHPUT.format(tool=point.tool)
        yield _one("output_throughput_tok_s", "tok/s", definition, point.output_tok_s, point.n)
    if point.speedup is not None:
        yield _one("speedup", "ratio", SPEEDUP, point.speedup, point.n)


def _one(metric: str, unit: str, definition: str, value: float, n: int | None) -> Series:
    return Series(metric=metric, unit=unit, definition=definition, level="summary", y=(value,), n=n)


def _warnings(point: PublishedPoint) -> tuple[str, ...]:
    if not point.is_suspicious:
        return ()
    return (
        f"speed-up {point.speedup:.2f} above accept length {point.accept_length:.2f}: a speculative step would cost "
        "less than a plain one, so the published plain side is suspicious",
    )


@cache
def _points() -> tuple[PublishedPoint, ...]:
    value = json.loads(Path(__file__).with_name("published.json").read_bytes())
    return tuple(_point(group, *numbers) for group in value["groups"] for numbers in group["points"])


def _point(  # noqa: PLR0917 - the columns of the file
    group: dict[str, Any],
    dataset: str,
    setting: str,
    accept_length: float | None,
    output: float | None,
    plain: float | None,
    n: int | None = None,
) -> PublishedPoint:
    steps, topk, tokens = [*(part or None for part in setting.split("-")), None, None][:3]
    return PublishedPoint(
        name="/".join(filter(None, (group["name"], setting, dataset))),
        target=group["target"],
        draft=group["draft"],
        dataset=None if dataset == "unknown" else dataset,
        num_steps=steps,
        eagle_topk=topk,
        num_draft_tokens=tokens,
        concurrency=group["concurrency"],
        accept_length=accept_length,
        counted=group["counted"],
        output_tok_s=output,
        plain_output_tok_s=plain,
        n=n,
        tool=group["tool"],
        source=group["source"],
        note=group["note"],
    )


def _closest(name: str) -> str:
    parts = [point.name.split("/") for point in _points()]
    close = closest(name, {"/".join(part[:depth]) for part in parts for depth in range(1, len(part) + 1)})
    return f"did you mean: {', '.join(close)}" if close else "`eagle3-remote baseline list --published` shows them"
