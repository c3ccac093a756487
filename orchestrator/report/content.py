"""What a report on one run says, before it is a text: the run, its result and what was made of it."""

from dataclasses import dataclass, field
from typing import Literal

from orchestrator.compare.figures import Coverage, coverage
from orchestrator.compare.gap import Gap, gap
from orchestrator.compare.prediction import Prediction, predict
from orchestrator.compare.rules import Logged, logged
from orchestrator.compare.step_cost import known_cost
from orchestrator.diagnosis.diagnose import Diagnosis, diagnose
from orchestrator.diagnosis.measured import Measured, RowsAndHits, gather
from orchestrator.diagnosis.verdict import MeasuredReading, WiringVerdict
from orchestrator.diagnosis.wiring import judge
from orchestrator.records import RunRecord
from orchestrator.report.bench_content import BenchReport
from orchestrator.report.capture_text import CaptureReport
from orchestrator.report.question import Question
from remote_payload.schema import StandaloneResult

SplitName = Literal["train", "held-out"]
"""`train` are the rows of `--rows`, whatever they are; only the drafter's trainer knows."""


@dataclass(frozen=True, kw_only=True)
class Foretold:
    """One reading's prediction, the part it plays and the rows it was walked on."""

    role: str
    split: SplitName
    prediction: Prediction


@dataclass(frozen=True, kw_only=True)
class StandaloneReport:
    """A standalone test and everything that was made of it."""

    result: StandaloneResult
    measured: Measured
    wiring: WiringVerdict
    diagnosis: Diagnosis
    coverage: Coverage
    gap: Gap | None
    """Train minus held-out of the best reading; None = no held-out rows, or the reading was not measured on them."""
    question: Question = field(default_factory=Question)

    @property
    def unloadable(self) -> bool:
        """Whether SGLang finds no drafter, or another one, in this config: then nothing here is a server's figure."""
        weighty = ("fatal", "serious")
        return any(item.check == "K2" and item.severity in weighty for item in self.diagnosis.findings)


@dataclass(frozen=True, kw_only=True)
class RunReport:
    """One run. `standalone`, `bench` and `capture` are None for another kind of job, and where no result came home."""

    record: RunRecord
    standalone: StandaloneReport | None = None
    bench: BenchReport | None = None
    capture: CaptureReport | None = None


def report_standalone(
    result: StandaloneResult,
    train: RowsAndHits,
    heldout: RowsAndHits | None = None,
    question: Question | None = None,
) -> StandaloneReport:
    """Judge a result. Raises InvalidRunError where hits and rows do not fit each other."""
    question = question or Question()
    measured = gather(result, train, heldout, max_new_tokens=question.max_new_tokens)
    wiring = judge(measured)
    return StandaloneReport(
        result=result,
        measured=measured,
        wiring=wiring,
        diagnosis=diagnose(measured, wiring),
        coverage=coverage(train[0]),
        gap=_gap(measured, wiring.best.facts.name),
        question=question,
    )


def predictions(report: StandaloneReport) -> tuple[Foretold, ...]:
    """What a server would get as it is configured, and as the drafter reads best; on held-out rows where there are."""
    result = report.result
    cost = known_cost(
        report.question.costs,
        target=result.checkpoint.target,
        target_class=result.declared.target_class,
        device=result.device_name,
    )
    found = []
    for role, item in columns(report.wiring):
        name = item.facts.name
        if role == "runner-up":
            continue
        heldout = report.measured.heldout
        split: SplitName = "held-out" if heldout is not None and name in heldout.figures else "train"
        rows = heldout if heldout is not None and split == "held-out" else report.measured.train
        told = predict(name, rows.rows, rows.hits, cost, max_new_tokens=report.question.max_new_tokens)
        found.append(Foretold(role=role, split=split, prediction=told))
    return tuple(found)


def rule_figures(report: StandaloneReport) -> tuple[tuple[SplitName, tuple[Logged, ...]], ...]:
    """The best reading's figures as every trainer logs them, split by split."""
    name = report.wiring.best.facts.name
    train, heldout = report.measured.train, report.measured.heldout
    found: list[tuple[SplitName, tuple[Logged, ...]]] = [("train", logged(name, train.rows, train.hits))]
    if heldout is not None and name in heldout.figures:
        found.append(("held-out", logged(name, heldout.rows, heldout.hits)))
    return tuple(found)


def columns(wiring: WiringVerdict) -> tuple[tuple[str, MeasuredReading], ...]:
    """The readings a report shows, each once, under the part it plays: declared first."""
    declared, best, runner_up = wiring.declared, wiring.best, wiring.runner_up
    shown = [("declared = best" if declared is best else "best", best)]
    if declared is not None and declared is not best:
        shown.insert(0, ("declared = runner-up" if declared is runner_up else "declared", declared))
    if runner_up is not None and runner_up is not declared:
        shown.append(("runner-up", runner_up))
    return tuple(shown)


def _gap(measured: Measured, reading: str) -> Gap | None:
    train, heldout = measured.train, measured.heldout
    if heldout is None or reading not in heldout.figures:
        return None
    return gap(train.figures[reading], train.rows, heldout.figures[reading], heldout.rows)
