"""Every point of a sweep file for one host, before that host is asked; and those left out because they cannot win."""

import dataclasses
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from orchestrator import jobfile
from orchestrator.config import Config
from orchestrator.errors import JobFileError
from orchestrator.order import at_host
from orchestrator.sweep.depth_pruning import hopeless
from orchestrator.sweep.file import SweepFile
from orchestrator.sweep.points import Expanded, as_json, expand
from orchestrator.sweep.pruning import Chain, propose
from remote_payload.schema import Setting, SkippedPoint, UnitJob

if TYPE_CHECKING:
    from orchestrator.compare.prediction import Prediction
    from orchestrator.sweep.tested import DrafterRead


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """A sweep file put together with all that lies under it, before the host is asked."""

    file: SweepFile
    base: UnitJob
    settings: tuple[Setting, ...]
    expanded: Expanded


def wanted(file: SweepFile, flags: Mapping[str, Any], config: Config, host: str) -> Wanted:
    """Every point of the file for this host, without asking it. Raises JobFileError."""
    shared = (f"{file.source} [sweep.base]", file.base)
    try:
        job = jobfile.plan(file.job, config, None, flags, shared=shared)
    except JobFileError as error:  # what a flag of the job may be, the file may say as well
        error.hint = (
            error.hint or f"every setting of a point has a flag here, or a line under [sweep.base] of {file.source}"
        )
        raise
    planned = at_host(job, host, config.host(host))
    if not isinstance(planned.job, UnitJob):
        raise JobFileError(f"{file.source}: a sweep's points cannot be sweeps")
    expanded = expand(file, planned.job)
    if not expanded.points:
        first = expanded.skipped[0]
        raise JobFileError(f"{file.source}: every combination is skipped; the first because {first.reason}")
    return Wanted(file=file, base=planned.job, settings=planned.settings, expanded=expanded)


def without(asked: Wanted, chains: Sequence[Chain]) -> Wanted:
    """The same without the points that cannot win, by what an earlier sweep measured; these are skipped, with why.

    Raises JobFileError where nothing but plain decoding would be left.
    """
    return _skipping(asked, {one.point_id: one.reason for one in propose(chains, _jobs(asked))})


def without_foretold(asked: Wanted, told: "Prediction", of: "DrafterRead") -> Wanted:
    """The same without the points that cannot win, by a test of the drafter outside the server.

    Raises InvalidRunError where it has no step cost or no target, UsageError where no point has that drafter or target,
    and as `without` does.
    """
    return _skipping(asked, hopeless(told, of, _jobs(asked)))


def _jobs(asked: Wanted) -> dict[str, dict[str, Any]]:
    """The whole job of every point that may be skipped, by its place."""
    return {str(at): as_json(point.job) for at, point in enumerate(asked.expanded.points) if not point.is_baseline}


def _skipping(asked: Wanted, reasons: Mapping[str, str]) -> Wanted:
    points = asked.expanded.points
    skipped = tuple(
        SkippedPoint(changes_json=json.dumps(points[int(at)].changes), reason=reason) for at, reason in reasons.items()
    )
    kept = tuple(point for at, point in enumerate(points) if str(at) not in reasons)
    if reasons and all(point.is_baseline for point in kept):
        raise JobFileError(
            f"{asked.file.source}: nothing is left to measure but plain decoding: every other point is skipped, the "
            f"first because it {next(iter(reasons.values()))}"
        )
    return dataclasses.replace(asked, expanded=Expanded(points=kept, skipped=(*asked.expanded.skipped, *skipped)))
