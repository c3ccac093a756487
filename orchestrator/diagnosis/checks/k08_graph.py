"""K8: the graph's flags: residual source, input norm, feedback, final norm, windows, as served against as learnt."""

from orchestrator.diagnosis.checks.factors import factor_results
from orchestrator.diagnosis.finding import CheckResult, Subject
from orchestrator.diagnosis.measured import Measured

GRAPH = Subject(check="K8", title="graph flags")
KEYS = ("residual", "feedback", "input_norm", "final_norm", "input", "windows")


def check(measured: Measured) -> tuple[CheckResult, ...]:
    """A finding for each flag that is served otherwise than the drafter reads best."""
    return factor_results(GRAPH, measured, KEYS)
