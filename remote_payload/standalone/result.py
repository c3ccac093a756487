"""`standalone.json`, put together."""

import dataclasses
import math
import platform
from collections.abc import Iterator
from dataclasses import dataclass

import torch

from remote_payload.failure import checkpoint_failure
from remote_payload.schema.job import StandaloneJob
from remote_payload.schema.record import to_json
from remote_payload.schema.standalone import (
    CaptureCheck,
    DeclaredWiring,
    MemoryPlan,
    RowsFacts,
    SelfFed,
    StandaloneResult,
    Zone,
)
from remote_payload.standalone import machine
from remote_payload.standalone.checkpoint.load import Checkpoint
from remote_payload.standalone.journal import Journal
from remote_payload.standalone.measure.sweep import Found
from remote_payload.standalone.measure.tally import Tally
from remote_payload.standalone.measure.task import once
from remote_payload.weights import folder_facts

TOLD = 5
"""Places of unusable numbers told in the message."""


@dataclass(frozen=True, kw_only=True)
class SplitMeasured:
    """One split, gone through."""

    facts: RowsFacts
    tallies: tuple[Tally, ...]
    """The final readings on all its rows."""


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """All that the phases found."""

    declared: DeclaredWiring
    found: Found
    self_fed: SelfFed
    zones: tuple[Zone, ...]
    train: SplitMeasured
    heldout: SplitMeasured | None
    capture: CaptureCheck | None
    memory: MemoryPlan | None
    resumed_rows: int | None


def encoded(result: StandaloneResult) -> bytes:
    """The result as it is written. Raises JobFailure(checkpoint) where numbers in it are not finite, naming them."""
    try:
        return to_json(result).encode()
    except ValueError:
        where = list(not_finite(dataclasses.asdict(result)))
        if not where:
            raise
        raise checkpoint_failure(
            "the test came to numbers that are NaN or infinite, as the numbers of a sound drafter, target and rows "
            f"never do, at: {', '.join(where[:TOLD])}",
            hint="look at the named tensors for extreme values",
            details=tuple(where),
        ) from None


def not_finite(value: object, path: str = "$") -> Iterator[str]:
    """Paths of the numbers in a JSON value that JSON cannot carry, with the name of what they belong to."""
    if isinstance(value, dict):
        name = f" ({value['name']})" if isinstance(value.get("name"), str) else ""
        for key, item in value.items():
            yield from (found + name for found in not_finite(item, f"{path}.{key}"))
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            yield from not_finite(item, f"{path}[{index}]")
    elif isinstance(value, float) and not math.isfinite(value):
        yield path


def assemble(
    job: StandaloneJob, checkpoint: Checkpoint, device: torch.device, journal: Journal, outcome: Outcome
) -> StandaloneResult:
    """The record of the whole test."""
    train, heldout = outcome.train, outcome.heldout
    readings = once([*outcome.found.told, *train.tallies])
    return StandaloneResult(
        checkpoint=checkpoint.facts,
        declared=outcome.declared,
        rows=train.facts,
        readings=tuple(tally.facts(train.facts.states) for tally in readings),
        steps=job.steps,
        dtype=job.dtype,
        device=str(device),
        device_name=machine.device_name(device),
        torch=torch.__version__,
        python=platform.python_version(),
        threads=torch.get_num_threads(),
        phases=tuple(journal.phases),
        peak_memory_bytes=machine.peak_memory_bytes(),
        peak_gpu_memory_bytes=machine.peak_gpu_memory_bytes(device),
        warnings=tuple(journal.warnings),
        heldout=heldout.facts if heldout else None,
        heldout_readings=tuple(tally.facts(heldout.facts.states) for tally in heldout.tallies) if heldout else (),
        skipped_readings=outcome.found.skipped,
        self_fed=outcome.self_fed,
        zones=outcome.zones,
        capture=outcome.capture,
        memory=outcome.memory,
        resumed_from=job.resume,
        resumed_rows=outcome.resumed_rows,
        target=None if checkpoint.facts.target is None else folder_facts(checkpoint.facts.target),
        draft=folder_facts(checkpoint.facts.draft),
    )
