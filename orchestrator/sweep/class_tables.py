"""The tables of a sweep over several hosts: one a host, those of a class side by side, and no class beside another.

Every point is held against the plain decoding of its own host. Verdicts are corrected for each other within a class.
Pure.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from orchestrator.records.measurement import MeasurementSet
from orchestrator.sweep.group import Part, of_host
from orchestrator.sweep.table import SweepTable, corrected, table


@dataclass(frozen=True, kw_only=True)
class ClassTable:
    """The hosts of one class, a table each."""

    host_class: str
    tables: tuple[SweepTable, ...]


def class_tables(group_id: str, parts: Sequence[Part], sets: Mapping[str, MeasurementSet]) -> tuple[ClassTable, ...]:
    """From the measurements that came home, by run id."""
    hosts: dict[tuple[str, str], list[Part]] = {}
    for part in parts:
        hosts.setdefault((part.host_class, part.host), []).append(part)
    classes: dict[str, list[SweepTable]] = {}
    for (kind, host), own in hosts.items():
        job, progress = of_host(own)
        classes.setdefault(kind, []).append(table(group_id, host, job, progress, sets, raw=True))
    return tuple(ClassTable(host_class=kind, tables=corrected(some)) for kind, some in classes.items())
