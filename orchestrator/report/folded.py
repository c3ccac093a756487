"""Lists of runs in which a sweep is one line: its units are told by how many of them ended how. Pure."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping

UNIT = re.compile(r"(.+)\.u[0-9]+\.[0-9]+")
"""The run of a sweep's unit: the sweep, the unit, the attempt."""

HOLD = re.compile(r"(.+)\.hold(?:\.[0-9]+)?")
"""The run that holds the GPUs of a diagnosis: the diagnosis, and its number where it is not the first."""


def diagnosis_of(run_id: str) -> str | None:
    """The diagnosis whose GPUs a run holds, by its id; None = it is no such run."""
    hold = HOLD.fullmatch(run_id)
    return None if hold is None else hold[1]


def sweep_of(run_id: str, sweeps: Iterable[str]) -> str | None:
    """The sweep among `sweeps` that a run is a unit of; None = of none of them."""
    unit = UNIT.fullmatch(run_id)
    return unit[1] if unit is not None and unit[1] in sweeps else None


def unit_words(phases: Mapping[str, str], sweeps: Iterable[str]) -> dict[str, str]:
    """What became of each sweep's units, e.g. `41 units: 37 succeeded, 4 failed`; `phases` of all runs, by id."""
    counts: dict[str, Counter[str]] = {sweep: Counter() for sweep in sweeps}
    for run_id, phase in phases.items():
        sweep = sweep_of(run_id, counts)
        if sweep is not None:
            counts[sweep][phase] += 1
    return {sweep: _words(count) for sweep, count in counts.items()}


def _words(counts: Counter[str]) -> str:
    total = counts.total()
    told = ", ".join(f"{count} {phase.replace('_', ' ')}" for phase, count in counts.most_common())
    return f"{total} unit{'' if total == 1 else 's'}{': ' if told else ''}{told}"
