"""Everything a test needs before it measures: the checkpoint on its device, the rows that were looked at."""

import os
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from remote_payload.schema.job import StandaloneJob
from remote_payload.schema.standalone import DeclaredWiring
from remote_payload.standalone.checkpoint.declared import declare
from remote_payload.standalone.checkpoint.load import Checkpoint, load_checkpoint
from remote_payload.standalone.graph import Reading
from remote_payload.standalone.journal import Journal
from remote_payload.standalone.measure.acceptance import Teacher
from remote_payload.standalone.measure.factors import choices
from remote_payload.standalone.measure.finals import Split
from remote_payload.standalone.measure.tally import Measurer
from remote_payload.standalone.measure.task import Task
from remote_payload.standalone.model.drafter import Drafter
from remote_payload.standalone.rows.embedding_slots import check_labels
from remote_payload.standalone.rows.files import RowFolder, find_rows
from remote_payload.standalone.rows.fit import check_fit
from remote_payload.standalone.rows.row import RowReader
from remote_payload.standalone.rows.source import RowKind, RowSource
from remote_payload.standalone.split_look import SplitLook

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}


@dataclass(frozen=True, kw_only=True)
class Ready:
    """A loaded drafter with its teacher, and the folders of rows."""

    checkpoint: Checkpoint
    measurer: Measurer
    train: RowFolder
    heldout: RowFolder | None

    @property
    def folders(self) -> tuple[RowFolder, ...]:
        """All folders of rows."""
        return (self.train,) if self.heldout is None else (self.train, self.heldout)


@dataclass(frozen=True, kw_only=True)
class Rows:
    """One split, looked at and ready to be gone through."""

    split: Split
    source: RowSource
    kind: RowKind
    measurer: Measurer
    states: tuple[int, ...] | None
    """Labels of its captured states."""
    look: SplitLook


def load(job: StandaloneJob, device: torch.device, journal: Journal) -> Ready:
    """Read the checkpoint, list the rows. Raises JobFailure."""
    checkpoint = load_checkpoint(path(job.draft), path(job.target) if job.target else None)
    train = find_rows(path(job.rows), path(job.merged) if job.merged else None, job.max_rows)
    heldout = None
    if job.heldout is not None:
        merged = path(job.heldout_merged) if job.heldout_merged else None
        heldout = find_rows(path(job.heldout), merged, job.max_rows)
    measurer = Measurer(
        drafter=Drafter(checkpoint, device, DTYPES[job.dtype]),
        teacher=Teacher(checkpoint.teacher_head, checkpoint.target_ids, device, checkpoint.vocabularies),
    )
    checkpoint.weights.clear()  # the drafter has its own copies; a large one should not be in memory twice
    _warn_of_checkpoint(checkpoint, journal)
    return Ready(checkpoint=checkpoint, measurer=measurer, train=train, heldout=heldout)


def look(job: StandaloneJob, ready: Ready, journal: Journal, train: Rows | None = None) -> Rows:
    """Look at the first rows of the train rows, or of the held-out ones where `train` is given.

    Raises JobFailure(rows) where drafter, rows and labels do not belong together.
    """
    checkpoint, folder = ready.checkpoint, ready.train
    if train is not None:
        assert ready.heldout is not None
        folder = ready.heldout
    config = checkpoint.config
    reader = RowReader(
        folder=folder,
        target_hidden_size=config.target_hidden_size,
        vocab_size=config.vocab_size,
        steps=job.steps,
    )
    measurer = Measurer(drafter=ready.measurer.drafter, teacher=ready.measurer.teacher.of_other_rows())
    source = RowSource(reader, measurer, journal)
    kind = source.look(checkpoint, len(job.states) if job.states else None)
    states = job.states
    if train is not None and kind.captured != train.kind.captured:
        states = None
        journal.warn(
            "heldout_states",
            f"the held-out rows hold {kind.captured} captured states, the train rows {train.kind.captured}; slots were "
            "taken by their place, and the held-out ones are unlabelled",
        )
    check_fit(kind.captured, checkpoint.slots, states, checkpoint.target.layers)
    _check_embedding(kind.embedding_slots, states, journal, told=train is not None)
    return Rows(
        split="train" if train is None else "heldout",
        source=source,
        kind=kind,
        measurer=measurer,
        states=states,
        look=SplitLook.of(checkpoint, train.look if train else None),
    )


def declared_wiring(job: StandaloneJob, checkpoint: Checkpoint) -> DeclaredWiring:
    """What the drafter's config declares and SGLang makes of it."""
    target = checkpoint.target
    declared = declare(checkpoint.config, checkpoint.slots, target.architecture, target.layers, job.states)
    return replace(declared, changes=checkpoint.served.changes_from(checkpoint.graph))


def task_of(job: StandaloneJob, checkpoint: Checkpoint, kind: RowKind, declared: DeclaredWiring) -> Task:
    """What is searched for."""
    return Task(
        captured=kind.captured,
        slots=checkpoint.slots,
        states=job.states,
        declared=Reading(slots=declared.slots, token_offset=1) if declared.slots else None,
        offsets=job.token_offsets,
        steps=job.steps,
        keep=job.keep_readings,
        own=checkpoint.graph,
        choices=choices(checkpoint, job.steps) if job.sweep == "full" else None,
    )


def path(text: str) -> Path:
    """A path of the job on this machine; `~` is its home."""
    return Path(os.path.expanduser(text))


def _warn_of_checkpoint(checkpoint: Checkpoint, journal: Journal) -> None:
    for warning in checkpoint.warnings:
        journal.warn("checkpoint", warning)
    unexpected = [problem.found for problem in checkpoint.facts.problems]
    if unexpected:
        journal.warn(
            "unexpected_tensors", f"{len(unexpected)} unexpected tensor(s) were not used: {', '.join(unexpected)}"
        )


def _check_embedding(
    slots: tuple[int, ...] | None, states: tuple[int, ...] | None, journal: Journal, *, told: bool
) -> None:
    """Labels that the rows contradict end the job; without labels, what the rows say about themselves is told once."""
    if slots is not None and states is not None:
        check_labels(slots, states)
    elif slots and not told:
        place = ", ".join(map(str, slots))
        journal.warn("embedding_slot", f"the captured state in slot {place} is the target's embedding output (`embed`)")
