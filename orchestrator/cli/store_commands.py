"""`eagle3-remote runs tag|note|export|import|reindex`: what is said about a run, and runs that come and go as files."""

from pathlib import Path

import click

from orchestrator.cli import console
from orchestrator.compare.counted import counted
from orchestrator.errors import InvalidRunError, UsageError
from orchestrator.store import Store


def add_store_commands(group: click.Group) -> None:
    """Add these commands to `runs`."""
    for command in (tag, note, export_run, import_run, reindex):
        group.add_command(command)


@click.command(context_settings={"ignore_unknown_options": True})
@click.argument("run_id", metavar="RUN")
@click.argument("changes", metavar="[+TAG] [-TAG]...", nargs=-1, type=click.UNPROCESSED)
def tag(run_id: str, changes: tuple[str, ...]) -> None:
    """Add tags to a run (`+good`, or plainly `good`) or take them away (`-good`); without any they are shown."""
    store = Store.default()
    run_id = store.resolve(run_id)
    labels = store.label(run_id, tags=changes) if changes else store.labels(run_id)
    told = f"{run_id}: {' '.join(labels.tags) or 'no tags'}"
    if changes:
        console.note(told)
    else:
        console.out(told)


@click.command()
@click.argument("run_id", metavar="RUN")
@click.argument("text", metavar="[TEXT]", required=False)
def note(run_id: str, text: str | None) -> None:
    """Write a note on a run in place of the earlier one ("" takes it away); without TEXT it is shown."""
    store = Store.default()
    run_id = store.resolve(run_id)
    if text is None:
        console.out(store.labels(run_id).note or f"{run_id}: no note")
        return
    store.label(run_id, note=text)
    console.note(f"{run_id}: {'noted' if text else 'no note any more'}")


@click.command("export")
@click.argument("run_id", metavar="RUN")
@click.argument("file", type=click.Path(path_type=Path))
def export_run(run_id: str, file: Path) -> None:
    """Write a run to one file for `runs import`: all of it (FILE.tar.gz), or its measurements alone (FILE.json).

    The same run gives the same bytes. A file that exists is not replaced.
    """
    from orchestrator.store.archive import export_run as export_whole
    from orchestrator.store.archive import write_new

    store = Store.default()
    run_id = store.resolve(run_id)
    if file.name.endswith(".json"):
        from orchestrator.operands import run_set
        from orchestrator.records.packed import packed

        write_new(file, packed(run_set(store, run_id)))
    elif file.name.endswith((".tar.gz", ".tgz")):
        _require_over(store, run_id)
        export_whole(store.run_dir(run_id), file)
    else:
        raise UsageError(f"expected FILE.tar.gz or FILE.json, found: {file.name!r}")
    console.note(f"exported {run_id} to {file}")


def _require_over(store: Store, run_id: str) -> None:
    if store.is_imported(run_id):
        return
    record = store.load_exact(run_id)
    if record.state is None or not record.state.is_terminal:
        raise InvalidRunError(
            f"expected a run that is over, the last state seen of `{run_id}` is: {record.phase}",
            hint=f"`eagle3-remote attach {run_id}` follows it to its end",
        )


@click.command("import")
@click.argument("file", type=click.Path(path_type=Path))
def import_run(file: Path) -> None:
    """Take in a run that `runs export` wrote, after checking all of it; a run that is here already stays as it is.

    Results of other tools are taken in by `eagle3-remote import`.
    """
    from orchestrator.store.intake import take_in

    run_id, is_new = take_in(Store.default().home, file)
    console.note(f"imported {run_id}" if is_new else f"{run_id} is here already")


@click.command()
def reindex() -> None:
    """Make the listing's index anew, judge runs that nobody looked at, sweep what killed processes left."""
    from orchestrator.cli.options import open_store
    from orchestrator.errors import Eagle3Error
    from orchestrator.review import review
    from orchestrator.store.rebuild import reindex as rebuild

    store = open_store()
    swept = rebuild(store.home, store.names.folders)
    judged = 0
    for run in store.list():
        if (
            run.has_result
            and run.verdict is None
            and run.phase != "imported"
            and run.job_kind in ("standalone", "bench")
        ):
            try:
                review(store, store.load_exact(run.run_id))
                judged += 1
            except Eagle3Error as error:
                console.note(f"{run.run_id}: {error.message}")
    known = store.list()
    broken = sum(run.problem is not None for run in known)
    console.note(f"{counted(len(known), 'run')}, {broken} unreadable; judged now: {judged}; leftovers swept: {swept}")
