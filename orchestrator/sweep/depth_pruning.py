"""Which chains cannot win, foretold from a drafter test outside the server: its accept length at every depth. Pure.

A chain of k draft steps is worth AL(k) / r(k) of plain decoding, with r given by who asks. It is left out where all of
that interval is below the best depth's of the same sweep, else alike, or below plain decoding, by the margin that a
sweep's own chains are judged by.
Only at one user, whose step cost r is taken to be; greedy chains of the very drafter that was tested; no trees.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from orchestrator.errors import InvalidRunError, UsageError
from orchestrator.sweep.pruning import DEPTH, MARGIN, alike

if TYPE_CHECKING:
    from orchestrator.compare.prediction import Prediction
    from orchestrator.sweep.tested import DrafterRead


def hopeless(told: "Prediction", of: "DrafterRead", jobs: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """Why each of the points (whole jobs, by any key) that cannot win cannot; the others are not among them.

    Raises InvalidRunError where nobody said what a step costs or the test read no target, UsageError where no point has
    the drafter and the target that were tested.
    """
    if told.cost is None:
        raise InvalidRunError(
            "--prune: the run says how deep chains are accepted, and nobody what a speculative step costs",
            hint="give --step-cost, e.g. 1.47+0.16k, or [[step_costs]] in eagle3.toml",
        )
    if of.target is None:
        raise InvalidRunError(
            "--prune: the run read no target, so it tells nothing of a server's",
            hint="test the drafter again with --target, the folder that the sweep serves as `model`",
        )
    if not any(job.get("draft") == of.draft for job in jobs.values()):
        raise UsageError(f"--prune: the run tested another drafter than any point has: {of.draft}")
    if not any(job.get("model") == of.target for job in jobs.values() if job.get("draft") == of.draft):
        raise UsageError(
            f"--prune: the run tested the drafter for another target than any point serves: {of.target}",
            hint="name that folder as `model`, or test the drafter with the one that is served",
        )
    bounds = {
        depth.steps: (depth.speedup.low, depth.speedup.high)
        for depth in told.depths
        if depth.speedup is not None and depth.speedup.low is not None and depth.speedup.high is not None
    }
    chains = {key: job for key, job in jobs.items() if _is_foretold(job, of) and job.get("num_steps") in bounds}
    found: dict[str, str] = {}
    for key, job in chains.items():
        rivals = (int(one["num_steps"]) for one in chains.values() if alike(one, job, DEPTH))  # itself among them
        best, at = max((bounds[steps][0], steps) for steps in rivals)
        most = bounds[int(job["num_steps"])][1]
        if most * (1 + MARGIN) < max(best, 1.0):
            rival = f"{at} steps reach at least {best:.2f}x" if best >= 1 else "plain decoding is 1x"
            found[key] = (
                f"cannot win: foretold at most {most:.2f}x plain decoding at one user (95 %, {told.reading}, "
                f"r = {told.cost.words} as {told.cost.source} says), and {rival}"
            )
    return found


def _is_foretold(job: Mapping[str, Any], of: "DrafterRead") -> bool:
    """One user's greedy chain of that drafter, for that target."""
    is_chain = job.get("eagle_topk") == 1 and (job.get("draft"), job.get("model")) == (of.draft, of.target)
    return bool(
        is_chain and job.get("temperature") == 0 and job.get("concurrency") == [1] and not job.get("request_rate")
    )
