"""Which servers a job starts and which loads each gets, in which order."""

from dataclasses import dataclass

from remote_payload.schema.bench import Side
from remote_payload.schema.bench_job import BenchJob
from remote_payload.sglang_bench.client import Load
from remote_payload.sglang_bench.workload import PER_USER, Workload

OPEN_WARMUP_USERS = 4


@dataclass(frozen=True, kw_only=True)
class Start:
    """One start of a server and the repeats that are measured on it."""

    side: Side
    repeats: tuple[int, ...]


def starts(job: BenchJob) -> tuple[Start, ...]:
    """Which servers are started, in order.

    Alone: so many starts as are asked for, with all repeats on each. In a pair each repeat is a block with a start of
    either side, and every other block is turned round - spec, plain, plain, spec, ... - so that what drifts steadily
    (clocks, temperature, other people's load) falls on both sides alike, and so does the luck of a start.
    """
    if not job.with_baseline:
        side: Side = "spec" if job.speculates else "plain"
        firsts = range(0, job.repeats_in_all, job.repeats)
        return tuple(Start(side=side, repeats=tuple(range(first, first + job.repeats))) for first in firsts)
    order: list[Start] = []
    for repeat in range(job.repeats):
        sides: tuple[Side, Side] = ("spec", "plain") if repeat % 2 == 0 else ("plain", "spec")
        order += [Start(side=side, repeats=(repeat,)) for side in sides]
    return tuple(order)


def loads(job: BenchJob) -> tuple[Load, ...]:
    """The loads of one repeat; the same arrivals on both sides."""
    closed = tuple(Load(users=users) for users in job.concurrency)
    return (*closed, *(Load(rate=rate, seed=job.seed) for rate in job.request_rate))


def lowest_load(job: BenchJob) -> Load:
    """The load with the fewest users, else the lowest rate: where acceptance costs no waiting."""
    return min(loads(job), key=lambda load: (load.users is None, load.users or load.rate or 0))


def last_speculating(job: BenchJob) -> int:
    """The number of the last start that speculates, or of the last one where all are plain."""
    sides = [one.side for one in starts(job)]
    return max((number for number, side in enumerate(sides) if side == "spec"), default=len(sides) - 1)


def in_words(load: Load) -> str:
    """For people: `4 users`, `2.5 requests/s`."""
    if load.users is None:
        return f"{load.rate:g} requests/s"
    return f"{load.users} user" + ("s" if load.users > 1 else "")


def requests_of(job: BenchJob, workload: Workload, load: Load) -> int:
    """How many requests a point has: as many as asked for, else every prompt once and at least five a user."""
    return job.requests or max(workload.once or len(workload.prompts), PER_USER * (load.users or 0))


def spare_needed(job: BenchJob) -> int:
    """How many prompts warm-ups take."""
    return max(warmups_of(load) for load in loads(job))


def warmups_of(load: Load) -> int:
    """How many requests warm a server up for it."""
    return 2 * (load.users or OPEN_WARMUP_USERS)
