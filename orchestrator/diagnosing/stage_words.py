"""What ran, what failed and what was left out, in the words that all formats share."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from orchestrator.diagnosing.attempts import is_cut_short
from orchestrator.diagnosing.results import Results

LEFT_OUT = "left out"
LONGEST = 260
"""Characters of a reason on the screen; the whole of it stands in every other format, and in `runs show`."""


@dataclass(frozen=True, kw_only=True)
class StageRow:
    """One stage."""

    stage: str
    end: str
    """Its run's phase, or `left out`."""
    run: str
    """Its run's id; empty = there is none."""
    why: str
    """Why it came to nothing; empty = it came to its end."""


def stage_rows(results: Results, clean: Callable[[str], str] = str) -> tuple[StageRow, ...]:
    """Those that ran, then those that were left out; `clean` takes out what is private."""
    why = {name: error.message for name, error in results.failures.items()}
    ran = [
        StageRow(
            stage=name,
            end=record.phase,
            run=record.run_id,
            why=clean(why.get(name, "").removeprefix(f"run {record.run_id}: ")),
        )
        for name, record in results.records.items()
    ]
    out = [StageRow(stage=one.stage, end=LEFT_OUT, run="", why=clean(one.reason)) for one in results.skipped]
    return (*ran, *out)


def stage_lines(rows: tuple[StageRow, ...], spared: str, *, whole: bool = False) -> Iterator[str]:
    """A line for each way in which stages came to nothing, with its first sentence: a log's lines stay in the run.

    `spared`: a reason to leave out that is told elsewhere. `whole`: every sentence, however long.
    """
    ways: dict[tuple[str, str], list[StageRow]] = {}
    for row in rows:
        if row.end != "succeeded" and row.why != spared:
            ways.setdefault((row.end, row.why if whole else first_sentence(row.why)), []).append(row)
    for (end, why), some in ways.items():
        names, runs = ", ".join(row.stage for row in some), ", ".join(row.run for row in some)
        if end == LEFT_OUT:
            yield f"{names}: left out, {why}"
        else:
            yield f"{names} ({end}): run{'s' if len(some) > 1 else ''} {runs}{f': {why}' if why else ''}"


def way_on(results: Results) -> Iterator[str]:
    """What to do about the stages that came to nothing."""
    known = [record for record in results.records.values() if record.phase != "succeeded"]
    ended = [record for record in known if record.state is None or record.state.is_terminal]
    if len(ended) < len(known):
        yield "what still goes on is waited for, and gone on with, by the same command"
    if any(not is_cut_short(record, None) for record in ended):
        yield "once that is mended: the same command with --again runs what failed"
    if any(is_cut_short(record, None) for record in ended):
        yield "the same command runs anew what was cut short"


def first_sentence(message: str) -> str:
    """What comes before quoted lines of a log, and no more of it than a screen bears."""
    line = next(iter(message.splitlines()), "")
    return line if len(line) <= LONGEST else f"{line[: LONGEST - 3].rstrip()}..."
