"""A sweep as text: what would be run, how far it is, what became of every point."""

import json
from collections import Counter
from typing import Any

from orchestrator.report.lines import wrapped
from orchestrator.sweep.points import in_words, point_words, without_loads, words_of
from orchestrator.sweep.standing import Progress, Standing, Word, in_time
from remote_payload.schema import SweepJob

SHOWN_SKIPPED = 40
SHOWN_NOT_RUN = 10
ORDER: tuple[Word, ...] = ("measured", "running", "waiting", "failed", "cancelled", "not run")


def plan_text(job: SweepJob, estimate: str, width: int) -> str:
    """What a sweep file comes to: the starts of its first block with their points, and every skip with its reason."""
    blocks = 1 + max((unit.block for unit in job.units), default=0)
    plain = {point.point_id for point in job.points if point.is_baseline}
    lines = wrapped(
        f"{_count(len(job.points), 'point')} in {_count(blocks, 'block')}: {_count(len(job.units), 'start')} on the "
        f"host, {_count(sum(len(unit.points) for unit in job.units), 'measurement')}; time: {estimate}",
        width,
    )
    for unit in job.units:
        if unit.block == 0:
            changes = {key: _listed(value) for key, value in json.loads(unit.changes_json).items() if value != []}
            words = words_of(changes, is_baseline=unit.points[0] in plain)
            lines += wrapped(f"{unit.unit_id}  {words}", width, "  ")
    if job.skipped:
        lines += ["", *skipped_text(job, width)]
    return "\n".join(lines)


def _listed(value: object) -> object:
    return ", ".join(map(str, value)) if isinstance(value, list) else value


def skipped_text(job: SweepJob, width: int) -> list[str]:
    """How many combinations are left out, which, and why; nothing of a sweep that leaves out none."""
    return [f"{_count(len(job.skipped), 'combination')} skipped:", *_skipped(job, width)] if job.skipped else []


def _skipped(job: SweepJob, width: int) -> list[str]:
    """Each configuration once, however many loads it would have had."""
    told = Counter((in_words(without_loads(json.loads(one.changes_json))), one.reason) for one in job.skipped)
    lines: list[str] = []
    for (words, reason), loads in list(told.items())[:SHOWN_SKIPPED]:
        lines += wrapped(f"{words}{'' if loads == 1 else f' ({loads} loads)'}: {reason}", width, "  ")
    if len(told) > SHOWN_SKIPPED:
        lines.append(f"  and {len(told) - SHOWN_SKIPPED} more; --json has them all")
    return lines


def plan_json(job: SweepJob, seconds: float | None, least_s: float | None = None) -> dict[str, Any]:
    """The same as values; `seconds` and `least_s`: the most and the least that earlier runs suggest."""
    return {
        "points": [
            {"point_id": one.point_id, "settings": json.loads(one.changes_json), "baseline": one.is_baseline}
            for one in job.points
        ],
        "skipped": [{"settings": json.loads(one.changes_json), "reason": one.reason} for one in job.skipped],
        "units": [
            {
                "unit_id": one.unit_id,
                "block": one.block,
                "points": list(one.points),
                "settings": json.loads(one.changes_json),
            }
            for one in job.units
        ],
        "estimate_s": seconds,
        "estimate_least_s": least_s,
    }


def counts_text(progress: Progress) -> str:
    """e.g. `36 of 40 measured, 4 failed`."""
    left = "" if progress.left_s is None else f"; about {in_time(progress.left_s)} left, by those so far"
    return counted(progress.counts) + left


def counted(counts: "Counter[Word]") -> str:
    """The same of points of several sweeps."""
    words = [f"{counts['measured']} of {counts.total()} measured"]
    words += [f"{counts[word]} {word}" for word in ORDER[1:] if counts[word]]
    return ", ".join(words)


def progress_text(run_id: str, host: str, job: SweepJob, progress: Progress, width: int) -> str:
    """How far a sweep is; every point that is not measured and not waiting, with its reason."""
    words = {point.point_id: point_words(point) for point in job.points}
    lines = [f"{run_id} on {host}: {progress.phase}", f"  points  {counts_text(progress)}"]
    for one in progress.standings:
        if one.word not in ("measured", "waiting", "not run"):
            lines += wrapped(_told(one, words[one.point_id]), width, "  ")
    return "\n".join([*lines, *not_run_text(progress, job, width)])


def progress_json(run_id: str, host: str, job: SweepJob, progress: Progress) -> dict[str, Any]:
    """The same as values, every point of every block."""
    settings = {point.point_id: json.loads(point.changes_json) for point in job.points}
    return {
        "run_id": run_id,
        "host": host,
        "phase": progress.phase,
        "planned": len(progress.standings),
        "left_s": progress.left_s,
        "not_run_because": not_run_because(progress, job) if progress.counts["not run"] else None,
        "counts": {word: progress.counts[word] for word in ORDER},
        "points": [
            {
                "point_id": one.point_id,
                "settings": settings[one.point_id],
                "block": one.block,
                "word": one.word,
                "run_id": one.run_id,
                "attempts": one.attempts,
                "failure": None if one.failure is None else {"kind": one.failure.kind, "message": one.failure.message},
            }
            for one in progress.standings
        ],
    }


def failures_text(progress: Progress, job: SweepJob, width: int) -> list[str]:
    """Every failure that is kept, a line or two each, and what was never run."""
    words = {point.point_id: point_words(point) for point in job.points}
    lines = [
        line
        for one in progress.standings
        if one.word in ("failed", "cancelled")
        for line in wrapped(_told(one, words[one.point_id]), width, "  ")
    ]
    return [*lines, *not_run_text(progress, job, width)]


def not_run_text(progress: Progress, job: SweepJob, width: int) -> list[str]:
    """Why points were never run, and which."""
    words = {point.point_id: point_words(point) for point in job.points}
    missed = [one for one in progress.standings if one.word == "not run"]
    if not missed:
        return []
    lines = wrapped(f"not run: {_count(len(missed), 'measurement')}, {not_run_because(progress, job)}:", width, "  ")
    for one in missed[:SHOWN_NOT_RUN]:
        why = "" if one.failure is None else f": {one.failure.message}"
        lines += wrapped(f"{words[one.point_id]}, block {one.block}{why}", width, "    ")
    if len(missed) > SHOWN_NOT_RUN:
        lines.append(f"    and {len(missed) - SHOWN_NOT_RUN} more; --json has them all")
    return lines


def not_run_because(progress: Progress, job: SweepJob) -> str:
    """Why a sweep did not come to all of its points: it is over, or leaves out the rest while some still run."""
    if job.stop_after_failures is not None and (progress.phase == "succeeded" or not progress.is_over):
        return f"`stop_after_failures` = {job.stop_after_failures}: so many starts in a row measured nothing"
    return f"the sweep ended before, {progress.phase.replace('_', ' ')}"


def _told(one: Standing, words: str) -> str:
    where = "" if one.run_id is None else f" ({one.run_id})"
    why = "" if one.failure is None else f": {one.failure.message}"
    return f"{one.word}: {words}, block {one.block}{where}{why}"


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
