"""What a drafter test says: the readings ranked, what was found, what to do."""

from orchestrator.diagnosis.finding import CheckResult
from orchestrator.diagnosis.mis_wired import state_names
from orchestrator.report.content import StandaloneReport, columns, predictions
from orchestrator.report.document.blocks import Block, Items, Section, Table, Text
from orchestrator.report.document.subject import Subject
from orchestrator.report.findings_text import WORDS, evidence_words, tally
from orchestrator.report.text import DEFINITIONS
from orchestrator.report.words import UNKNOWN, length, number, proportion, within

MOST = 40
"""Readings listed; the values of the report have all."""


def wiring_section(subject: Subject) -> Section | None:
    """The readings of a drafter test, best first; None for another kind of run."""
    told = subject.told.standalone if subject.told is not None else None
    if told is None:
        return None
    blocks: list[Block] = [_ranked(told), _foretold(told), Text(text=DEFINITIONS, kind="definition")]
    return Section(name="wirings", title="Wirings, ranked", blocks=tuple(blocks))


def advice_section(subject: Subject) -> Section | None:
    """What to do, and what every check says; None where the run is not judged."""
    if subject.told is None:
        return None
    told = subject.told.standalone or subject.told.bench
    if told is None:
        return None
    diagnosis = told.diagnosis
    blocks: list[Block] = []
    if diagnosis.fix:
        blocks.append(Text(text="\n".join(diagnosis.fix), kind="copy"))
    findings = tuple(_finding(item, diagnosis.fix) for item in diagnosis.findings)
    blocks.append(Text(text=f"Checks: {tally(diagnosis.results)}."))
    if findings:
        blocks.append(Items(title="Findings", items=findings))
    if diagnosis.results:
        blocks.append(_checks(diagnosis.results))
    return Section(name="advice", title="What to do, and why", blocks=tuple(blocks))


def _ranked(told: StandaloneReport) -> Table:
    roles = {item.facts.name: role for role, item in columns(told.wiring)}
    facts = told.measured.readings
    ranked = sorted(
        told.measured.train.figures.items(), key=lambda one: (-(one[1].accept_length_walk.value or 0.0), one[0])
    )
    rows = []
    for rank, (name, figures) in enumerate(ranked[:MOST], start=1):
        reading = facts[name]
        rows.append(
            (
                str(rank),
                name,
                state_names(reading.states),
                roles.get(name, ""),
                proportion(figures.first_step),
                length(figures.accept_length_walk, figures.walk.verifies),
            )
        )
    searched = sum(one.stage != "full" for one in facts.values())
    more = f"; {len(ranked) - MOST} more in the data" if len(ranked) > MOST else ""
    return Table(
        caption=f"Readings measured on all rows, by accept length; {searched} more were only screened on few rows"
        f"{more}",
        head=(
            "rank",
            "reading",
            "states",
            "part",
            "step-1 accuracy [95 %] n positions",
            "accept length [95 %] n steps",
        ),
        rows=tuple(rows),
    )


def _foretold(told: StandaloneReport) -> Table:
    rows = [
        (
            f"{one.role}, {one.split} rows",
            str(depth.steps),
            length(depth.accept_length, depth.walk.verifies),
            number(depth.break_even),
            UNKNOWN if depth.speedup is None else within(depth.speedup),
        )
        for one in predictions(told)
        for depth in one.prediction.depths
    ]
    return Table(
        caption="What a server of so many draft steps would get; the speed-up is unknown where nobody said what a step "
        "costs",
        head=("reading", "steps", "accept length [95 %] n steps", "break-even accept length (r)", "speed-up [95 %]"),
        rows=tuple(rows),
        folded=True,
    )


def _finding(item: CheckResult, above: tuple[str, ...]) -> str:
    remedies = [text for text in item.remedy if text not in above]
    remedy = f" To do: {'; '.join(remedies)}." if remedies else ""
    return f"{item.check} {item.title} ({item.severity or UNKNOWN}): {item.summary}.{remedy}"


def _checks(results: tuple[CheckResult, ...]) -> Table:
    rows = tuple(
        (
            f"{item.check} {item.title}",
            WORDS[item.outcome] + (f" ({item.severity})" if item.severity else ""),
            item.summary,
            "; ".join(f"{one.name}: {evidence_words(one)}" for one in item.evidence),
            item.needs or item.refuted_by or "",
        )
        for item in results
    )
    return Table(
        caption=f"Every check with its numbers ({len(rows)})",
        head=("check", "outcome", "what was found", "numbers", "needs, or is refuted by"),
        rows=rows,
        folded=True,
    )
