"""submitit's side of `benchmarks.slurm_array`: N no-ops that return 2 KB each, as one array; run on the login node."""

import os
import sys
import time
from pathlib import Path

import submitit


def nothing(size: int) -> bytes:
    return os.urandom(size)


def main() -> None:
    folder, number = Path(sys.argv[1]), int(sys.argv[2])
    executor = submitit.SlurmExecutor(folder=folder / f"{time.time():.3f}")
    executor.update_parameters(time=5, array_parallelism=number, cpus_per_task=1)
    jobs = executor.map_array(nothing, [2048] * number)
    assert all(len(job.result()) == 2048 for job in jobs)


main()
