"""The drafter test from job to result files: load -> look -> capture -> search -> measure -> heldout."""

import contextlib
from collections.abc import Iterable, Sequence
from itertools import islice
from pathlib import Path

import torch

from remote_payload.failure import machine_failure, rows_failure
from remote_payload.rundir import RunDir, write_atomically
from remote_payload.schema.job import StandaloneJob
from remote_payload.schema.record import to_json
from remote_payload.schema.standalone import CaptureCheck
from remote_payload.standalone import machine, setup
from remote_payload.standalone.capture.check import check_capture
from remote_payload.standalone.graph import Reading
from remote_payload.standalone.journal import Journal, Report
from remote_payload.standalone.measure.finals import FullMeasure, finalists
from remote_payload.standalone.measure.hits_file import HELDOUT_NAME, NAME, HitsFile
from remote_payload.standalone.measure.partial import Partial
from remote_payload.standalone.measure.profile import self_fed, zones
from remote_payload.standalone.measure.sample import Sample
from remote_payload.standalone.measure.sweep import sweep
from remote_payload.standalone.measure.tally import Tally
from remote_payload.standalone.result import Outcome, SplitMeasured, assemble
from remote_payload.standalone.resume import open_partial

RESULT_NAME = "standalone.json"
FURTHER = 4
"""Times the rows searched on: so many more may have to prove a change of the computation."""


def run(job: StandaloneJob, result_folder: Path, report: Report) -> None:
    """Test a drafter; leaves `standalone.json`, `hits.jsonl.gz` (and `heldout.jsonl.gz`) in `result_folder`.

    `report` gets an Event per phase, per warning and, twice a second, of progress. What was measured so far stands in
    the run directory's `partial.jsonl` until the result is complete. Raises JobFailure, leaving no result.
    """
    if job.threads is not None:
        torch.set_num_threads(job.threads)
    device = machine.pick_device(job.device)
    try:
        with torch.inference_mode():
            _run(job, device, result_folder, Journal(report))
    except torch.cuda.OutOfMemoryError as error:
        raise machine_failure(
            f"the GPU's memory is too small for this drafter: {str(error).splitlines()[0]}",
            hint='free the GPU, or use `dtype = "bfloat16"` or `device = "cpu"`',
        ) from None


def _run(job: StandaloneJob, device: torch.device, folder: Path, journal: Journal) -> None:
    with journal.phase("load"):
        ready = setup.load(job, device, journal)
        checkpoint = ready.checkpoint
    with journal.phase("look"):
        train = setup.look(job, ready, journal)
        declared = setup.declared_wiring(job, checkpoint)
        task = setup.task_of(job, checkpoint, train.kind, declared)
    with contextlib.ExitStack() as stack:
        partial = stack.enter_context(open_partial(job, checkpoint, ready.folders, str(device), RunDir(folder.parent)))
        capture = _capture(job, train, device, journal)
        with journal.phase("search"):
            spans = ((0, job.search_rows), (job.search_rows, FURTHER * job.search_rows))
            samples = [Sample(train.source, train.measurer, journal, partial, span) for span in spans]
            found = sweep(task, *samples)
            alone = self_fed(samples[0], train.measurer, found.best, job.steps)
            by_zone = zones(samples[0], train.measurer, found.best)
            del samples
        finals = finalists(found, task, checkpoint.served)
        files = [stack.enter_context(HitsFile(folder, NAME))]
        measured, heldout = _measure(train, finals, partial, files[0], journal), None
        if ready.heldout is not None:
            files.append(stack.enter_context(HitsFile(folder, HELDOUT_NAME)))
            with journal.phase("look at held-out rows"):
                other = setup.look(job, ready, journal, train)
            _check_slots(finals, other)
            heldout = _measure(other, finals, partial, files[1], journal)
        outcome = Outcome(
            declared=declared,
            found=found,
            self_fed=alone,
            zones=by_zone,
            train=measured,
            heldout=heldout,
            capture=capture,
            memory=None,
        )
        result = assemble(job, checkpoint, device, journal, outcome)
        for file in files:
            file.finish()
        write_atomically(folder / RESULT_NAME, to_json(result).encode())
        partial.remove()


def _capture(job: StandaloneJob, train: setup.Rows, device: torch.device, journal: Journal) -> CaptureCheck | None:
    """A few rows against a fresh forward of the target, where that can be run here."""
    if job.capture_rows == 0 or job.target is None:
        return None
    with journal.phase("capture"):
        rows = list(islice(train.source.usable(), job.capture_rows))
        answers = train.measurer.teacher.answers
        return check_capture(
            setup.path(job.target), rows, job.states, answers, device=device, limit_bytes=job.max_memory_bytes
        )


def _measure(
    rows: setup.Rows, finals: Iterable[Reading], partial: Partial, hits_file: HitsFile, journal: Journal
) -> SplitMeasured:
    """Every final reading on every row of a split."""
    tallies = [Tally(reading=reading, stage="full") for reading in finals]
    with journal.phase("measure" if rows.split == "train" else "heldout"):
        full = FullMeasure(measurer=rows.measurer, journal=journal, partial=partial, split=rows.split)
        counts = full.run(tallies, rows.source, hits_file, rows.look.look)
    journal.count_tokens(counts.tokens)
    rows.source.tell_more_skipped()
    facts = rows.look.facts(rows.source, rows.kind, rows.states, counts)
    return SplitMeasured(facts=facts, tallies=tuple(tallies))


def _check_slots(finals: Sequence[Reading], heldout: setup.Rows) -> None:
    """Raise JobFailure(rows) where the held-out rows lack a state that a reading takes."""
    last = max(max(reading.slots) for reading in finals)
    if last >= heldout.kind.captured:
        raise rows_failure(
            f"the readings to be measured take captured state {last} (counted from 0), the held-out rows hold only: "
            f"{heldout.kind.captured}",
            hint="capture the held-out rows as the train rows were captured",
        )
