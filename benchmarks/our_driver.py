"""The drafter test as a resident process (see `resident.py`).

    python -m benchmarks.our_driver --draft D --target T --rows R --wiring 1,2,3 --steps 4 --dtype bfloat16 --threads 1

A line is `one` (that wiring over all rows), or `wiring` or `full` (a whole job with that sweep).
"""

import argparse
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import torch

from benchmarks.answering import answer, peak_bytes
from remote_payload.schema import StandaloneJob, StandaloneResult, from_json
from remote_payload.standalone import job as standalone
from remote_payload.standalone.checkpoint.load import load_checkpoint
from remote_payload.standalone.graph import Reading
from remote_payload.standalone.measure.acceptance import Teacher, judge_row
from remote_payload.standalone.measure.wiring import Measurer, Tally
from remote_payload.standalone.model.drafter import Drafter
from remote_payload.standalone.rows.files import find_rows
from remote_payload.standalone.rows.row import Row, RowReader

NOT_SWEEP = ("load", "capture")
"""Phases of a job that are not its sweep."""


def main() -> None:
    """Load, and measure a round for every line on stdin."""
    parser = argparse.ArgumentParser()
    for name in ("draft", "target", "rows"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    parser.add_argument("--wiring", required=True)
    parser.add_argument("--dtype", choices=tuple(standalone.DTYPES), required=True)
    for name in ("steps", "threads"):
        parser.add_argument(f"--{name}", type=int, required=True)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    imported_bytes = peak_bytes()
    sweeps = {sweep: partial(_whole_job, arguments, sweep) for sweep in ("wiring", "full")}
    answer({"one": _one_wiring(arguments), **sweeps}, imported_bytes=imported_bytes)


def _one_wiring(arguments: argparse.Namespace) -> Callable[[], dict[str, float]]:
    """Read every row and measure one reading with all steps."""
    checkpoint, cpu = load_checkpoint(arguments.draft, arguments.target), torch.device("cpu")
    measurer = Measurer(
        drafter=Drafter(checkpoint, cpu, standalone.DTYPES[arguments.dtype]),
        teacher=Teacher(checkpoint.teacher_head, checkpoint.target_ids, cpu),
    )
    reader = RowReader(
        folder=find_rows(arguments.rows, None, None),
        target_hidden_size=checkpoint.config.target_hidden_size,
        vocab_size=checkpoint.config.vocab_size,
        steps=arguments.steps,
    )

    wiring = tuple(map(int, arguments.wiring.split(",")))

    def measure() -> dict[str, float]:
        tally, tokens = Tally(reading=Reading(slots=wiring, token_offset=1), stage="full"), 0
        with torch.inference_mode():
            for row in reader.rows():
                assert isinstance(row, Row), row
                measurer.add(
                    [tally], judge_row(measurer.drafter, measurer.teacher, row, arguments.steps), arguments.steps
                )
                tokens += len(row.tokens)
        return {"tokens": tokens, "accuracy": tally.first_step_hits / tally.positions}

    return measure


def _whole_job(arguments: argparse.Namespace, sweep: str) -> dict[str, float]:
    """The job as it is launched; what counts is its sweep: all phases but loading and the capture check."""
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
        standalone.run(job, Path(name), lambda event: None)
        result = from_json(StandaloneResult, (Path(name) / standalone.RESULT_NAME).read_text(encoding="utf-8"))
    phases = {phase.name: phase.seconds for phase in result.phases}
    seconds = sum(seconds for name, seconds in phases.items() if name not in NOT_SWEEP)
    told = {f"seconds of {name}": seconds for name, seconds in phases.items()}
    return {"tokens": result.rows.tokens, "seconds": seconds, "readings": len(result.readings), **told}


main()
