"""The texts that a run can be shown as."""

from typing import Literal

from orchestrator.report.content import RunReport, predictions, rule_figures
from orchestrator.report.prediction_text import depths_text
from orchestrator.report.rules_text import rules_text
from orchestrator.report.text import run_text

View = Literal["report", "verbose", "depths", "rules"]


def view_text(report: RunReport, view: View, *, width: int = 110, kept: bool = True) -> str:
    """The report on a run as `view`; a run without figures has the plain report alone. `kept`: see `run_text`."""
    standalone = report.standalone
    if view == "depths" and standalone is not None:
        return depths_text(predictions(standalone), width)
    if view == "rules" and standalone is not None:
        return rules_text(standalone.wiring.best.facts.name, rule_figures(standalone), width)
    return run_text(report, width=width, verbose=view == "verbose", kept=kept)
