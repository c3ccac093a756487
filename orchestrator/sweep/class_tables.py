"""The tables of a sweep over several hosts: one a host, those of a class side by side, and no class beside another.

Nor are hosts of one class that have other models under the sweep's paths, or other versions installed. Every point is
held against the plain decoding of its own host. Verdicts are corrected for each other within a table. Pure.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from orchestrator.records.measurement import MeasurementSet
from orchestrator.sweep.group import Part, of_host
from orchestrator.sweep.same_models import alike, others, unknown
from orchestrator.sweep.software import other_versions, same_versions
from orchestrator.sweep.table import SweepTable, corrected, table
from remote_payload.schema import PathIdentity


@dataclass(frozen=True, kw_only=True)
class ClassTable:
    """The hosts of one class with the same models and the same software, a table each."""

    host_class: str
    tables: tuple[SweepTable, ...]
    apart: tuple[str, ...] = ()
    """Why these are not among the class's first: which models they have others, a sentence each."""
    other_software: tuple[str, ...] = ()
    """The same of what is installed."""
    unknown: tuple[str, ...] = ()
    """What nobody can compare on these hosts, a sentence each."""


def class_tables(group_id: str, parts: Sequence[Part], sets: Mapping[str, MeasurementSet]) -> tuple[ClassTable, ...]:
    """From the measurements that came home, by run id."""
    hosts: dict[tuple[str, str], list[Part]] = {}
    for part in parts:
        hosts.setdefault((part.host_class, part.host), []).append(part)
    classes: dict[str, dict[str, SweepTable]] = {}
    models: dict[str, dict[str, tuple[PathIdentity, ...]]] = {}
    software: dict[str, dict[str, dict[str, str]]] = {}
    for (kind, host), own in hosts.items():
        job, progress = of_host(own)
        classes.setdefault(kind, {})[host] = table(group_id, host, job, progress, sets, raw=True)
        models.setdefault(kind, {})[host] = tuple(one for part in own for one in part.job.identity)
        told = (part.job.installed for part in reversed(own) if part.job.installed)
        software.setdefault(kind, {})[host] = next(told, {})
    return tuple(
        one for kind, tables in classes.items() for one in _by_models(kind, tables, models[kind], software[kind])
    )


def _by_models(
    kind: str,
    tables: Mapping[str, SweepTable],
    models: Mapping[str, tuple[PathIdentity, ...]],
    software: Mapping[str, Mapping[str, str]],
) -> tuple[ClassTable, ...]:
    first = next(iter(models))
    telling = next((host for host in software if software[host]), first)
    together = (hosts for some in alike(models) for hosts in same_versions({host: software[host] for host in some}))
    found = []
    for hosts in together:
        one = ClassTable(
            host_class=kind,
            tables=corrected([tables[host] for host in hosts]),
            apart=others({host: models[host] for host in dict.fromkeys((first, *hosts))}),
            other_software=other_versions({host: software[host] for host in dict.fromkeys((telling, *hosts))}),
            unknown=unknown({host: models[host] for host in hosts}),
        )
        found.append(one)
    return tuple(found)
