"""What a run was found to be, as JSON values, whatever kind of run it was."""

import dataclasses
from typing import Any

from orchestrator.diagnosis.diagnose import Diagnosis
from orchestrator.diagnosis.served import ServedDiagnosis


def diagnosis_json(found: Diagnosis | ServedDiagnosis) -> dict[str, Any]:
    """`diagnosis`, the verdict with what led to it, and `checks`, every one with its numbers."""
    return {
        "diagnosis": {
            "verdict": found.verdict,
            "headline": found.headline,
            "fix": list(found.fix),
            "findings": [dataclasses.asdict(finding) for finding in found.findings],
        },
        "checks": [dataclasses.asdict(item) for item in found.results],
    }
