"""The drafter test as a resident process (see `resident.py`): `one` wiring over all rows, or a whole `job` over them.

python -m benchmarks.our_driver --draft D --target T --rows R --dtype bfloat16
"""

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import torch

from benchmarks.example_data import STEPS, WIRING
from remote_payload.schema import StandaloneJob, StandaloneResult, from_json
from remote_payload.standalone import job as standalone
from remote_payload.standalone.checkpoint.load import load_checkpoint
from remote_payload.standalone.graph import Reading
from remote_payload.standalone.measure.acceptance import Teacher, judge_row
from remote_payload.standalone.measure.wiring import Measurer, Tally
from remote_payload.standalone.model.drafter import Drafter
from remote_payload.standalone.rows.files import find_rows
from remote_payload.standalone.rows.row import Row, RowReader


def main() -> None:
    """Load, say so, and measure a round for every line on stdin."""
    parser = argparse.ArgumentParser()
    for name in ("draft", "target", "rows"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    parser.add_argument("--dtype", choices=tuple(standalone.DTYPES), required=True)
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    rounds = {"one": _one_wiring(arguments), "job": lambda: _whole_job(arguments)}
    print("ready", flush=True)
    for line in sys.stdin:
        begun_s, begun_cpu_s = time.perf_counter(), time.process_time()
        measured = rounds[line.strip()]()
        found = {"seconds": time.perf_counter() - begun_s, "cpu_seconds": time.process_time() - begun_cpu_s}
        print(json.dumps({**found, **measured}), flush=True)


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
        steps=STEPS,
    )

    def measure() -> dict[str, float]:
        tally, tokens = Tally(reading=Reading(slots=WIRING, token_offset=1), stage="full"), 0
        with torch.inference_mode():
            for row in reader.rows():
                assert isinstance(row, Row), row
                measurer.add([tally], judge_row(measurer.drafter, measurer.teacher, row, STEPS), STEPS)
                tokens += len(row.tokens)
        return {"tokens": tokens, "accuracy": tally.first_step_hits / tally.positions}

    return measure


def _whole_job(arguments: argparse.Namespace) -> dict[str, float]:
    """All 24 ordered wirings: the job as it is launched; its search and measure phases, without loading."""
    with tempfile.TemporaryDirectory(prefix="eagle3-benchmark-") as name:
        job = StandaloneJob(
            draft=str(arguments.draft),
            target=str(arguments.target),
            rows=str(arguments.rows),
            dtype=arguments.dtype,
            steps=STEPS,
            device="cpu",
            threads=arguments.threads,
        )
        standalone.run(job, Path(name), lambda event: None)
        result = from_json(StandaloneResult, (Path(name) / standalone.RESULT_NAME).read_text(encoding="utf-8"))
    phases = {phase.name: phase.seconds for phase in result.phases}
    return {"tokens": result.rows.tokens, "seconds": phases["search"] + phases["measure"]}


main()
