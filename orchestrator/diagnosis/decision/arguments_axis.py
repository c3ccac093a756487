"""K13 as an answer: whether the server runs with what it was asked for."""

from dataclasses import replace

from orchestrator.diagnosis.decision.axes import Signal
from orchestrator.diagnosis.decision.inputs import Served
from orchestrator.diagnosis.decision.offline_axes import weighty
from orchestrator.diagnosis.finding import CheckResult
from orchestrator.diagnosis.served_asked import ARGUMENTS
from orchestrator.diagnosis.served_engine import PATH


def arguments_signal(served: Served, weights: tuple[CheckResult, ...] = ()) -> Signal:
    """What it was asked for against what it tells, and the path that its log says it took.

    `weights`: what speaks against its serving the weights that were tested.
    """
    own = (*weights, *(item for item in served.diagnosis.results if item.title in (ARGUMENTS.title, PATH.title)))
    changed = tuple(replace(item, cause="parameters") for item in own if weighty(item))
    told = any(item.title == ARGUMENTS.title and item.outcome != "cannot_tell" for item in own)
    unsure = any(item.outcome == "cannot_tell" for item in own)
    answer = "changed" if changed else "as_asked" if told and not unsure else "unknown"
    return Signal(axis="arguments", answer=answer, results=changed or own)
