"""Under which circumstances the runs were made, and what their servers really ran with."""

from collections.abc import Callable, Sequence

from orchestrator.compare.fingerprint import PLACES
from orchestrator.records.measurement import Fact, Measurement
from orchestrator.report.bench_circumstances import bench_circumstances
from orchestrator.report.circumstances import circumstances
from orchestrator.report.content import RunReport
from orchestrator.report.document.blocks import Block, Items, Section, Table, Text
from orchestrator.report.document.figures import case_words
from orchestrator.report.document.subject import Reported, Subject
from orchestrator.report.head import head
from orchestrator.report.words import UNKNOWN
from remote_payload.schema.bench import ServerFacts

MOST_VALUES = 12
WIDTH = 100
Pick = Callable[[Measurement], tuple[Fact, ...]]


def environment_section(reported: Reported) -> Section:
    """Facts that all runs share, then those in which they differ, warnings, and what the sources do not tell."""
    blocks: list[Block] = []
    if len(reported.subjects) == 1 and reported.subjects[0].told is not None:
        blocks += _as_run(reported.subjects[0].told)
    blocks += _facts(reported, "must be alike to compare", lambda one: one.hard)
    blocks += _facts(reported, "should be alike", lambda one: one.soft)
    unknown = _unique(reported, lambda run: run.measured.unknown)
    if unknown:
        blocks.append(Items(title="What the sources do not tell", items=unknown))
    warnings = _unique(reported, lambda run: [text for one in run.measured.measurements for text in one.warnings])
    if warnings:
        blocks.append(Items(title="Warnings", items=warnings))
    sources = tuple(
        f"{run.run_id}: {run.measured.source}"
        + (f", sha256 {run.measured.source_sha256}" if run.measured.source_sha256 else "")
        for run in reported.subjects[:MOST_VALUES]
        if run.measured.source
    )
    if sources:
        blocks.append(Items(title="Sources", items=sources))
    if not blocks:
        blocks.append(Text(text="Nothing is known about the circumstances.", kind="warning"))
    return Section(name="environment", title="Environment", blocks=tuple(blocks))


def _as_run(told: RunReport) -> list[Block]:
    """How the run came about, and what its own report says about its circumstances."""
    lines = head(told.record, WIDTH)
    if told.standalone is not None:
        lines += circumstances(told.standalone, WIDTH, verbose=True)
    if told.bench is not None:
        lines += bench_circumstances(told.bench, WIDTH, verbose=True)
    blocks: list[Block] = [Text(text="\n".join(lines), kind="copy")]
    settings = tuple((one.key, one.value, one.source) for one in told.record.settings)
    if settings:
        caption = f"Settings of the job and where they came from ({len(settings)})"
        blocks.append(Table(caption=caption, head=("setting", "value", "from"), rows=settings, folded=True))
    return blocks


def arguments_section(reported: Reported) -> Section | None:
    """What was asked of each server against what it runs with; None where no server tells."""
    blocks: list[Block] = []
    for subject in reported.subjects:
        told = subject.told.bench if subject.told is not None else None
        for starts in _alike(told.result.servers) if told is not None else ():
            blocks += _requested(subject, starts, several=len(reported.subjects) > 1)
    if not blocks:
        blocks += _facts(reported, "the servers ran with", lambda one: one.arguments)
    if not blocks:
        return None
    return Section(name="arguments", title="Effective arguments", blocks=tuple(blocks))


def _alike(servers: Sequence[ServerFacts]) -> list[tuple[ServerFacts, ...]]:
    """Starts of one side that ran with the same, but for what is another in every start: ports, a seed."""
    found: dict[object, list[ServerFacts]] = {}
    for server in servers:
        told = tuple(fact.name if fact.name in PLACES else fact for fact in server.arguments)
        found.setdefault((server.side, told), []).append(server)
    return [tuple(some) for some in found.values()]


def _requested(subject: Subject, starts: Sequence[ServerFacts], *, several: bool) -> list[Block]:
    """The tables of starts that are alike, by the first of them."""
    server = starts[0]
    if not server.arguments:
        return []
    where = f"{subject.run_id}, " if several else ""
    numbers = ", ".join(str(one.start + 1) for one in starts)
    name = f"{where}{server.side} server, start{'' if len(starts) == 1 else 's'} {numbers}"
    asked = [fact for fact in server.arguments if fact.requested is not None]
    changed = [fact for fact in asked if fact.requested != fact.effective]
    head = ("argument", "requested", "effective", "read from")
    blocks: list[Block] = [
        Table(
            caption=f"{name}: {len(changed)} of {len(asked)} requested arguments came out otherwise",
            head=head,
            rows=tuple(
                (
                    fact.name,
                    fact.requested or UNKNOWN,
                    UNKNOWN if fact.effective is None else fact.effective,
                    fact.source.replace("_", " ") + ("" if fact.requested == fact.effective else " (DIFFERS)"),
                )
                for fact in (*changed, *(fact for fact in asked if fact not in changed))
            ),
        )
    ]
    free = [fact for fact in server.arguments if fact.requested is None]
    if free:
        rows = tuple(
            (fact.name, UNKNOWN if fact.effective is None else fact.effective, fact.source.replace("_", " "))
            for fact in free
        )
        blocks.append(
            Table(
                caption=f"{name}: {len(rows)} arguments that nobody asked for",
                head=("argument", "effective", "read from"),
                rows=rows,
                folded=True,
            )
        )
    return blocks


def _facts(reported: Reported, what: str, pick: Pick) -> list[Block]:
    cases = [(run, one) for run in reported.subjects for one in run.measured.measurements]
    found: dict[str, dict[str, list[str]]] = {}
    for run, one in cases:
        name = f"{run.run_id}: {case_words(one.case)}" if len(reported.subjects) > 1 else case_words(one.case)
        for fact in pick(one):
            values = found.setdefault(fact.name, {})
            values.setdefault(UNKNOWN if fact.value is None else fact.value, []).append(name)
    alike = tuple((name, next(iter(values))) for name, values in found.items() if len(values) == 1)
    unlike = tuple(
        row for name, values in found.items() if len(values) > 1 for row in _values(name, values, len(cases))
    )
    blocks: list[Block] = []
    if alike:
        blocks.append(
            Table(
                caption=f"{'Alike everywhere: what' if len(cases) > 1 else 'What'} {what} ({len(alike)})",
                head=("what", "value"),
                rows=alike,
                folded=len(alike) > 24,
            )
        )
    if unlike:
        blocks.append(
            Table(
                caption=f"Not alike: what {what}",
                head=("what", "value", "where"),
                rows=unlike,
                folded=len(unlike) > 24,
            )
        )
    return blocks


def _values(name: str, values: dict[str, list[str]], of: int) -> list[tuple[str, ...]]:
    ordered = sorted(values.items(), key=lambda item: -len(item[1]))
    rows = [(name, value, _where(where, of)) for value, where in ordered[:MOST_VALUES]]
    if len(ordered) > MOST_VALUES:
        rows.append((name, f"and {len(ordered) - MOST_VALUES} more values", ""))
    return list(rows)


def _where(names: Sequence[str], of: int) -> str:
    told = "; ".join(names[:3])
    return told if len(names) <= 3 else f"{len(names)} of {of} cases: {told}; ..."


def _unique(reported: Reported, pick: Callable[[Subject], Sequence[str]]) -> tuple[str, ...]:
    several = len(reported.subjects) > 1
    by_text: dict[str, list[str]] = {}
    for run in reported.subjects:
        for text in pick(run):
            by_text.setdefault(text, []).append(run.run_id)
    lines = []
    for text, runs in by_text.items():
        names = list(dict.fromkeys(runs))
        lines.append(f"{text} ({_where(names, len(reported.subjects)).replace('cases', 'runs')})" if several else text)
    more = (f"and {len(lines) - 40} more",) if len(lines) > 40 else ()
    return (*lines[:40], *more)
