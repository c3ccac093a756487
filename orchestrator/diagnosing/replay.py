"""The standalone test on the rows that a capture made: what a server should accept on the text that it serves."""

from typing import TYPE_CHECKING

from orchestrator import jobfile
from orchestrator.config import Config
from orchestrator.diagnosis.served_states import judge_capture
from orchestrator.jobfile import PlannedJob
from remote_payload.schema import BenchJob
from remote_payload.schema.capture import CapturedRows, CaptureResult

if TYPE_CHECKING:
    from orchestrator.diagnosing.asked import Asked
    from orchestrator.diagnosing.results import Results


def replay_job(asked: "Asked", config: Config, done: "Results") -> PlannedJob | str:
    """The test of the drafter as it is served, on what a server said; or why there is none."""
    result = done.captured
    if result is None:
        return "no server told what it feeds"
    if result.why_not is not None:
        return result.why_not
    if asked.draft is None:
        return "it takes the drafter's folder (--draft)"
    made = [rows for split in ("answered", "heldout") if (rows := rows_of(result, split)) is not None]
    if not made:
        why = "".join(f": {warning}" for warning in result.warnings[:1])
        return f"no prompt was answered and captured (--merged, --prompts, --heldout-prompts){why}"
    states = served_states(result)
    if states is None:
        return "the served states are like none that were captured: nobody knows how to name them"
    served = asked.serve(config).job
    steps = served.num_steps if isinstance(served, BenchJob) else None
    flags = {
        "draft": asked.draft,
        "target": asked.model,
        "rows": made[0].folder,
        "heldout": made[1].folder if len(made) > 1 else None,
        "states": list(states),
        "add_embedding": None if 0 in states else True,  # a mended drafter may read what is not fed now
        "wanted": None if done.trained is None else list(done.trained),
        "sweep": "wiring",
        "capture_rows": 0,
        "steps": steps,
    }
    return jobfile.plan("standalone", config, None, flags)


def rows_of(result: CaptureResult, split: str) -> CapturedRows | None:
    """The rows that were made of a split; None where there are none."""
    return next((made for made in result.made if made.split == split and made.rows), None)


def served_states(result: CaptureResult) -> tuple[int, ...] | None:
    """HF `hidden_states` index of each served state, in order; None where one of them cannot be named.

    Where there was nothing to compare them with, the rule of the installed source names them.
    """
    judged = judge_capture(result)
    states = tuple(state for state in judged.states if state is not None)
    if states and len(states) == len(judged.states):
        return states
    named = judged.rule.states
    whole = named is not None and result.width == len(named) * (result.hidden_size or 0)
    return named if judged.verdict == "not_compared" and not result.served and whole else None
