"""`eagle3-remote diff`: a run against a baseline."""

import click

from orchestrator.cli import console
from orchestrator.cli.runs import json_option
from orchestrator.store import Store

EXIT_CODES = {"regressed": 1, "not comparable": 4}
"""Every other verdict exits with 0: it is an answer, not an alarm."""


@click.command()
@click.argument("run_id", metavar="RUN")
@click.option("--against", "name", metavar="NAME", required=True, help="The baseline to compare with.")
@json_option
@click.pass_context
def diff(context: click.Context, run_id: str, name: str, *, as_json: bool) -> None:
    """Compare a run with a baseline.

    Exit code 0: improved, equivalent, inconclusive or too little data to tell; 1: regressed; 4: not comparable.
    """
    from orchestrator.report.diff_text import diff_json, diff_text
    from orchestrator.review import compare

    store = Store.default()
    baseline = store.baseline(name)
    found = compare(store, store.load(run_id), baseline)
    if as_json:
        console.out_json(diff_json(found, baseline))
    else:
        console.out(diff_text(found, baseline))
    context.exit(EXIT_CODES.get(found.verdict, 0))
