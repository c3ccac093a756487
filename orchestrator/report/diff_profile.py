"""Depth profile and accept histogram of both sides, side by side."""

from orchestrator.compare.comparison import CaseComparison
from orchestrator.compare.served_acceptance import Depth, depth_profile
from orchestrator.report.lines import wrapped
from orchestrator.report.table import listed
from orchestrator.report.words import UNKNOWN


def profile_lines(case: CaseComparison, width: int) -> list[str]:
    """Nothing where no side tells how many drafts its verify steps accepted."""
    ours, theirs = case.ours.histogram, case.theirs.histogram
    if len(ours) < 2 and len(theirs) < 2:
        return []
    rows = [["depth", "reached: reference", "this", "of those before: reference", "this"]]
    mine, other = depth_profile(ours), depth_profile(theirs)
    for at in range(max(len(mine), len(other))):
        ahead = _joint(other, at), _joint(mine, at)
        rows.append([str(at + 1), *ahead, _conditional(other, at), _conditional(mine, at)])
    steps = [["drafts accepted", *(str(count) for count in range(max(len(ours), len(theirs))))]]
    for name, histogram in (("reference", theirs), ("this", ours)):
        total = sum(histogram)
        shares = [_share(histogram, count, total) for count in range(len(steps[0]) - 1)]
        steps.append([f"{name}, n={total}" if total else f"{name}, {UNKNOWN}", *shares])
    return [
        *wrapped(
            "verify steps that accepted at least so many drafts: of all, and of those that came one less deep",
            width,
            "  ",
        ),
        *listed(rows, width, "    "),
        "  verify steps by the drafts they accepted:",
        *listed(steps, width, "    "),
    ]


def _share(histogram: tuple[int, ...], count: int, total: int) -> str:
    if not total:
        return "-"
    return f"{100 * (histogram[count] if count < len(histogram) else 0) / total:.1f} %"


def _joint(depths: tuple[Depth, ...], at: int) -> str:
    if at >= len(depths) or depths[at].joint.value is None:
        return "-"
    return f"{100 * (depths[at].joint.value or 0.0):.1f} %"


def _conditional(depths: tuple[Depth, ...], at: int) -> str:
    """Hidden where too few steps came so deep."""
    if at >= len(depths) or depths[at].conditional.value is None:
        return "-"
    found = depths[at].conditional
    return f"{100 * (found.value or 0.0):.1f} % n={found.n}" if depths[at].is_shown else f"too few, n={found.n}"
