"""The drafter test from job to result files: load -> find rows -> search the wirings -> measure the finalists."""

import platform
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Literal

import torch

from remote_payload.failure import machine_failure
from remote_payload.rundir import write_atomically
from remote_payload.schema.job import StandaloneJob
from remote_payload.schema.record import to_json
from remote_payload.schema.run import Event
from remote_payload.schema.standalone import DeclaredWiring, Phase, RowsFacts, SkippedRow, StandaloneResult
from remote_payload.standalone import machine
from remote_payload.standalone.acceptance import JudgedRow, Teacher, judge_row, reading_hits, row_facts
from remote_payload.standalone.checkpoint import Checkpoint, load_checkpoint
from remote_payload.standalone.declared import declare
from remote_payload.standalone.final_state import final_state_kind
from remote_payload.standalone.fit import check_fit, no_usable_row
from remote_payload.standalone.hits_file import HitsFile
from remote_payload.standalone.model import Drafter, Reading
from remote_payload.standalone.row_files import find_rows
from remote_payload.standalone.rows import Row, RowReader
from remote_payload.standalone.wiring import Found, Measurer, Tally, screen, search, wirings

Report = Callable[[Event], None]
PROGRESS_INTERVAL_S = 0.5
RESULT_NAME = "standalone.json"


def run(job: StandaloneJob, result_folder: Path, report: Report) -> None:
    """Test a drafter; leaves `standalone.json` and `hits.jsonl.gz` in `result_folder`.

    `report` gets an Event per phase, per warning and, twice a second, of progress. Raises JobFailure, leaving nothing.
    """
    try:
        with torch.inference_mode():
            _Run(job, report).into(result_folder)
    except torch.cuda.OutOfMemoryError as error:
        raise machine_failure(
            f"the GPU's memory is too small for this drafter: {str(error).splitlines()[0]}",
            hint='free the GPU, or use `dtype = "bfloat16"` or `device = "cpu"`',
        ) from None


class _Run:
    """One run's state: what was loaded, read, skipped and timed so far."""

    def __init__(self, job: StandaloneJob, report: Report) -> None:
        self.job, self._report = job, report
        self.phases: list[Phase] = []
        self.warnings: list[str] = []
        self.skipped: dict[str, SkippedRow] = {}
        self.final_state: Literal["post_norm", "pre_norm"] = "post_norm"

    def into(self, folder: Path) -> None:
        """Do the job and write its two files."""
        job = self.job
        if job.threads is not None:
            torch.set_num_threads(job.threads)
        self.device = machine.pick_device(job.device)
        with self._phase("load"):
            target = Path(job.target).expanduser() if job.target else None
            self.checkpoint = load_checkpoint(Path(job.draft).expanduser(), target)
            self.measurer = self._measurer(self.checkpoint)
        for warning in self._checkpoint_warnings(self.checkpoint):
            self._warn("checkpoint", warning)
        merged = Path(job.merged).expanduser() if job.merged else None
        self.reader = RowReader(
            folder=find_rows(Path(job.rows).expanduser(), merged, job.max_rows),
            target_hidden_size=self.checkpoint.config.target_hidden_size,
            vocab_size=self.checkpoint.config.vocab_size,
            steps=job.steps,
        )
        with self._phase("search"):
            self._look_at_first_row()
            self.declared = self._declared()
            found = self._search()
        with HitsFile(folder) as hits_file:
            with self._phase("measure") as timed:
                finals, rows = self._measure(found.finalists(self._declared_reading()), hits_file)
                timed["tokens"] = rows.tokens
            result = self._result(found, finals, rows)
            hits_file.finish()
            write_atomically(folder / RESULT_NAME, to_json(result).encode())

    def _measurer(self, checkpoint: Checkpoint) -> Measurer:
        dtype = {"float32": torch.float32, "bfloat16": torch.bfloat16}[self.job.dtype]
        return Measurer(
            drafter=Drafter(checkpoint, self.device, dtype),
            teacher=Teacher(checkpoint.teacher_head, checkpoint.target_ids, self.device),
        )

    def _checkpoint_warnings(self, checkpoint: Checkpoint) -> Iterator[str]:
        yield from checkpoint.warnings
        unexpected = [problem.found for problem in checkpoint.facts.problems]
        if unexpected:
            yield f"{len(unexpected)} unexpected tensor(s) were not used: {', '.join(unexpected)}"
        if checkpoint.config.norm_output:
            yield (
                "config.json says `norm_output: true`, which SpecForge and SGLang read differently; the test feeds "
                "back the un-normed state"
            )

    def _usable(self) -> Iterator[Row]:
        """Usable rows in order; the others are noted by name."""
        for row in self.reader.rows():
            if isinstance(row, Row):
                yield row
            elif row.name not in self.skipped:
                self.skipped[row.name] = row
                self._warn("row_skipped", f"{row.name}: {row.reason}")

    def _judged(self) -> Iterator[JudgedRow]:
        for row in self._usable():
            yield judge_row(self.measurer.drafter, self.measurer.teacher, row, self.job.steps)

    def _look_at_first_row(self) -> None:
        """What the rows hold: how many states, in which dtype, and whether the final state is normed."""
        row = next(self._usable(), None)
        if row is None:
            raise no_usable_row(self.reader.folder.folder, tuple(self.skipped.values()))
        self.captured = row.states.shape[1]
        self.rows_dtype = str(row.states.dtype).removeprefix("torch.")
        check_fit(self.captured, self.checkpoint.slots, self.job.states, self.checkpoint.target.layers)
        norm = self.checkpoint.target_norm
        self.final_state = "post_norm" if norm is None else final_state_kind(row.final, norm)
        if self.final_state == "pre_norm" and norm is not None:
            self.measurer.teacher.expect_pre_norm(norm, self.checkpoint.target.rms_norm_eps)
            self._warn("final_state", "the rows' final state is not normed; the test applied the target's final norm")

    def _declared(self) -> DeclaredWiring:
        target = self.checkpoint.target
        return declare(
            self.checkpoint.config, self.checkpoint.slots, target.architecture, target.layers, self.job.states
        )

    def _declared_reading(self) -> Reading | None:
        return Reading(slots=self.declared.slots, token_offset=1) if self.declared.slots else None

    def _search(self) -> Found:
        job, few = self.job, self.job.search_rows
        readings = wirings(self.captured, self.checkpoint.slots)
        survivors, dropped = screen(self.measurer, islice(self._judged(), few), readings, job.keep_readings)
        ranked = search(self.measurer, islice(self._judged(), few), [tally.reading for tally in survivors], job.steps)
        best = ranked[0].reading.slots
        others = [Reading(slots=best, token_offset=offset) for offset in job.token_offsets if offset != 1]
        if others:
            ranked += search(self.measurer, islice(self._judged(), few), others, job.steps)
        return Found(ranked=tuple(sorted(ranked, key=lambda tally: -tally.score)), dropped=tuple(dropped))

    def _measure(self, readings: tuple[Reading, ...], hits_file: HitsFile) -> tuple[list[Tally], RowsFacts]:
        """Every finalist on every row, all steps."""
        tallies = [Tally(reading=reading, stage="full") for reading in readings]
        tokens = responses = used = 0
        files, started, reported = self.reader.folder.files, time.perf_counter(), 0.0
        for index, judged in enumerate(self._judged()):
            hits = self.measurer.add(tallies, judged, self.job.steps)
            hits_file.add_row(row_facts(index, judged, self.measurer.teacher))
            for reading, own in zip(readings, hits, strict=True):
                hits_file.add_hits(reading_hits(index, judged, reading, own))
            used += 1
            tokens += len(judged.row.tokens)
            responses += int(judged.row.loss_mask.sum())
            elapsed = time.perf_counter() - started
            done = used + len(self.skipped)
            if elapsed - reported > PROGRESS_INTERVAL_S or done == len(files):
                reported = elapsed
                self._progress(done, len(files), f"{tokens / elapsed:.0f} tokens/s")
        return tallies, RowsFacts(
            folder=str(self.reader.folder.folder),
            layout=self.reader.folder.layout,
            found=len(files),
            used=used,
            skipped=tuple(self.skipped.values()),
            tokens=tokens,
            response_tokens=responses,
            captured_states=self.captured,
            states=self.job.states,
            final_state=self.final_state,
            dtype=self.rows_dtype,
        )

    def _result(self, found: Found, finals: list[Tally], rows: RowsFacts) -> StandaloneResult:
        # A reading is told once, as far as it got.
        by_name = {tally.reading.name: tally for tally in [*found.dropped, *found.ranked, *finals]}
        stages = {"full": 0, "search": 1, "screen": 2}
        told = sorted(by_name.values(), key=lambda tally: (stages[tally.stage], -tally.score))
        return StandaloneResult(
            checkpoint=self.checkpoint.facts,
            declared=self.declared,
            rows=rows,
            readings=tuple(tally.facts(self.job.states) for tally in told),
            steps=self.job.steps,
            dtype=self.job.dtype,
            device=str(self.device),
            device_name=machine.device_name(self.device),
            torch=torch.__version__,
            python=platform.python_version(),
            threads=torch.get_num_threads(),
            phases=tuple(self.phases),
            peak_memory_bytes=machine.peak_memory_bytes(),
            peak_gpu_memory_bytes=machine.peak_gpu_memory_bytes(self.device),
            warnings=tuple(self.warnings),
        )

    @contextmanager
    def _phase(self, name: str) -> Iterator[dict[str, int]]:
        self._report(Event(time_unix_s=time.time(), kind="phase", name=name))
        started, extra = time.perf_counter(), dict[str, int]()
        yield extra
        seconds = time.perf_counter() - started
        self.phases.append(Phase(name=name, seconds=seconds, tokens=extra.get("tokens")))

    def _progress(self, done: int, total: int, message: str) -> None:
        self._report(
            Event(
                time_unix_s=time.time(),
                kind="progress",
                name="rows",
                message=message,
                done=float(done),
                total=float(total),
                unit="rows",
            )
        )

    def _warn(self, name: str, message: str) -> None:
        self.warnings.append(message)
        self._report(Event(time_unix_s=time.time(), kind="warning", name=name, message=message))
