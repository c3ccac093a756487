"""`eagle3-remote report`: runs, baselines and comparisons as one file to keep or to send."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from orchestrator.cli import console
from orchestrator.cli.asked import question, step_cost_option
from orchestrator.cli.options import open_store
from orchestrator.cli.saved import save
from orchestrator.errors import UsageError

if TYPE_CHECKING:
    from orchestrator.compare.asked import Asked
    from orchestrator.report.document.subject import Reported

FORMATS = ("html", "markdown", "csv", "json")


@click.command()
@click.argument("words", metavar="[RUN]...", nargs=-1)
@click.option("--baseline", metavar="NAME", help="Hold every RUN against it; alone: every run that it ever meant.")
@click.option("--sweep", metavar="TAG", help="Every run with this tag.")
@click.option("--diagnosis", metavar="ID", help="A diagnosis of this laptop; no host is asked.")
@click.option("--redact", is_flag=True, help="With --diagnosis: no host names, user names or paths in it.")
@click.option("--format", "kind", type=click.Choice(FORMATS), default="html", show_default=True)
@click.option(
    "--out",
    metavar="FILE",
    help="Where to write; `-` is standard output. Default: report-RUN.html here, other formats to standard output.",
)
@click.option("--vary", metavar="KEY", multiple=True, help="The circumstance under test, as in `diff`.")
@click.option(
    "--force", is_flag=True, help="Compare what is not comparable; it is told why it is not. Invalid stays invalid."
)
@step_cost_option
def report(words: tuple[str, ...], kind: str, out: str | None, **how: Any) -> None:
    """A report on runs as one file: verdict, comparison, figures, circumstances, data.

    RUN is all that `diff` takes: an id, `last`, baseline:NAME, a file, `bench~5`, ... Several are compared with the
    first, or with --baseline. The page needs neither network nor JavaScript.
    """
    from orchestrator.reporting import Wanted, gather

    if how["diagnosis"] is not None:
        _refuse_beside_a_diagnosis(words, how)
        text, stem = _diagnosis(how["diagnosis"], kind, redact=how["redact"])
        _give(text, stem, kind, out)
        return
    if how["redact"]:
        raise UsageError("--redact goes with --diagnosis ID")
    if not words and how["baseline"] is None and how["sweep"] is None:
        raise UsageError(
            "expected a run, --baseline NAME, --sweep TAG or --diagnosis ID", hint="`eagle3-remote report last`"
        )
    wanted = Wanted(
        words=words,
        baseline=how["baseline"],
        sweep=how["sweep"],
        asked=_asked(how["vary"], force=how["force"]),
        question=question(how["step_cost"]),
    )
    reported = gather(open_store(), wanted)
    if how["step_cost"] is not None:
        _require_drafter_test(reported)
    text, stem = _written(reported, kind)
    _give(text, stem, kind, out)


def _refuse_beside_a_diagnosis(words: tuple[str, ...], how: dict[str, Any]) -> None:
    given = [name for name in ("baseline", "sweep", "vary", "force", "step_cost") if how[name]]
    if words or given:
        raise UsageError(f"--diagnosis goes alone, found beside it: {', '.join([*words, *given])}")


def _diagnosis(diagnosis_id: str, kind: str, *, redact: bool) -> tuple[str, str]:
    """The report on a diagnosis, and a file's name for it without an ending."""
    from orchestrator import config
    from orchestrator.cli.diagnosed import written
    from orchestrator.diagnosing.again import applied_again, told_again

    if kind == "csv":
        raise UsageError("a diagnosis has no rows for csv", hint="--format html, markdown or json")
    store = open_store()
    found = told_again(diagnosis_id, config.load(config.here()), store)
    return written(found, applied_again(found, store), kind, redact=redact), f"diagnosis-{diagnosis_id}"


def _give(text: str, stem: str, kind: str, out: str | None) -> None:
    """To a file, or to standard output."""
    if out == "-" or (out is None and kind != "html"):
        console.raw(text.encode(), "stdout")
        return
    path = Path(out) if out is not None else Path(f"{stem}.html")
    save(path, text)
    console.out(str(path))


def _require_drafter_test(reported: "Reported") -> None:
    """A step's cost predicts what a server would make of a drafter test; a served benchmark measured it itself."""
    if not any(subject.told is not None and subject.told.standalone is not None for subject in reported.subjects):
        kinds = ", ".join(sorted({subject.measured.job_kind for subject in reported.subjects}))
        raise UsageError(
            f"--step-cost: expected a drafter test whose result is on this laptop, found: {kinds}",
            hint="a served benchmark with --with-baseline has measured what a step costs; leave the option out",
        )


def _asked(vary: tuple[str, ...], *, force: bool) -> "Asked":
    from orchestrator import config
    from orchestrator.compare.asked import Asked
    from orchestrator.compare.margins import checked_margins

    settings = config.load(config.here())
    return Asked(vary=vary, force=force, margins=checked_margins(settings.margins, str(settings.path)))


def _written(reported: "Reported", kind: str) -> tuple[str, str]:
    """The report in a format, and a file's name for it without an ending."""
    import time

    from orchestrator import __version__
    from orchestrator.report.document.outline import document

    if kind == "csv":
        from orchestrator.report.reported_csv import reported_csv

        return reported_csv(reported), ""
    made = document(reported, made_unix_s=time.time(), tool=f"eagle3-remote {__version__}")
    if kind == "json":
        from orchestrator.report.document_json import json_text

        return json_text(made.values) + "\n", ""
    if kind == "markdown":
        from orchestrator.report.document_markdown import document_markdown

        return document_markdown(made), ""
    from orchestrator.report.html.page import html_page

    return html_page(made), made.file_stem
