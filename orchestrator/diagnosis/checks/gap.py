"""Train against held-out rows: whether the drafter knows its training text better than other text.

A gap is honest up to about 7 points of step-1 accuracy (seen on sound drafters), so the finding is not that there is
one, but that it is surely larger than that: the lower end of the 95 % interval over rows must lie above. Where rows
vary by 14 points and each side has 24, an honest gap of 7 is called a fault in 2.5 % of tests; one of 20 is found.
Nor is a gap honest by its point alone: an interval that reaches a large one, as of few rows, decides nothing.
"""

from dataclasses import replace

from orchestrator.compare.gap import Gap, gap
from orchestrator.diagnosis.checks.factors import ranking_of
from orchestrator.diagnosis.checks.heldout_rows import doubts
from orchestrator.diagnosis.finding import CheckResult, Evidence, Severity, Subject, count, figure
from orchestrator.diagnosis.measured import Measured
from remote_payload.schema import RowsFacts

GAP = Subject(check="gap", title="train against held-out")

HONEST = 0.07
"""Points of step-1 accuracy that a sound drafter loses on text it was not trained on."""
SUSPECT = 0.1
"""A gap beyond it that is not surely beyond `HONEST` needs more rows before anything is said."""
LARGE = 0.2
"""A gap that the upper end of the interval must stay below before the gap is called honest; beyond it, serious."""
LEAKED = 0.05
"""Share of held-out rows that may be train rows, or answer their prompts, before a small gap says nothing."""


def check(measured: Measured) -> tuple[CheckResult, ...]:
    """The best reading on both splits."""
    if measured.heldout is None or not measured.heldout.rows:
        return (
            GAP.cannot_tell("there are no held-out rows", needs="`--heldout` with rows that it was not trained on"),
        )
    reading = _common(measured)
    if reading is None:
        text = "no reading was measured on all rows of both splits"
        return (GAP.cannot_tell(text, needs="held-out rows that can be measured"),)
    if doubted := doubts(measured):
        text = f"the held-out rows are not to be trusted: {doubted[0].summary}"
        needs = "held-out rows that were captured as the training rows were"
        return (GAP.cannot_tell(text, needs=needs, evidence=doubted[0].evidence),)
    found = gap(
        measured.train.figures[reading], measured.train.rows, measured.heldout.figures[reading], measured.heldout.rows
    )
    return (_leaky(_judge(found), measured.result.heldout),)


def _common(measured: Measured) -> str | None:
    """The best reading if it was measured on both splits, else the best of those that were."""
    ranking = ranking_of(measured)
    if ranking is None or measured.heldout is None:
        return None
    names = [item.facts.name for item in (ranking.best, *ranking.ranked)]
    return next((name for name in names if name in measured.heldout.figures), None)


def _leaky(judged: CheckResult, heldout: RowsFacts | None) -> CheckResult:
    """A small gap says nothing where the held-out rows are train rows; one that is large in spite of them does."""
    lint = None if heldout is None else heldout.lint
    if judged.outcome != "passed" or heldout is None or lint is None or not heldout.used:
        return judged
    shared, prompts = lint.also_in_train or 0, lint.prompts_in_train or 0
    leaked = max(shared, prompts)
    if leaked <= LEAKED * heldout.used:
        return judged
    what = "are train rows" if shared == leaked else "answer a train row's prompt"
    return GAP.cannot_tell(
        f"{leaked} of {heldout.used} held-out rows {what}: the gap to other text is not known",
        needs="held-out rows that it was not trained on, by prompt",
        evidence=judged.evidence,
    )


def _judge(found: Gap) -> CheckResult:
    difference, evidence = found.first_step, _evidence(found)
    if difference.value is None or difference.low is None:
        rows = min(found.train_rows, found.heldout_rows)
        return GAP.cannot_tell(f"{rows} rows are too few for an interval", needs="more rows of both", evidence=evidence)
    points = f"{100 * difference.value:+.1f} points of step-1 accuracy"
    if difference.low > HONEST and not found.unlike:
        return _finding(found, points, evidence)
    small = difference.value <= SUSPECT and difference.high is not None and difference.high < LARGE
    if small and not found.unlike:
        return GAP.passed(f"{points} from held-out to train: honest", evidence)
    if found.unlike:
        needs = "splits with alike shares of greedy and sampled responses: these two differ by 15 points by nature"
        return GAP.cannot_tell(f"{points}, but the splits hold unlike rows", needs=needs, evidence=evidence)
    return GAP.cannot_tell(
        f"{points}, neither surely honest nor surely more", needs="more rows of both", evidence=evidence
    )


def _finding(found: Gap, points: str, evidence: tuple[Evidence, ...]) -> CheckResult:
    severity: Severity = "serious" if (found.first_step.value or 0.0) > LARGE else "minor"
    result = GAP.finding(
        f"generalization gap: {points} better on train rows than on held-out ones",
        severity=severity,
        cause="generalization",
        evidence=evidence,
        remedy=(
            "train on more, and more varied, text, generated by this target with the template that is served",
            "the wiring is not the cause: both splits were read alike",
        ),
        refuted_by="held-out rows of the training text's own kind without the gap",
    )
    return replace(result, effect=found.accept_length.value)


def _evidence(found: Gap) -> tuple[Evidence, ...]:
    return (
        figure(f"step-1 accuracy, train minus held-out ({found.how})", found.first_step, "share"),
        figure("step-1 accuracy, train", found.train_first_step, "share"),
        figure("step-1 accuracy, held-out", found.heldout_first_step, "share"),
        figure(f"accept length, train minus held-out ({found.how})", found.accept_length, "tokens"),
        count("train rows", found.train_rows, unit="rows"),
        count("held-out rows", found.heldout_rows, unit="rows"),
    )
