"""The drafter test from job to result files: load -> look -> capture -> search -> measure -> heldout."""

import contextlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import torch

from remote_payload.failure import machine_failure, rows_failure
from remote_payload.rundir import RunDir, write_atomically
from remote_payload.schema.job import StandaloneJob
from remote_payload.schema.standalone import CaptureCheck, DeclaredWiring, MemoryPlan, SelfFed, Zone
from remote_payload.standalone import machine, setup
from remote_payload.standalone.capture.check import check_capture
from remote_payload.standalone.graph import Reading
from remote_payload.standalone.journal import Journal, Report
from remote_payload.standalone.measure.finals import FullMeasure, finalists
from remote_payload.standalone.measure.hits_file import HELDOUT_NAME, NAME, HitsFile
from remote_payload.standalone.measure.profile import self_fed, zones
from remote_payload.standalone.measure.sample import Sample
from remote_payload.standalone.measure.sweep import Found, sweep
from remote_payload.standalone.measure.tally import Measurer, Tally
from remote_payload.standalone.measure.task import Task
from remote_payload.standalone.model.budget import Budget
from remote_payload.standalone.model.memory import check_least, overrun
from remote_payload.standalone.result import Outcome, SplitMeasured, assemble, encoded
from remote_payload.standalone.resume import open_partial

RESULT_NAME = "standalone.json"
NAMES = (NAME, HELDOUT_NAME)


def run(job: StandaloneJob, result_folder: Path, report: Report) -> None:
    """Test a drafter; leaves `standalone.json`, `hits.jsonl.gz` (and `heldout.jsonl.gz`) in `result_folder`.

    `report` gets an Event per phase, per warning and, twice a second, of progress. What was measured so far stands in
    the run directory's `partial.jsonl` until the result is complete. Raises JobFailure, leaving no result.
    """
    if job.threads is not None:
        torch.set_num_threads(job.threads)
    device = machine.pick_device(job.device)
    machine.keep_few_kernels()
    check_least(job.max_memory_bytes, device)
    try:
        with torch.inference_mode():
            _run(job, device, result_folder, Journal(report))
    except torch.cuda.OutOfMemoryError as error:
        raise machine_failure(
            f"the GPU's memory is too small for this drafter: {str(error).splitlines()[0]}",
            hint='free the GPU, or use `dtype = "bfloat16"` or `device = "cpu"`',
        ) from None


def _run(job: StandaloneJob, device: torch.device, folder: Path, journal: Journal) -> None:
    ready = _ready(job, device, journal)
    loaded, splits, measurers = ready.loaded, ready.splits, ready.measurers
    checkpoint, train = loaded.checkpoint, splits[0]
    with contextlib.ExitStack() as stack:
        own = RunDir(folder.parent)
        partial = stack.enter_context(open_partial(job, checkpoint, loaded.folders, str(device), own, journal))
        capture = _capture(job, train, measurers[0], device, journal)
        before = machine.peak_memory_bytes()
        room = ready.budget.kept_bytes // 2
        with journal.phase("search"):
            found, alone, by_zone = _search(
                job, ready, lambda *span: Sample(train.source, measurers[0], journal, partial, span, room)
            )
        finals = finalists(found, ready.task, checkpoint.served, measurers[0].drafter.missing)
        _check_slots(finals, splits[-1])
        files = [stack.enter_context(HitsFile(folder, name)) for _, name in zip(splits, NAMES, strict=False)]
        measured = [
            _measure(rows, finals, FullMeasure(measurer=own, journal=journal, partial=partial, split=rows.split), file)
            for rows, own, file in zip(splits, measurers, files, strict=True)
        ]
        outcome = Outcome(
            declared=ready.declared,
            found=found,
            self_fed=alone,
            zones=by_zone,
            train=measured[0],
            heldout=measured[1] if len(measured) > 1 else None,
            capture=capture,
            memory=ready.memory,
            resumed_rows=None if job.resume is None else partial.taken_rows,
        )
        _check_peak(ready.memory, device, journal, before)
        text = encoded(assemble(job, checkpoint, device, journal, outcome))
        for file in files:  # only now, so that a result that cannot be written leaves none of them
            file.finish()
        write_atomically(folder / RESULT_NAME, text)
        partial.remove()


@dataclass(frozen=True, kw_only=True)
class _Ready:
    """What is loaded and looked at before anything is measured; the train split comes first."""

    loaded: setup.Loaded
    splits: list[setup.Rows]
    declared: DeclaredWiring
    memory: MemoryPlan
    budget: Budget
    task: Task
    measurers: list[Measurer]
    """One a split."""


def _ready(job: StandaloneJob, device: torch.device, journal: Journal) -> _Ready:
    with journal.phase("load"):
        loaded = setup.load(job, journal)
        checkpoint = loaded.checkpoint
    with journal.phase("look"):
        train = setup.look(job, loaded, journal)
        splits = [train] if loaded.heldout is None else [train, setup.look(job, loaded, journal, train)]
        declared = setup.declared_wiring(train.states, checkpoint)
        memory, budget = setup.plan_memory(job, checkpoint, splits, device, journal)
        measurer = setup.make_drafter(job, checkpoint, device, budget)
        return _Ready(
            loaded=loaded,
            splits=splits,
            declared=declared,
            memory=memory,
            budget=budget,
            task=setup.task_of(job, checkpoint, train, declared, measurer.drafter),
            measurers=[setup.measurer_for(rows, measurer, checkpoint) for rows in splits],
        )


def _search(
    job: StandaloneJob, ready: _Ready, sample: Callable[[int, int], Sample]
) -> tuple[Found, SelfFed, tuple[Zone, ...]]:
    """The best readings of some rows, and of further ones; what was kept of them for speed ends here."""
    first = sample(0, job.search_rows)
    found = sweep(ready.task, first, sample(job.search_rows, setup.FURTHER * job.search_rows))
    alone = self_fed(first, ready.measurers[0], found.best, job.steps)
    return found, alone, zones(first, ready.measurers[0], found.best)


def _capture(
    job: StandaloneJob, train: setup.Rows, measurer: Measurer, device: torch.device, journal: Journal
) -> CaptureCheck | None:
    """A few rows against a fresh forward of the target, where that can be run here."""
    if job.capture_rows == 0 or job.target is None:
        return None
    with journal.phase("capture"):
        rows = list(islice(train.source.usable(), job.capture_rows))
        told = "a fresh forward of the target, first its loading"
        journal.progress("capture", 0, len(rows), told, last=True)
        answers, limit = measurer.teacher.answers, job.max_memory_bytes
        return check_capture(setup.path(job.target), rows, train.states, answers, device=device, limit_bytes=limit)


def _measure(rows: setup.Rows, finals: Iterable[Reading], full: FullMeasure, hits_file: HitsFile) -> SplitMeasured:
    """Every final reading on every row of a split."""
    tallies = [Tally(reading=reading, stage="full") for reading in finals]
    with full.journal.phase("measure" if rows.split == "train" else "heldout"):
        counts = full.run(tallies, rows.source, hits_file, rows.look.look)
    full.journal.count_tokens(counts.tokens)
    rows.source.tell_more_skipped()
    for warning in rows.look.lint.warnings():
        full.journal.warn("loss_mask", warning)
    facts = rows.look.facts(rows.source, rows.kind, rows.states, counts)
    return SplitMeasured(facts=facts, tallies=tuple(tallies))


def _check_peak(plan: MemoryPlan, device: torch.device, journal: Journal, before: int) -> None:
    """Warn where the plan, or the limit, was not kept; `before` is the peak until the search, a capture check's too."""
    peak = machine.peak_memory_bytes() if plan.where == "host" else machine.peak_gpu_memory_bytes(device)
    told = overrun(plan, peak, before)
    if told is not None:
        journal.warn("memory", told)


def _check_slots(finals: Sequence[Reading], rows: setup.Rows) -> None:
    """Raise JobFailure(rows) where rows lack a state that a reading takes: held-out ones may hold fewer."""
    last = max(max(reading.slots) for reading in finals)
    if last >= rows.kind.captured:
        raise rows_failure(
            f"the readings to be measured take captured state {last} (counted from 0), the held-out rows hold only: "
            f"{rows.kind.captured}",
            hint="capture the held-out rows as the train rows were captured",
        )
