"""`eagle3-remote diff`: runs against runs, baselines, files and sets of runs."""

from typing import TYPE_CHECKING, Any

import click

from orchestrator.cli import console
from orchestrator.cli.options import json_option, open_store
from orchestrator.errors import UsageError

if TYPE_CHECKING:
    from orchestrator.compare.asked import Asked
    from orchestrator.compare.comparison import SetComparison
    from orchestrator.compare.pooling import Operand

UNSURE_CODE = 3


@click.command()
@click.argument("words", metavar="RUN...", nargs=-1, required=True)
@click.option("--against", "name", metavar="NAME", help="The baseline to compare with.")
@click.option("--vary", "vary", metavar="KEY", multiple=True, help="The circumstance under test: draft, num_steps, ...")
@click.option("--where", metavar="KEY=VALUE", multiple=True, help="Only loads with it, e.g. concurrency=4.")
@click.option("--metric", "metrics", metavar="METRIC", multiple=True, help="Compare it alone, and let it decide.")
@click.option("--by", metavar="KEY", help="A table by the values of a circumstance, a line a side.")
@click.option(
    "--force", is_flag=True, help="Compare what is not comparable; it is told why it is not. Invalid stays invalid."
)
@click.option("--strict", is_flag=True, help="Exit with 3 where the result is inconclusive or a single run.")
@click.option("--markdown", "as_markdown", is_flag=True, help="Print Markdown, e.g. for a pull request.")
@json_option
def diff(
    words: tuple[str, ...],
    name: str | None,
    by: str | None,
    *,
    strict: bool,
    as_markdown: bool,
    as_json: bool,
    **how: Any,
) -> None:
    """Compare a run with another one, with a baseline, or several with the first.

    \b
    diff A --against NAME   a run with a baseline
    diff bench@NAME..       the runs since a baseline with it
    diff A B                the change from A to B
    diff A B C ...          each with A
    Each is a run's id, the beginning of one, or `last`;
      baseline:NAME, published:NAME; a file; A,B,C together;
      bench~5          the 5 newest valid runs of a kind (bench, standalone)
      bench@TAG        every valid one with a tag; bench@TAG~5 the 5 newest
      bench@NAME..     every valid one since the baseline NAME, its run
                       included unless compared with it;
                       bench@NAME~5.. the 5 newest of them

    Exit code 0: nothing that decides got worse; 1: regressed; 3: not sure (--strict); 4: not comparable; 5: invalid,
    e.g. failed requests.
    """  # noqa: D301 - click's own mark for lines to keep
    from orchestrator.compare.diff import compare_many

    sides = _sides(words, name, alone=by is not None)
    asked = _asked(how)
    if by is not None:
        click.get_current_context().exit(_pivot(sides, by, asked, as_json=as_json, as_markdown=as_markdown))
    if len(sides) == 1:
        from orchestrator.operands import is_set

        hint = f"runs together are one side: diff RUN {words[0]}, or diff {words[0]} --against NAME"
        raise UsageError(
            "expected another run to compare with, or --against NAME", hint=hint if is_set(words[0]) else None
        )
    found = compare_many(sides, asked)
    _show(found, asked, as_json=as_json, as_markdown=as_markdown)
    click.get_current_context().exit(_code(found, asked, strict=strict))


def _sides(words: tuple[str, ...], name: str | None, *, alone: bool) -> "list[Operand]":
    """The reference first; runs since a baseline are compared with it, unless they may stand `alone`.

    A reference's own run is none of the runs since it.
    """
    from orchestrator.operands import apart, baseline_operand, baselines_since, operand

    store = open_store()
    if name is None and len(words) == 1 and not alone:
        since = baselines_since(words[0])
        name = since[0] if len(since) == 1 else None
    named = [] if name is None else [baseline_operand(store, name)]
    sides = [*named, *(operand(store, word) for word in words)]
    first, *others = sides
    return [first, *(apart(first, side) for side in others)]


def _asked(how: dict[str, Any]) -> "Asked":
    from orchestrator import config
    from orchestrator.compare.asked import Asked
    from orchestrator.compare.margins import checked_margins

    settings = config.load(config.here())
    margins = checked_margins(settings.margins, str(settings.path))
    where = pairs(how["where"])
    return Asked(vary=how["vary"], force=how["force"], metrics=how["metrics"], where=where, margins=margins)


def pairs(words: tuple[str, ...]) -> dict[str, str]:
    """`KEY=VALUE` words. Raises UsageError."""
    found = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not (key and equals and value):
            raise UsageError(f"--where: expected KEY=VALUE, found: {word!r}")
        found[key] = value
    return found


def _show(found: "tuple[SetComparison, ...]", asked: "Asked", *, as_json: bool, as_markdown: bool) -> None:
    if as_json:
        from orchestrator.report.diff_json import diff_json

        console.out_json(diff_json(found, asked))
    elif as_markdown:
        from orchestrator.report.diff_markdown import diff_markdown

        console.out(diff_markdown(found, asked))
    elif len(found) == 1:
        from orchestrator.report.diff_text import diff_text

        console.out(diff_text(found[0], asked, console.width()))
    else:
        from orchestrator.report.diff_many import many_text

        console.out(many_text(found, asked, console.width()))


def _code(found: "tuple[SetComparison, ...]", asked: "Asked", *, strict: bool) -> int:
    from orchestrator.compare.comparison import EXIT_CODES
    from orchestrator.compare.diff import is_unsure, overall

    code = EXIT_CODES.get(overall([one.verdict for one in found]), 0)
    return UNSURE_CODE if code == 0 and strict and any(is_unsure(one, asked) for one in found) else code


def _pivot(sides: "list[Operand]", by: str, asked: "Asked", *, as_json: bool, as_markdown: bool) -> int:
    """Show the table; its exit code: that of the worst cell where sides are compared, 0 for a sweep by itself."""
    from orchestrator.compare.comparison import EXIT_CODES
    from orchestrator.compare.diff import overall
    from orchestrator.compare.pivot import pivot
    from orchestrator.report.pivot_text import pivot_json, pivot_text

    tables = pivot(sides, by, asked)
    if as_json:
        console.out_json(pivot_json(tables))
    else:
        console.out(pivot_text(tables, console.width(), markdown=as_markdown))
    cells = [cell for table in tables for _, row in table.rows for cell in row if cell is not None]
    verdicts = [cell.comparison.verdict for cell in cells if cell.comparison is not None]
    return EXIT_CODES.get(overall(verdicts), 0) if len(sides) > 1 else 0
