"""Races on a sample: all readings run on the same positions, and those that cannot win are stopped early."""

from collections.abc import Sequence

from remote_payload.standalone.graph import Reading
from remote_payload.standalone.measure.sample import Sample
from remote_payload.standalone.measure.tally import Gain, Tally

ENOUGH_POSITIONS = 48
"""Judged positions before anything is dropped: fewer say too little (standard error 7 %)."""
PLENTY_POSITIONS = 192
"""Judged positions after which the screen drops all but the survivors at once (standard error 3.5 %)."""
FEWEST = 3
"""The search itself drops none of the best three."""
LEAST_SHARE = 0.02
"""A change of the computation must add at least this share of accepted drafts to be worth a name."""
LEAST_GAIN = 0.01
"""And at least so many accepted drafts a position: where next to nothing fits, a share of it is nothing."""
LIKELY = 2.0
"""Standard errors a change must be ahead by on the sample to be followed."""
DOUBT = 2.0
"""Standard errors a rival gets as the benefit of the doubt while it races."""


def screen(sample: Sample, readings: Sequence[Reading], keep: int, doing: str) -> tuple[list[Tally], list[Tally]]:
    """First step of all readings, until `keep` are left. Gives the survivors, best first, and the dropped."""
    live = [Tally(reading=reading, stage="screen") for reading in readings]
    dropped: list[Tally] = []
    for row in sample.rows(doing):
        row.add(live, 1)
        _drop(live, dropped, keep if live[0].positions >= PLENTY_POSITIONS else max(keep, len(live) // 2))
        if len(live) <= keep and live[0].positions >= ENOUGH_POSITIONS:
            break
    return live[:keep], live[keep:] + dropped


def search(sample: Sample, readings: Sequence[Reading], steps: int, doing: str) -> tuple[list[Tally], list[Tally]]:
    """All steps of a few readings. Gives those measured on every row, best first, and the dropped."""
    live = [Tally(reading=reading, stage="search") for reading in readings]
    dropped: list[Tally] = []
    for row in sample.rows(doing):
        row.add(live, steps)
        _drop(live, dropped, max(FEWEST, len(live) // 2))
    return live, dropped


def race(sample: Sample, base: Tally, rivals: Sequence[Tally], steps: int, doing: str) -> list[Tally]:
    """All steps of fresh tallies, `rivals` against `base` pair by pair; gives the rivals that ran on every row.

    A rival is stopped once it can hardly be ahead by what is worth a name. Every rival notes its pair.
    """
    live = list(rivals)
    for row in sample.rows(doing):
        row.add([base, *live], steps)
        for rival in live:
            rival.hold_against(base)
        if base.positions >= ENOUGH_POSITIONS:
            live = [rival for rival in live if _may_win(rival.over(base), base)]
        if not live:
            break
    return live


def is_ahead(gain: Gain, base: Tally, sure: float) -> bool:
    """Whether a gain over `base` is worth a name and `sure` standard errors beyond chance."""
    return gain.mean >= max(sure * gain.error, _worth(base))


def _may_win(gain: Gain, base: Tally) -> bool:
    return gain.mean + DOUBT * gain.error > _worth(base)


def _worth(base: Tally) -> float:
    """What a change must add to be worth a name, in accepted drafts a position."""
    return max(LEAST_SHARE * base.score, LEAST_GAIN)


def _drop(live: list[Tally], dropped: list[Tally], keep: int) -> None:
    """Sort by score and move all but the first `keep` to `dropped`, unless too little was seen to judge."""
    live.sort(key=lambda tally: tally.rank)
    if live[0].positions >= ENOUGH_POSITIONS:
        dropped[:0] = live[keep:]
        del live[keep:]
