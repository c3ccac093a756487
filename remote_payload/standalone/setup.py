"""Everything a test needs before it measures: the checkpoint on its device, the rows that were looked at."""

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from remote_payload.schema.job import StandaloneJob
from remote_payload.schema.standalone import DeclaredWiring, MemoryPlan
from remote_payload.standalone.checkpoint.declared import declare
from remote_payload.standalone.checkpoint.load import Checkpoint, load_checkpoint
from remote_payload.standalone.graph import Reading
from remote_payload.standalone.journal import Journal
from remote_payload.standalone.machine import return_freed_memory
from remote_payload.standalone.measure import wirings
from remote_payload.standalone.measure.acceptance import Teacher
from remote_payload.standalone.measure.factors import choices
from remote_payload.standalone.measure.finals import Split
from remote_payload.standalone.measure.tally import Measurer
from remote_payload.standalone.measure.task import Task
from remote_payload.standalone.model.budget import Budget
from remote_payload.standalone.model.drafter import Drafter
from remote_payload.standalone.model.memory import Work, plan
from remote_payload.standalone.rows.added_embedding import added_embedding
from remote_payload.standalone.rows.embedding_slots import check_labels, check_written
from remote_payload.standalone.rows.files import RowFolder, find_rows
from remote_payload.standalone.rows.fit import check_fit
from remote_payload.standalone.rows.row import RowReader
from remote_payload.standalone.rows.source import RowKind, RowSource
from remote_payload.standalone.split_look import SplitLook

FURTHER = 4
"""Times the rows searched on: so many more may have to prove a change of the computation."""
DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}


@dataclass(frozen=True, kw_only=True)
class Loaded:
    """The checkpoint, and the folders of rows."""

    checkpoint: Checkpoint
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
    states: tuple[int, ...] | None
    """Labels of its captured states."""
    look: SplitLook


def load(job: StandaloneJob, journal: Journal) -> Loaded:
    """Read the checkpoint, list the rows. Raises JobFailure."""
    checkpoint = load_checkpoint(path(job.draft), path(job.target) if job.target else None)
    train = find_rows(path(job.rows), path(job.merged) if job.merged else None, job.max_rows)
    heldout = None
    if job.heldout is not None:
        merged = path(job.heldout_merged) if job.heldout_merged else None
        heldout = find_rows(path(job.heldout), merged, job.max_rows, named="heldout")
    for warning in checkpoint.warnings:
        journal.warn("checkpoint", warning)
    unexpected = [problem.found for problem in checkpoint.facts.problems]
    if unexpected:
        journal.warn(
            "unexpected_tensors", f"{len(unexpected)} unexpected tensor(s) were not used: {', '.join(unexpected)}"
        )
    return Loaded(checkpoint=checkpoint, train=train, heldout=heldout)


def look(job: StandaloneJob, loaded: Loaded, journal: Journal, train: Rows | None = None) -> Rows:
    """Look at the first of the train rows, or of the held-out ones where `train` is given.

    Raises JobFailure(rows) where drafter, rows and labels do not belong together.
    """
    checkpoint, folder = loaded.checkpoint, loaded.train
    if train is not None:
        assert loaded.heldout is not None
        folder = loaded.heldout
    config = checkpoint.config
    reader = RowReader(
        folder=folder,
        target_hidden_size=config.target_hidden_size,
        vocab_size=config.vocab_size,
        steps=job.steps,
        table=added_embedding(job, checkpoint, journal if train is None else None),
    )
    source = RowSource(reader, journal)
    states = job.states if reader.table is None or job.states is None else (0, *job.states)
    kind = source.look(checkpoint, len(states) if states else None)
    if train is not None and kind.captured != train.kind.captured:
        states = None
        journal.warn(
            "heldout_states",
            f"the held-out rows hold {kind.captured} captured states, the train rows {train.kind.captured}; slots were "
            "taken by their place, and the held-out ones are unlabelled",
        )
    if kind.final_state == "pre_norm":
        journal.note("final_state", "the rows' final state is not normed; the target's final norm was applied")
    check_fit(kind.captured, checkpoint.slots, states, checkpoint.target.layers)
    _check_embedding(kind, states, journal, told=train is not None)
    return Rows(
        split="train" if train is None else "heldout",
        source=source,
        kind=kind,
        states=states,
        look=SplitLook.of(checkpoint, train.look if train else None),
    )


def plan_memory(
    job: StandaloneJob, checkpoint: Checkpoint, splits: Sequence[Rows], device: torch.device, journal: Journal
) -> tuple[MemoryPlan, Budget]:
    """The expected peak, told before anything large is held. Raises JobFailure(machine) where the limit is too low."""
    work = Work(
        row_tokens=max(rows.source.reader.longest_tokens(rows.kind.captured) for rows in splits),
        captured=max(rows.kind.captured for rows in splits),
        readings=wirings.FEW,
        kept_rows=min(job.search_rows * (1 + FURTHER), len(splits[0].source.reader.folder.files)),
        state_dtype=max((getattr(torch, rows.kind.dtype) for rows in splits), key=lambda dtype: dtype.itemsize),
        mapped=all(rows.source.read_by_map() for rows in splits),
    )
    expected, budget = plan(checkpoint, work, dtype=DTYPES[job.dtype], device=device, limit_bytes=job.max_memory_bytes)
    if device.type == "cpu":
        return_freed_memory()
    limit = "" if expected.limit_bytes is None else f", limit {expected.limit_bytes / 2**30:.2f} GiB"
    journal.note("memory", f"expected peak {expected.expected_peak_bytes / 2**30:.2f} GiB ({expected.where}){limit}")
    return expected, budget


def make_drafter(job: StandaloneJob, checkpoint: Checkpoint, device: torch.device, budget: Budget) -> Measurer:
    """Drafter and teacher on the device; the checkpoint gives up its weights."""
    drafter = Drafter(checkpoint, device, DTYPES[job.dtype], budget)
    checkpoint.weights.clear()  # the drafter has its own copies; a large one should not be in memory twice
    teacher = Teacher(checkpoint.teacher_head, checkpoint.target_ids, device, checkpoint.vocabularies, budget)
    return Measurer(drafter=drafter, teacher=teacher)


def measurer_for(rows: Rows, measurer: Measurer, checkpoint: Checkpoint) -> Measurer:
    """The same drafter with a teacher that reads the final states of these rows."""
    teacher, norm = measurer.teacher.of_other_rows(), checkpoint.target_norm
    if rows.kind.final_state == "pre_norm" and norm is not None:
        teacher.expect_pre_norm(norm, checkpoint.target.rms_norm_eps)
    return Measurer(drafter=measurer.drafter, teacher=teacher)


def declared_wiring(states: tuple[int, ...] | None, checkpoint: Checkpoint) -> DeclaredWiring:
    """What the drafter's config declares and SGLang makes of it, where `states` label the captured ones."""
    target = checkpoint.target
    declared = declare(checkpoint.config, checkpoint.slots, target.architecture, target.layers, states)
    return replace(declared, changes=checkpoint.served.changes_from(checkpoint.graph))


def task_of(job: StandaloneJob, checkpoint: Checkpoint, rows: Rows, declared: DeclaredWiring, drafter: Drafter) -> Task:
    """What is searched for on these rows."""
    full = choices(checkpoint, job.steps).computable(drafter.missing) if job.sweep == "full" else None
    return Task(
        captured=rows.kind.captured,
        slots=checkpoint.slots,
        states=rows.states,
        wanted=_wanted(job.wanted, rows.states or (), checkpoint.slots),
        declared=Reading(slots=declared.slots, token_offset=1) if declared.slots else None,
        offsets=job.token_offsets,
        steps=job.steps,
        keep=job.keep_readings,
        own=checkpoint.graph,
        choices=full,
    )


def _wanted(states: tuple[int, ...] | None, held: tuple[int, ...], slots: int) -> Reading | None:
    """The reading of these states among those that rows hold; None where the drafter joins others, or more."""
    if states is None or len(states) != slots or not {*states} <= {*held}:
        return None
    return Reading(slots=tuple(held.index(state) for state in states), token_offset=1)


def path(text: str) -> Path:
    """A path of the job on this machine; `~` is its home."""
    return Path(os.path.expanduser(text))


def _check_embedding(kind: RowKind, states: tuple[int, ...] | None, journal: Journal, *, told: bool) -> None:
    """Labels that the rows contradict end the job; without labels, what the rows say about themselves is told once."""
    slots = kind.embedding_slots
    check_written(kind.dead_slots, kind.captured)
    if kind.embedding_shift:
        where = "next" if kind.embedding_shift > 0 else "previous"
        journal.warn("shifted_states", f"the captured states are those of the {where} token: rows are shifted by one")
    elif slots is not None and states is not None:
        check_labels(slots, states, kind.dead_slots)
    elif slots and not told:
        place = ", ".join(map(str, slots))
        journal.note("embedding_slot", f"the captured state in slot {place} is the target's embedding output (`embed`)")
