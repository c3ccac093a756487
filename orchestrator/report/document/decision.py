"""A decision as a document: the chain of evidence from the verdict down to every answer it rests on."""

import re
from collections.abc import Iterator

from orchestrator.diagnosis.decision.axes import AXES
from orchestrator.diagnosis.decision.decision import Decision
from orchestrator.diagnosis.finding import CheckResult
from orchestrator.report.decision_json import decision_json
from orchestrator.report.decision_text import command_words, fix_lines, title
from orchestrator.report.document.blocks import Block, Document, Items, Section, Table, Text, Tone
from orchestrator.report.findings_text import VALUE, evidence_words
from orchestrator.report.moments import moment

QUESTIONS = {
    "files": "the drafter's files",
    "rows": "the training rows",
    "feeding": "fed, offline",
    "computing": "computed, offline",
    "heldout": "held-out text",
    "served_train": "training prompts, served",
    "served_heldout": "held-out prompts, served",
    "fed": "fed, by the running server",
    "rule": "SGLang's rule, by the running server",
    "labels": "labels of the rows",
    "trainer": "trained on, by the trainer",
    "arguments": "server arguments",
    "pays": "speed",
}


def decision_document(found: Decision, *, name: str, made_unix_s: float | None, tool: str) -> Document:
    """The whole decision; `name`: what the diagnosis is called."""
    tones: dict[str, Tone] = {"healthy": "good", "sound": "good", "cannot_tell": "unsure"}
    sections = [
        _causes(found),
        *([] if found.fix is None else [_copied("fix", "The fix", fix_lines(found.fix))]),
        _chain(found),
        *([_next(found)] if found.next_runs else []),
        *([_checks("checks", "Further checks", found.checks)] if found.checks else []),
    ]
    return Document(
        title=f"Diagnosis {name}",
        file_stem=re.sub(r"[^A-Za-z0-9.]+", "-", f"diagnosis-{name}")[:100].strip("-."),
        verdict=f"{title(found)}. {found.headline}.",
        tone=tones.get(found.verdict, "bad"),
        about=f"What is at fault between a drafter and its server. Report made {moment(made_unix_s)} by {tool}.",
        sections=tuple(sections),
        values=decision_json(found),
        tool=tool,
    )


def _causes(found: Decision) -> Section:
    blocks = [block for item in found.findings for block in _finding(item)]
    if found.also:
        blocks.append(Items(title="True beside it", items=found.also))
    return Section(name="findings", title="Findings", blocks=tuple(blocks) or (Text(text="Nothing was found."),))


def _finding(item: CheckResult) -> Iterator[Block]:
    yield Text(text=f"{item.cause}, {item.severity} ({item.check}): {item.summary}", kind="warning")
    if item.evidence:
        yield Table(
            caption=f"What says so ({item.check} {item.title})",
            head=("measured", VALUE),
            rows=tuple((one.name, evidence_words(one)) for one in item.evidence),
        )
    if item.remedy:
        yield Items(title="What to do", items=item.remedy)
    if item.refuted_by is not None:
        yield Text(text=f"Refuted by: {item.refuted_by}", kind="note")


def _chain(found: Decision) -> Section:
    """Every question with its answer, what that means, and the first thing that says so."""
    said = {signal.axis: signal.results[0].summary for signal in found.signals if signal.results}
    rows = tuple(
        (QUESTIONS[axis], answer.replace("_", " "), AXES[axis][answer], said.get(axis, "-"))
        for axis, answer in found.place.items()
    )
    table = Table(caption="Every question", head=("question", "answer", "that is", "what says so"), rows=rows)
    note = Text(text=f"Lines of the table that hold here: {', '.join(found.rows) or 'none'}.", kind="note")
    return Section(name="evidence", title="The chain of evidence", blocks=(table, note))


def _next(found: Decision) -> Section:
    items = tuple(f"{run.what} ({run.cost}): {run.why}" for run in found.next_runs)
    commands = "\n".join(command_words(run) for run in found.next_runs)
    return Section(name="next", title="What to run next", blocks=(Items(items=items), Text(text=commands, kind="copy")))


def _copied(name: str, head: str, lines: list[str]) -> Section:
    return Section(name=name, title=head, blocks=(Text(text="\n".join(lines), kind="copy"),))


def _checks(name: str, head: str, checks: tuple[CheckResult, ...]) -> Section:
    rows = tuple((f"{item.check} {item.title}", item.outcome.replace("_", " "), item.summary) for item in checks)
    table = Table(caption=head, head=("check", "outcome", "what it says"), rows=rows, folded=True)
    return Section(name=name, title=head, blocks=(table,), folded=True)
