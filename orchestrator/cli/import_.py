"""`eagle3-remote import`: result files of other tools become runs that can be compared."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from orchestrator.cli import console
from orchestrator.cli.options import json_option
from orchestrator.errors import NotFoundError
from orchestrator.store import Store

if TYPE_CHECKING:
    from orchestrator.records.measurement import MeasurementSet


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
    """Keep result files of other tools as runs: of sglang, vllm, SpecForge, and logs of SGLang's server.

    KIND: sglang-serving, vllm-serve, specforge-bench, specforge, sglang-log. The same file is the same run.
    """
    from orchestrator.importers.kinds import measured
    from orchestrator.importers.source import Source
    from orchestrator.store.unpacking import read_bounded

    read = []
    for path in files:
        if not path.exists():
            raise NotFoundError(f"no such file: {path}")
        source = Source(path.name, read_bounded(path), label)
        read.append((source, measured(source, kind)))  # all are read before one is kept
    for source, found in read:
        is_new = None
        if not dry_run:
            raw = None if source.holds_secret else source.data
            is_new = _keep(Store.default(), found, raw, tags)
            if raw is None:
                console.note(f"{source.name}: it seems to hold a secret, so the file itself is not kept")
        _show(found, is_new, as_json=as_json)


def _keep(store: Store, found: "MeasurementSet", raw: bytes | None, tags: tuple[str, ...]) -> bool:
    """Whether it is new here; the file's hash is in the id, so an imported run of that id is this file."""
    is_new = not store.run_dir(found.run_id).path.exists() or not store.is_imported(found.run_id)
    if is_new:
        store.add_imported(found, raw)
    if tags:
        store.label(found.run_id, tags=tags)
    return is_new


def _show(found: "MeasurementSet", is_new: bool | None, *, as_json: bool) -> None:
    if as_json:
        console.out_json(_value(found, is_new))
        return
    said = {None: "would import", True: "imported", False: "already here"}[is_new]
    console.out(f"{said}: {found.run_id} ({found.tool}, {len(found.measurements)} measurements)")
    for one in found.measurements:
        case = ", ".join(f"{fact.name} {fact.value}" for fact in one.case) or "one load"
        console.out(f"  {case}: {len(one.series)} metrics")
        for text in (*one.invalid, *one.warnings):
            console.warn(text)
    for text in found.unknown:
        console.note(f"unknown: {text}")


def _value(found: "MeasurementSet", is_new: bool | None) -> dict[str, Any]:
    import json

    from remote_payload.schema import to_json

    return {"run_id": found.run_id, "new": is_new, "measurements": json.loads(to_json(found))}
