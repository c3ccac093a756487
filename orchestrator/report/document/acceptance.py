"""How deep drafts are accepted: the profile by depth, and how accept lengths are distributed."""

from collections.abc import Iterator

from orchestrator.compare.served_acceptance import LEAST_STEPS, depth_profile
from orchestrator.compare.stats import Proportion
from orchestrator.records.measurement import Measurement
from orchestrator.report.document.blocks import Block, Chart, Section, Table, Text, Trace
from orchestrator.report.document.figures import case_words, named
from orchestrator.report.document.subject import Reported
from orchestrator.report.words import proportion

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
    blocks: list[Block] = [_joint(shown), _conditional(shown)]
    blocks += [_profile_table(*one, folded=len(shown) > 2) for one in shown]
    blocks += [_lengths(shown), _lengths_table(shown)]
    words = reported.drawn_words
    if len(told) > MOST:
        words = f"{words} Of {len(told)} cases that have a histogram the last {MOST} are drawn; the data has all."
    if words:
        blocks.insert(0, Text(text=words.strip(), kind="note"))
    return Section(name="acceptance", title="How deep drafts are accepted", blocks=tuple(blocks))


def _told(reported: Reported) -> Iterator[tuple[str, Measurement]]:
    several = len(reported.subjects) > 1
    for subject in reported.drawn:
        for measurement in subject.measured.measurements:
            if sum(measurement.histogram):
                case = case_words(measurement.case)
                yield (f"{named(subject.run_id)}: {case}" if several else case), measurement


def _joint(shown: list[tuple[str, Measurement]]) -> Chart:
    traces = [
        _trace(name, [(one.depth, one.joint) for one in depth_profile(measurement.histogram)])
        for name, measurement in shown
    ]
    return Chart(
        name="joint-acceptance",
        title="Verify steps that accepted at least so many drafts",
        told=f"Share by draft token from 1 on. {_words(traces)}.",
        definition=f"Joint acceptance: {JOINT}; n = {_steps(shown)} verify steps.",
        x_label="draft token",
        y_label="accepted so deep, %",
        traces=tuple(traces),
    )


def _conditional(shown: list[tuple[str, Measurement]]) -> Chart:
    traces = [
        _trace(name, [(one.depth, one.conditional) for one in depth_profile(measurement.histogram) if one.is_shown])
        for name, measurement in shown
    ]
    return Chart(
        name="conditional-acceptance",
        title="Drafts accepted, given that the one before was",
        told=f"Share by draft token from 1 on, as far as {LEAST_STEPS} steps came so deep. {_words(traces)}.",
        definition=f"Conditional acceptance: {CONDITIONAL}; bars: Wilson's 95 % interval; each n stands in the tables.",
        x_label="draft token",
        y_label="accepted, given the one before, %",
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


def _steps(shown: list[tuple[str, Measurement]]) -> str:
    return ", ".join(str(sum(one.histogram)) for _, one in shown)


def _profile_table(name: str, measurement: Measurement, *, folded: bool) -> Table:
    rows = tuple(
        (
            str(one.depth),
            proportion(one.joint),
            proportion(one.conditional) if one.is_shown else _few(one.conditional),
        )
        for one in depth_profile(measurement.histogram)
    )
    return Table(
        caption=f"By depth, {name}. Given the one before: {CONDITIONAL}",
        head=("draft token", "accepted so deep [95 %] n steps", "given the one before [95 %] n steps"),
        rows=rows,
        folded=folded,
    )


def _few(share: Proportion) -> str:
    return f"hidden: {share.n} steps, fewer than {LEAST_STEPS}"


def _lengths(shown: list[tuple[str, Measurement]]) -> Chart:
    widest = max(len(one.histogram) for _, one in shown)
    traces = tuple(
        Trace(
            name=name,
            x=tuple(float(at) for at in range(widest)),
            y=tuple(
                100 * (one.histogram[at] if at < len(one.histogram) else 0) / sum(one.histogram) for at in range(widest)
            ),
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


def _lengths_table(shown: list[tuple[str, Measurement]]) -> Table:
    widest = max(len(one.histogram) for _, one in shown)
    rows = tuple(
        (
            name,
            *(str(one.histogram[at]) if at < len(one.histogram) else "0" for at in range(widest)),
            str(sum(one.histogram)),
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
