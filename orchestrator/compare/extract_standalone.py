"""A drafter test as measurements: one a split of rows; every figure counted a row, which is its prompt.

Rows of the same tokens are one sample together. `declared.` before a metric is the reading that serving would feed,
`best.` the one that fits best.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath

from orchestrator.compare import definitions
from orchestrator.compare.counted import counted
from orchestrator.compare.figures import ReadingFigures, first_step_sums, mean_sums, walk_sums
from orchestrator.compare.walk import Walk
from orchestrator.records.measurement import Fact, Measurement, Series
from remote_payload.schema import RowFacts, RowsFacts, StandaloneResult

METHOD = "eagle3-remote drafter test, definitions 1"
"""Goes up where a metric of ours comes to mean something else."""


@dataclass(frozen=True, kw_only=True)
class SplitFigures:
    """One set of rows as the test reads it."""

    name: str
    """`train` or `held-out`."""
    rows: Sequence[RowFacts]
    facts: RowsFacts
    best: ReadingFigures
    declared: ReadingFigures | None
    """What serving would feed; None where that is unknown, or was not measured on these rows."""


def standalone_measurements(
    result: StandaloneResult, splits: Sequence[SplitFigures], soft: Mapping[str, str | None]
) -> tuple[Measurement, ...]:
    """Every split of the run; `soft` are circumstances that the run's record tells, e.g. the host."""
    return tuple(_measurement(result, split, soft) for split in splits)


def _measurement(result: StandaloneResult, split: SplitFigures, soft: Mapping[str, str | None]) -> Measurement:
    keys = _keys(split)
    tokens = tuple((row.tokens_sha256 or "")[:16] or row.name for row in split.rows)
    clusters = tokens if len(set(tokens)) < len(tokens) else ()
    roles = (("declared", split.declared), ("best", split.best))
    series = [item for role, reading in roles if reading is not None for item in _series(role, reading, keys, clusters)]
    served = split.declared or split.best
    skipped = len(split.facts.skipped)
    return Measurement(
        case=(Fact(name="split", value=split.name),),
        series=tuple(series),
        hard=_facts(_hard(result, split, keys)),
        soft=_facts({**_soft(result, split), **soft}),
        invalid=() if split.rows else ("no row could be used",),
        warnings=(f"{skipped} of {counted(split.facts.found, 'row was', 'rows were')} skipped",) if skipped else (),
        histogram=_histogram(served.walk),
    )


def _histogram(walk: Walk) -> tuple[int, ...]:
    return tuple(walk.histogram)


def _series(role: str, reading: ReadingFigures, keys: tuple[str, ...], clusters: tuple[str, ...]) -> list[Series]:
    steps = reading.steps
    walk, mean = (
        words.format(steps=steps) for words in (definitions.ACCEPT_LENGTH_WALK, definitions.ACCEPT_LENGTH_MEAN)
    )
    found = [
        _ratio(f"{role}.first_step_accuracy", "share", definitions.FIRST_STEP_ACCURACY, keys, first_step_sums(reading)),
        _ratio(f"{role}.accept_length_walk", "tokens", walk, keys, walk_sums(reading)),
        _ratio(f"{role}.accept_length_mean", "tokens", mean, keys, mean_sums(reading)),
    ]
    for step in range(1, steps):
        sums = (
            [row.conditional_hits[step] for row in reading.counts],
            [row.conditional_n[step] for row in reading.counts],
        )
        words = definitions.CHAIN_ACCEPTANCE.format(before=step)
        found.append(_ratio(f"{role}.step{step + 1}_acceptance", "share", words, keys, sums))
    return [replace(series, clusters=clusters) for series in found if series is not None]


def _ratio(
    metric: str, unit: str, definition: str, keys: tuple[str, ...], sums: tuple[list[int], list[int]]
) -> Series | None:
    y, x = (tuple(float(value) for value in values) for values in sums)
    if not sum(x):
        return None
    return Series(metric=metric, unit=unit, definition=definition, level="prompt", keys=keys, y=y, x=x)


def _keys(split: SplitFigures) -> tuple[str, ...]:
    """A row by its tokens, where they are known, and how many of its positions count; a copy gets a number."""
    seen: dict[str, int] = {}
    keys = []
    for row, counts in zip(split.rows, split.best.counts, strict=True):
        key = f"{(row.tokens_sha256 or '')[:16] or row.name}:{counts.n[0]}"
        seen[key] = seen.get(key, 0) + 1
        keys.append(key if seen[key] == 1 else f"{key}#{seen[key]}")
    return tuple(keys)


def _hard(result: StandaloneResult, split: SplitFigures, keys: tuple[str, ...]) -> dict[str, str | None]:
    checkpoint = result.checkpoint
    weights = checkpoint.weights_sha256
    return {
        "target": checkpoint.target,
        "draft": checkpoint.draft if weights is None else f"weights {weights[:12]}",
        "dtype": result.dtype,
        "dataset": PurePosixPath(split.facts.folder).name or split.facts.folder,
        "prompts_sha256": hashlib.sha256("\n".join(sorted(keys)).encode()).hexdigest()[:16],
        "prompts": str(len(keys)),
        "harness": METHOD,
    }


def _soft(result: StandaloneResult, split: SplitFigures) -> dict[str, str | None]:
    declared = split.declared
    return {
        "draft_folder": result.checkpoint.draft,
        "prompts_path": split.facts.folder,
        "steps": str(result.steps),
        "declared_reading": None if declared is None else declared.reading,
        "best_reading": split.best.reading,
        "device": result.device_name,
        "torch": result.torch,
        "python": result.python,
    }


def _facts(values: Mapping[str, str | None]) -> tuple[Fact, ...]:
    return tuple(Fact(name=name, value=value) for name, value in values.items())
