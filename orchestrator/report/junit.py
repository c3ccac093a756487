"""Judgments as JUnit XML, as CI servers read it: what does not hold is a failure, what cannot be told an error."""

from collections.abc import Sequence
from xml.etree import ElementTree

from orchestrator.compare.expect import Judgment
from orchestrator.report.expect_text import expected_words, judgment_words, runs_words
from orchestrator.report.shown import shown


def junit(run: str, judgments: Sequence[Judgment], run_ids: Sequence[str] = ()) -> str:
    """The whole document; well-formed whatever a name holds.

    `run` is the word that was given; `run_ids`, if any, are the runs that it meant, each a property of the suite.
    """
    run = runs_words(run, run_ids)
    suite = ElementTree.Element(
        "testsuite",
        name=clean(f"eagle3-remote {run}"),
        tests=str(len(judgments)),
        failures=str(sum(item.outcome == "failed" for item in judgments)),
        errors=str(sum(item.outcome == "cannot tell" for item in judgments)),
        skipped="0",
    )
    if run_ids:
        properties = ElementTree.SubElement(suite, "properties")
        for run_id in run_ids:
            ElementTree.SubElement(properties, "property", name="run", value=clean(run_id))
    for item in judgments:
        case = ElementTree.SubElement(suite, "testcase", classname=clean(run), name=clean(expected_words(item)))
        words = clean(judgment_words(item))
        if item.outcome == "failed":
            ElementTree.SubElement(case, "failure", type="expectation", message=words).text = words
        elif item.outcome == "cannot tell":
            ElementTree.SubElement(case, "error", type="cannot tell", message=words).text = words
        else:
            ElementTree.SubElement(case, "system-out").text = words
    return _document(suite)


def unjudged(run: str, reason: str) -> str:
    """The document where nothing could be judged at all, e.g. of a run that is not there: CI shows why."""
    suite = ElementTree.Element(
        "testsuite", name=clean(f"eagle3-remote {run}"), tests="1", failures="0", errors="1", skipped="0"
    )
    case = ElementTree.SubElement(suite, "testcase", classname=clean(run), name="what is expected of the run")
    ElementTree.SubElement(case, "error", type="not judged", message=clean(reason)).text = clean(reason)
    return _document(suite)


def _document(suite: ElementTree.Element) -> str:
    ElementTree.indent(suite)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(suite, encoding="unicode") + "\n"


def clean(text: str) -> str:
    """The text as pages can show it: what XML cannot hold, is invisible or turns its neighbours around is an escape."""
    return shown(text)
