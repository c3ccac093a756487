"""A decision as JSON values: the cell of the table, every finding with its numbers, the fix as a patch."""

import dataclasses
from typing import Any

from orchestrator.diagnosis.decision.axes import AXES
from orchestrator.diagnosis.decision.decision import Decision

DECISION_VERSION = 1


def decision_json(found: Decision) -> dict[str, Any]:
    """`verdict`, `causes`, `findings`, `also`, `fix`, `next_runs`, `place` and what each answer means, `checks`."""
    fix = found.fix
    return {
        "decision_version": DECISION_VERSION,
        "verdict": found.verdict,
        "certain": found.certain,
        "headline": found.headline,
        "causes": list(found.causes),
        "findings": [dataclasses.asdict(item) for item in found.findings],
        "also": list(found.also),
        "fix": None if fix is None else {**dataclasses.asdict(fix), "can_be_applied": fix.can_be_applied},
        "next_runs": [dataclasses.asdict(run) for run in found.next_runs],
        "place": {axis: {"answer": answer, "means": AXES[axis][answer]} for axis, answer in found.place.items()},
        "rows": list(found.rows),
        "checks": [dataclasses.asdict(item) for item in found.checks],
    }
