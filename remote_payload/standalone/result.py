"""`standalone.json`, put together."""

import platform
from dataclasses import dataclass

import torch

from remote_payload.schema.job import StandaloneJob
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
        readings=tuple(tally.facts(job.states) for tally in readings),
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
    )
