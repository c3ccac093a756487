"""The checks, one a module: each a pure function of what was measured, in the order they are told."""

from collections.abc import Callable

from orchestrator.diagnosis.checks.capture import check as capture
from orchestrator.diagnosis.checks.folder import check as folder
from orchestrator.diagnosis.checks.gap import check as gap
from orchestrator.diagnosis.checks.heldout_rows import check as heldout_rows
from orchestrator.diagnosis.checks.k01_tensors import check as tensors
from orchestrator.diagnosis.checks.k02_config import check as config
from orchestrator.diagnosis.checks.k03_vocabulary import check as vocabulary
from orchestrator.diagnosis.checks.k04_shared import check as shared
from orchestrator.diagnosis.checks.k05_wiring import check as wiring
from orchestrator.diagnosis.checks.k07_slots import check as slots
from orchestrator.diagnosis.checks.k08_graph import check as graph
from orchestrator.diagnosis.checks.k09_rope import check as rope
from orchestrator.diagnosis.checks.k10_alignment import check as alignment
from orchestrator.diagnosis.checks.k11_steps import check as steps
from orchestrator.diagnosis.checks.k20_data import check as data
from orchestrator.diagnosis.checks.teacher import check as teacher
from orchestrator.diagnosis.finding import CheckResult
from orchestrator.diagnosis.measured import Measured

CHECKS: tuple[Callable[[Measured], tuple[CheckResult, ...]], ...] = (
    tensors,
    config,
    vocabulary,
    shared,
    wiring,
    slots,
    graph,
    rope,
    alignment,
    steps,
    data,
    teacher,
    folder,
    capture,
    heldout_rows,
    gap,
)
"""K6 and K12 to K19 need a served engine and are no part of this test."""
