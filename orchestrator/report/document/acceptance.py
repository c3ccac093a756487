"""How deep drafts are accepted: the profile by depth, and how accept lengths are distributed."""

from collections.abc import Iterator

from orchestrator.compare.counted import counted
from orchestrator.compare.served_acceptance import LEAST_STEPS, depth_profile
from orchestrator.compare.stats import Proportion
from orchestrator.report.content import columns
from orchestrator.report.document.blocks import Block, Chart, Section, Table, Text, Trace
from orchestrator.report.document.figures import case_words, named
from orchestrator.report.document.subject import Reported, Subject
from orchestrator.report.words import proportion

Profile = tuple[str, tuple[int, ...]]
"""A name, and verify steps by how many drafts they accepted."""
Profiles = list[Profile]
MOST = 6
"""Profiles drawn in one figure."""
JOINT = "verify steps that accepted at least so many drafts, of all verify steps; bars: Wilson's 95 % interval, which "
JOINT += "takes steps as independent (they are not quite: it is for orientation)"
CONDITIONAL = f"of the steps that accepted one less, those that accepted this one too; hidden below {LEAST_STEPS} steps"


def acceptance_section(reported: Reported) -> Section | None:
    """Profiles and histograms of every case that tells one; None where none does."""
    told = list(_told(reported))
    if not told:
        return None
    shown = told[-MOST:]
    blocks: list[Block] = [
        chart for chart in (_joint(shown), _conditional(shown)) if any(one.x for one in chart.traces)
    ]
    blocks += [_profile_table(*one, folded=len(shown) > 2) for one in shown]
    blocks += [_lengths(shown), _lengths_table(shown)]
    words = reported.drawn_words
    if len(told) > MOST:
        words = f"{words} Of {len(told)} cases that have a histogram the last {MOST} are drawn; the data has all."
    if words:
        blocks.insert(0, Text(text=words.strip(), kind="note"))
    return Section(name="acceptance", title="How deep drafts are accepted", blocks=tuple(blocks))


def _told(reported: Reported) -> Iterator[Profile]:
    several = len(reported.subjects) > 1
    for subject in reported.drawn:
        for name, histogram in _of_run(subject):
            if sum(histogram):
                yield (f"{named(subject.run_id)}: {name}" if several else name), histogram


def _of_run(subject: Subject) -> Iterator[Profile]:
    """Those of its loads; of a drafter test at hand, those of the readings that its report shows."""
    told = subject.told.standalone if subject.told is not None else None
    if told is not None:
        for role, item in columns(told.wiring):
            yield f"{role} ({item.facts.name}), train rows", item.figures.walk.histogram
        return
    for measurement in subject.measured.measurements:
        yield case_words(measurement.case), measurement.histogram


def _joint(shown: Profiles) -> Chart:
    return _by_draft_token(
        [_trace(name, [(one.depth, one.joint) for one in depth_profile(histogram)]) for name, histogram in shown],
        name="joint-acceptance",
        title="Verify steps that accepted at least so many drafts",
        share="accepted so deep",
        definition=f"Joint acceptance: {JOINT}; n = {_steps(shown)} verify steps.",
    )


def _conditional(shown: Profiles) -> Chart:
    told = [
        (name, [(one.depth, one.conditional) for one in depth_profile(histogram) if one.is_shown])
        for name, histogram in shown
    ]
    return _by_draft_token(
        [_trace(name, points) for name, points in told],
        name="conditional-acceptance",
        title="Drafts accepted, given that the one before was",
        share="accepted, given the one before",
        definition=f"Conditional acceptance: {CONDITIONAL}; bars: Wilson's 95 % interval; each n stands in the tables.",
    )


def _by_draft_token(traces: list[Trace], *, name: str, title: str, share: str, definition: str) -> Chart:
    return Chart(
        name=name,
        title=title,
        told=f"Share by draft token from 1 on, as far as it is known. {_words(traces)}.",
        definition=definition,
        x_label="draft token",
        y_label=f"{share}, %",
        traces=tuple(traces),
    )


def _trace(name: str, points: list[tuple[int, Proportion]]) -> Trace:
    return Trace(
        name=name,
        x=tuple(float(depth) for depth, _ in points),
        y=tuple(100 * (share.value or 0.0) for _, share in points),
        low=tuple(_hundred(share.low) for _, share in points),
        high=tuple(_hundred(share.high) for _, share in points),
    )


def _words(traces: list[Trace]) -> str:
    return "; ".join(f"{one.name}: {', '.join(f'{share:.1f} %' for share in one.y)}" for one in traces)


def _steps(shown: Profiles) -> str:
    return ", ".join(str(sum(one)) for _, one in shown)


def _profile_table(name: str, histogram: tuple[int, ...], *, folded: bool) -> Table:
    rows = tuple(
        (
            str(one.depth),
            proportion(one.joint),
            proportion(one.conditional) if one.is_shown else _few(one.conditional),
        )
        for one in depth_profile(histogram)
    )
    return Table(
        caption=f"By depth, {name}. Given the one before: {CONDITIONAL}",
        head=("draft token", "accepted so deep [95 %] n steps", "given the one before [95 %] n steps"),
        rows=rows,
        folded=folded,
    )


def _few(share: Proportion) -> str:
    return f"hidden: {counted(share.n, 'step')}, fewer than {LEAST_STEPS}"


def _lengths(shown: Profiles) -> Chart:
    widest = max(len(one) for _, one in shown)
    traces = tuple(
        Trace(
            name=name,
            x=tuple(float(at) for at in range(widest)),
            y=tuple(100 * (one[at] if at < len(one) else 0) / sum(one) for at in range(widest)),
        )
        for name, one in shown
    )
    return Chart(
        name="accept-lengths",
        title="Distribution of the accept length of a verify step",
        told=f"Share of verify steps by tokens out, from 1 on. {_words(list(traces))}.",
        definition="Tokens that a verify step puts out: the drafts it accepted and one more of the target's own. "
        f"Pooled over all requests; n = {_steps(shown)} verify steps.",
        x_label="tokens a verify step",
        y_label="share of verify steps, %",
        kind="bars",
        traces=traces,
        x_ticks=tuple(str(at + 1) for at in range(widest)),
    )


def _lengths_table(shown: Profiles) -> Table:
    widest = max(len(one) for _, one in shown)
    rows = tuple(
        (
            name,
            *(str(one[at]) if at < len(one) else "0" for at in range(widest)),
            str(sum(one)),
        )
        for name, one in shown
    )
    return Table(
        caption="Verify steps by tokens out",
        head=("case", *(str(at + 1) for at in range(widest)), "all (n)"),
        rows=rows,
        folded=True,
    )


def _hundred(value: float | None) -> float | None:
    return None if value is None else 100 * value
