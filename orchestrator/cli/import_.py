"""`eagle3-remote import`: result files of other tools become runs that can be compared."""

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from orchestrator.cli import console
from orchestrator.cli.options import json_option
from orchestrator.compare.counted import counted
from orchestrator.errors import NotFoundError, UsageError
from orchestrator.store import Store

if TYPE_CHECKING:
    from orchestrator.importers.source import Source
    from orchestrator.records.measurement import MeasurementSet

_A_DAY = 86_400
"""Seconds: so far a date may lie ahead for a time zone that its tool does not tell."""


@click.command("import")
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--kind", metavar="KIND", help="What the files are, e.g. sglang-serving; default: seen from the content.")
@click.option("--label", default="", metavar="TEXT", help="What they are called in comparisons.")
@click.option("--tag", "tags", multiple=True, metavar="TAG", help="A tag for each.")
@click.option("--dry-run", is_flag=True, help="Show what would be imported, keep nothing.")
@json_option
def import_(
    files: tuple[Path, ...], kind: str | None, label: str, tags: tuple[str, ...], *, dry_run: bool, as_json: bool
) -> None:
    """Keep result files of other tools as runs, and runs that this tool exported. The same file is the same run.

    FILE: a file, or the folder of a sweep. KIND: sglang-serving (bench_serving), sglang-batch (one_batch_server),
    sglang-grid (bench_speculative), sglang-log (a server's log), vllm-serve (bench serve, bench sweep serve),
    specforge-bench (bench_eagle3), specforge (specforge benchmark), aiperf (aiperf profile).
    """
    read = [_read(path, kind, label) for path in files]  # all are read before one is kept
    for path, source, found in read:
        run_id, is_new = found.run_id, None
        if not dry_run:
            run_id, is_new = _kept(path, source, found)
            if tags:
                Store.default().label(run_id, tags=tags)
        if as_json:
            console.out_json(_value(found, run_id, is_new))
        else:
            _show(found, run_id, is_new, "" if len(read) == 1 else str(path))


def _read(path: Path, kind: str | None, label: str) -> tuple[Path, "Source | None", "MeasurementSet"]:
    """The file's measurements; without a source where this tool wrote it."""
    from orchestrator.importers.kinds import measured
    from orchestrator.measured_files import own_set
    from orchestrator.result_files import opened

    if not path.exists():
        raise NotFoundError(f"no such file: {path}")
    own = None if kind is not None else own_set(path)
    if own is not None and label:
        raise UsageError(f"--label: expected a file of another tool, found a run of this one: {path}")
    if own is not None:
        return path, None, own
    source = opened(path, label)
    return path, source, measured(source, kind)


def _kept(path: Path, source: "Source | None", found: "MeasurementSet") -> tuple[str, bool]:
    """Under which id it is here, and whether it is new here."""
    from orchestrator.result_files import beginnings_kept, grown_kept, kept_as, kept_own

    store = Store.default()
    if source is None:
        return kept_own(store, path, found)
    known = kept_as(store, found)
    if known is not None:
        return known, False
    if source.holds_secret:
        console.note(f"{source.name}: it seems to hold a secret, so the file itself is not kept")
    for name in beginnings_kept(store, source):
        console.warn(
            f"{source.name}: it begins with the file of {name}, so their results are the same; one of the two is enough"
        )
    for name in grown_kept(store, source):
        console.warn(f"{source.name}: it is an earlier state of the file of {name}, which has its results as well")
    return found.run_id, store.add_imported(found, None if source.holds_secret else source.data)


def _show(found: "MeasurementSet", run_id: str, is_new: bool | None, file: str) -> None:
    """`file` is named with all that is said against it; empty where there is but one."""
    said = {None: "would import", True: "imported", False: "already here"}[is_new]
    console.out(f"{said}: {run_id} ({found.tool}, {counted(len(found.measurements), 'measurement')})")
    measured_at = found.created_unix_s
    if measured_at is not None and measured_at > time.time() + _A_DAY:
        date = time.strftime("%Y-%m-%d", time.gmtime(measured_at))
        console.warn(f"{file or found.source}: it says that it was measured on {date}, which is still to come")
    for one in found.measurements:
        case = ", ".join(f"{fact.name} {fact.value}" for fact in one.case) or "one load"
        console.out(f"  {case}: {counted(len(one.series), 'metric')}")
        at = f"{file}: {case}" if file else case
        for text in one.invalid:
            console.warn(f"{at}: no valid measurement: {text}")
        for text in one.warnings:
            console.warn(f"{at}: {text}")
    if file and found.unknown:
        console.note(f"{file}:")
    for text in found.unknown:
        console.note(f"{'  ' if file else ''}unknown: {text}")


def _value(found: "MeasurementSet", run_id: str, is_new: bool | None) -> dict[str, Any]:
    import json

    from remote_payload.schema import to_json

    return {"run_id": run_id, "new": is_new, "measurements": json.loads(to_json(found))}
