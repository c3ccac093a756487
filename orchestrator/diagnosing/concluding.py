"""What the decision comes to once every stage had its turn: a verdict needs something that was measured."""

import dataclasses

from orchestrator.diagnosing.never_loaded import with_loading
from orchestrator.diagnosing.results import Results
from orchestrator.diagnosis.decision.decision import Decision


def concluded(decision: Decision, results: Results) -> Decision:
    """The decision, or, where stages failed, none succeeded, that it cannot tell, but where they stop at one line.

    What both configs show before anything runs stays among the findings.
    """
    measured = any(results.succeeded(name) for name in results.records)
    decision = decision if measured else with_loading(decision, results)
    if measured or not results.failures or decision.certain or decision.verdict == "cannot_tell":
        return decision
    failed = ", ".join(results.failures)
    headline = f"cannot tell yet: nothing was measured, {failed} failed; foreseen: {decision.headline}"
    return dataclasses.replace(decision, verdict="cannot_tell", headline=headline)
