"""The drafter test from job to result files: load -> look at rows -> search the wirings -> measure the finalists."""

import os
import platform
import time
from pathlib import Path

import torch

from remote_payload.failure import machine_failure
from remote_payload.rundir import write_atomically
from remote_payload.schema.job import StandaloneJob
from remote_payload.schema.record import to_json
from remote_payload.schema.standalone import DeclaredWiring, RowsFacts, StandaloneResult
from remote_payload.standalone import machine
from remote_payload.standalone.checkpoint.declared import declare
from remote_payload.standalone.checkpoint.load import Checkpoint, load_checkpoint
from remote_payload.standalone.graph import Reading
from remote_payload.standalone.journal import Journal, Report
from remote_payload.standalone.measure.acceptance import Teacher, reading_hits, row_facts
from remote_payload.standalone.measure.hits_file import HitsFile
from remote_payload.standalone.measure.wiring import Found, Measurer, Tally, screen, search, wirings
from remote_payload.standalone.model.drafter import Drafter
from remote_payload.standalone.rows.embedding_slots import check_labels
from remote_payload.standalone.rows.files import find_rows
from remote_payload.standalone.rows.fit import check_fit
from remote_payload.standalone.rows.row import RowReader
from remote_payload.standalone.rows.source import RowKind, RowSource

RESULT_NAME = "standalone.json"
DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}


def run(job: StandaloneJob, result_folder: Path, report: Report) -> None:
    """Test a drafter; leaves `standalone.json` and `hits.jsonl.gz` in `result_folder`.

    `report` gets an Event per phase, per warning and, twice a second, of progress. Raises JobFailure, leaving nothing.
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
        checkpoint = load_checkpoint(_path(job.draft), _path(job.target) if job.target else None)
        measurer = _measurer(checkpoint, device, job.dtype)
        _warn_of_checkpoint(checkpoint, journal)
    source = RowSource(_reader(job, checkpoint), measurer, journal)
    with journal.phase("search"):
        kind = source.look(checkpoint, len(job.states) if job.states else None)
        check_fit(kind.captured, checkpoint.slots, job.states, checkpoint.target.layers)
        _check_embedding(kind.embedding_slots, job.states, journal)
        target = checkpoint.target
        declared = declare(checkpoint.config, checkpoint.slots, target.architecture, target.layers, job.states)
        found = _search(job, measurer, source, wirings(kind.captured, checkpoint.slots))
    with HitsFile(folder) as hits_file:
        finals = [Tally(reading=reading, stage="full") for reading in found.finalists(_reading(declared))]
        with journal.phase("measure"):
            rows = _measure(finals, measurer, source, hits_file, journal)
        journal.count_tokens(rows[1])
        source.tell_more_skipped()
        result = StandaloneResult(
            checkpoint=checkpoint.facts,
            declared=declared,
            rows=_rows_facts(source, kind, job.states, rows),
            readings=tuple(tally.facts(job.states) for tally in found.told_with(finals)),
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
        )
        hits_file.finish()
        write_atomically(folder / RESULT_NAME, to_json(result).encode())


def _path(text: str) -> Path:
    return Path(os.path.expanduser(text))


def _measurer(checkpoint: Checkpoint, device: torch.device, dtype: str) -> Measurer:
    measurer = Measurer(
        drafter=Drafter(checkpoint, device, DTYPES[dtype]),
        teacher=Teacher(checkpoint.teacher_head, checkpoint.target_ids, device, checkpoint.vocabularies),
    )
    checkpoint.weights.clear()  # the drafter has its own copies; a large one should not be in memory twice
    return measurer


def _warn_of_checkpoint(checkpoint: Checkpoint, journal: Journal) -> None:
    for warning in checkpoint.warnings:
        journal.warn("checkpoint", warning)
    unexpected = [problem.found for problem in checkpoint.facts.problems]
    if unexpected:
        journal.warn(
            "unexpected_tensors", f"{len(unexpected)} unexpected tensor(s) were not used: {', '.join(unexpected)}"
        )
    if checkpoint.config.norm_output:
        journal.warn(
            "norm_output",
            "config.json says `norm_output: true`, which SpecForge and SGLang read differently; the test feeds "
            "back the un-normed state",
        )


def _reader(job: StandaloneJob, checkpoint: Checkpoint) -> RowReader:
    return RowReader(
        folder=find_rows(_path(job.rows), _path(job.merged) if job.merged else None, job.max_rows),
        target_hidden_size=checkpoint.config.target_hidden_size,
        vocab_size=checkpoint.config.vocab_size,
        steps=job.steps,
    )


def _reading(declared: DeclaredWiring) -> Reading | None:
    return Reading(slots=declared.slots, token_offset=1) if declared.slots else None


def _check_embedding(slots: tuple[int, ...] | None, states: tuple[int, ...] | None, journal: Journal) -> None:
    """Labels that the rows contradict end the job; without labels, what the rows say about themselves is told."""
    if slots is not None and states is not None:
        check_labels(slots, states)
    elif slots:
        told = ", ".join(map(str, slots))
        journal.warn("embedding_slot", f"the captured state in slot {told} is the target's embedding output (`embed`)")


def _search(job: StandaloneJob, measurer: Measurer, source: RowSource, readings: list[Reading]) -> Found:
    few, doing = job.search_rows, f"first step of {len(readings)} wirings"
    survivors, screened_out = screen(measurer, source.first(few, doing), readings, job.keep_readings)
    source.first_done(few, doing)
    doing = f"all steps of {len(survivors)} wirings"
    kept = [tally.reading for tally in survivors]
    ranked, searched_out = search(measurer, source.first(few, doing), kept, job.steps)
    source.first_done(few, doing)
    best = ranked[0].reading.slots
    others = [Reading(slots=best, token_offset=offset) for offset in job.token_offsets if offset != 1]
    if others:
        doing = "other token offsets"
        shifted, _ = search(measurer, source.first(few, doing), others, job.steps)
        source.first_done(few, doing)
        ranked = sorted([*ranked, *shifted], key=lambda tally: -tally.score)
    return Found(ranked=tuple(ranked), dropped=(*searched_out, *screened_out))


def _measure(
    finals: list[Tally], measurer: Measurer, source: RowSource, hits_file: HitsFile, journal: Journal
) -> tuple[int, int, int]:
    """Every finalist on every row, all steps; (rows, tokens, response tokens)."""
    used = tokens = responses = 0
    total, started, speed = len(source.reader.folder.files), time.perf_counter(), ""
    for index, judged in enumerate(source.judged()):
        hits = measurer.add(finals, judged, source.reader.steps)
        hits_file.add_row(row_facts(index, judged, measurer.teacher))
        for tally, own in zip(finals, hits, strict=True):
            hits_file.add_hits(reading_hits(index, judged, tally.reading, own, None))
        used += 1
        tokens += len(judged.row.tokens)
        responses += int(judged.row.loss_mask.sum())
        speed = f"{tokens / (time.perf_counter() - started):.0f} tokens/s"
        journal.progress("rows", used + len(source.skipped), total, speed)
    journal.progress("rows", total, total, speed, last=True)
    return used, tokens, responses


def _rows_facts(
    source: RowSource, kind: RowKind, states: tuple[int, ...] | None, counts: tuple[int, int, int]
) -> RowsFacts:
    used, tokens, responses = counts
    folder = source.reader.folder
    return RowsFacts(
        folder=str(folder.folder),
        layout=folder.layout,
        found=len(folder.files),
        used=used,
        skipped=tuple(source.skipped.values()),
        tokens=tokens,
        response_tokens=responses,
        captured_states=kind.captured,
        states=states,
        final_state=kind.final_state,
        dtype=kind.dtype,
        embedding_slots=kind.embedding_slots,
    )
