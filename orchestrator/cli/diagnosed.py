"""A diagnosis as the command line gives it: on a screen, as JSON, in files; nothing private where none is wanted."""

import contextlib
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from orchestrator.cli import console
from orchestrator.errors import Eagle3Error

if TYPE_CHECKING:
    from orchestrator.diagnosing.applying import Applied
    from orchestrator.diagnosing.walk import Diagnosed
    from orchestrator.following import Tell
    from orchestrator.report.redaction import Redaction


@contextlib.contextmanager
def nothing_private(tell: "Tell", private: "Redaction | None") -> "Iterator[Tell]":
    """Updates, and the error that ends the block, without what is private in them; None: as they are."""
    from orchestrator.diagnosing.private import update_without

    if private is None:
        yield tell
        return
    try:
        yield lambda update: tell(update_without(update, private))
    except Eagle3Error as error:
        error.message = private.text(error.message)
        error.hint = None if error.hint is None else private.text(error.hint)
        raise


def show(found: "Diagnosed", applied: "Applied | Eagle3Error | None", flags: dict[str, Any]) -> None:
    """The verdict on a screen, or all of it as JSON; a report to paste where one was asked for."""
    from orchestrator.cli.saved import save
    from orchestrator.diagnosing.private import redaction
    from orchestrator.diagnosing.telling import as_text, redacted

    redact = flags["redact"]
    private = redaction(found) if redact else None
    if flags["as_json"]:
        console.out_json(_values(found, applied, redact=redact))
    else:
        shown = found if private is None else redacted(found, private)
        text = as_text(shown, applied, console.width(), whole=flags["verbose"], private=private)
        console.out(text if private is None else private.text(text))
    with nothing_private(lambda _: None, private):
        for kind in ("markdown", "html"):  # last: a disk that is full now takes no verdict from the screen
            if flags[kind] is not None:
                save(flags[kind], written(found, applied, kind, redact=redact))


def written(found: "Diagnosed", applied: "Applied | Eagle3Error | None", kind: str, *, redact: bool) -> str:
    """The report as `html`, `markdown` or `json`; with `redact` nothing private is in it."""
    from orchestrator import __version__
    from orchestrator.diagnosing.page import as_html
    from orchestrator.diagnosing.private import redaction
    from orchestrator.diagnosing.telling import as_markdown, redacted
    from orchestrator.report.document_json import json_text

    if kind == "json":
        return json_text(_values(found, applied, redact=redact)) + "\n"
    private = redaction(found) if redact else None
    shown = found if private is None else redacted(found, private)
    if kind == "html":
        return as_html(shown, applied, private, made_unix_s=time.time(), tool=f"eagle3-remote {__version__}")
    text = as_markdown(shown, applied)
    return text if private is None else private.text(text)


def _values(found: "Diagnosed", applied: "Applied | Eagle3Error | None", *, redact: bool) -> dict[str, Any]:
    from orchestrator.diagnosing.private import redaction
    from orchestrator.diagnosing.telling import as_json

    return as_json(found, applied, redaction(found) if redact else None)
