"""How deep drafts are accepted: the profile by depth, and how accept lengths are distributed."""

from collections.abc import Iterator

from orchestrator.compare.served_acceptance import LEAST_STEPS, depth_profile
from orchestrator.compare.stats import Proportion
from orchestrator.records.measurement import Measurement
from orchestrator.report.document.blocks import Block, Chart, Section, Table, Text, Trace
from orchestrator.report.document.figures import case_words
from orchestrator.report.document.subject import Reported
from orchestrator.report.words import percent, proportion

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
    shown = told[:MOST]
    blocks: list[Block] = [_profile(shown), *(_profile_table(*one) for one in shown), _lengths(shown)]
    blocks.append(_lengths_table(shown))
    if len(told) > MOST:
        blocks.append(Text(text=f"{len(told) - MOST} more cases have a histogram; the data has all.", kind="note"))
    return Section(name="acceptance", title="How deep drafts are accepted", blocks=tuple(blocks))


def _told(reported: Reported) -> Iterator[tuple[str, Measurement]]:
    several = len(reported.subjects) > 1
    for subject in reported.subjects:
        for measurement in subject.measured.measurements:
            if sum(measurement.histogram):
                case = case_words(measurement.case)
                yield (f"{subject.run_id}: {case}" if several else case), measurement


def _profile(shown: list[tuple[str, Measurement]]) -> Chart:
    traces, words = [], []
    for name, measurement in shown:
        depths = depth_profile(measurement.histogram)
        traces.append(
            Trace(
                name=name,
                x=tuple(float(one.depth) for one in depths),
                y=tuple(100 * (one.joint.value or 0.0) for one in depths),
                low=tuple(_hundred(one.joint.low) for one in depths),
                high=tuple(_hundred(one.joint.high) for one in depths),
            )
        )
        words.append(f"{name}: {', '.join(percent(one.joint.value) for one in depths)}")
    return Chart(
        name="depth-profile",
        title="Share of verify steps that accepted at least so many drafts",
        told=f"By depth from 1 on. {'; '.join(words)}.",
        definition=f"Joint acceptance: {JOINT}.",
        x_label="draft token",
        y_label="accepted so deep, %",
        traces=tuple(traces),
        x_ticks=(),
    )


def _profile_table(name: str, measurement: Measurement) -> Table:
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
    words = "; ".join(f"{one.name}: {', '.join(f'{share:.1f} %' for share in one.y)}" for one in traces)
    return Chart(
        name="accept-lengths",
        title="Distribution of the accept length of a verify step",
        told=f"Share of verify steps by tokens out, from 1 on. {words}.",
        definition="Tokens that a verify step puts out: the drafts it accepted and one more of the target's own. "
        f"Pooled over all requests; n = {', '.join(str(sum(one.histogram)) for _, one in shown)} verify steps.",
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
