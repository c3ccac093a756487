"""The drafter test as a resident process (see `resident.py`).

    python -m benchmarks.our_driver --draft D --target T --rows R --wiring 1,2,3 --steps 4 --dtype bfloat16 --threads 1

A line is `one` (that wiring over all rows), or `wiring` or `full` (a whole job with that sweep).
"""

import argparse
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Literal

import torch

from benchmarks.answering import answer, peak_bytes
from remote_payload.schema import Event, StandaloneJob, StandaloneResult, from_json
from remote_payload.standalone import job as standalone
from remote_payload.standalone.checkpoint.load import load_checkpoint
from remote_payload.standalone.graph import Reading
from remote_payload.standalone.measure import acceptance
from remote_payload.standalone.measure.tally import Tally, counted_hits
from remote_payload.standalone.model.drafter import Drafter
from remote_payload.standalone.rows.files import find_rows
from remote_payload.standalone.rows.row import Row, RowReader
from remote_payload.standalone.setup import DTYPES

FIRST_PHASE = "look"
"""The job's phase after loading: its time counts from here, results written."""


def main() -> None:
    """Load, and measure a round for every line on stdin."""
    parser = argparse.ArgumentParser()
    for name in ("draft", "target", "rows"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    parser.add_argument("--wiring", required=True)
    parser.add_argument("--dtype", choices=tuple(DTYPES), required=True)
    for name in ("steps", "threads"):
        parser.add_argument(f"--{name}", type=int, required=True)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    imported_bytes = peak_bytes()
    jobs = {"wiring": partial(_whole_job, arguments, "wiring"), "full": partial(_whole_job, arguments, "full")}
    answer({"one": _one_wiring(arguments), **jobs}, imported_bytes=imported_bytes)


def _one_wiring(arguments: argparse.Namespace) -> Callable[[], dict[str, float]]:
    """Read every row and measure one reading with all steps."""
    checkpoint, cpu = load_checkpoint(arguments.draft, arguments.target), torch.device("cpu")
    drafter = Drafter(checkpoint, cpu, DTYPES[arguments.dtype])
    teacher = acceptance.Teacher(checkpoint.teacher_head, checkpoint.target_ids, cpu)
    checkpoint.weights.clear()  # as the job does
    steps, reading = arguments.steps, Reading(slots=tuple(map(int, arguments.wiring.split(","))), token_offset=1)

    def measure() -> dict[str, float]:
        tally, tokens = Tally(reading=reading, stage="full"), 0
        reader = RowReader(  # a new one: it remembers which rows it has found sound
            folder=find_rows(arguments.rows, None, None),
            target_hidden_size=checkpoint.config.target_hidden_size,
            vocab_size=checkpoint.config.vocab_size,
            steps=steps,
        )
        with torch.inference_mode():
            for row in reader.rows():
                assert isinstance(row, Row), row
                judged = acceptance.judge_row(drafter, teacher, row, steps)
                hits = acceptance.measure(drafter, teacher, judged, [reading], steps)
                tally.add(counted_hits(judged, hits)[0], 0.0, keep=False)
                tokens += len(row.tokens)
        return {"tokens": tokens, "accuracy": tally.first_step_hits / tally.positions}

    return measure


def _whole_job(arguments: argparse.Namespace, sweep: Literal["full", "wiring"]) -> dict[str, float]:
    """The job as it is launched; everything after loading counts, but there is no capture check."""
    with tempfile.TemporaryDirectory(prefix="eagle3-benchmark-") as name:
        job = StandaloneJob(
            draft=str(arguments.draft),
            target=str(arguments.target),
            rows=str(arguments.rows),
            dtype=arguments.dtype,
            steps=arguments.steps,
            device="cpu",
            threads=arguments.threads,
            sweep=sweep,
            capture_rows=0,
        )
        result_folder = Path(name) / "result"
        result_folder.mkdir()
        begun: list[tuple[float, float]] = []

        def report(event: Event) -> None:
            if event.kind == "phase" and event.name == FIRST_PHASE:
                begun.append((time.perf_counter(), time.process_time()))

        standalone.run(job, result_folder, report)
        ended = time.perf_counter(), time.process_time()
        result = from_json(StandaloneResult, (result_folder / standalone.RESULT_NAME).read_text(encoding="utf-8"))
    told = {f"seconds of {phase.name}": phase.seconds for phase in result.phases}
    seconds, cpu_seconds = (end - begin for begin, end in zip(begun[0], ended, strict=True))
    counts = {"tokens": result.rows.tokens, "readings": len(result.readings)}
    return {**counts, "seconds": seconds, "cpu_seconds": cpu_seconds, **told}


main()
