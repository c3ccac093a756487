"""Judgments as JUnit XML, as CI servers read it: what does not hold is a failure, what cannot be told an error."""

from collections.abc import Sequence
from xml.etree import ElementTree

from orchestrator.compare.expect import Judgment
from orchestrator.compare.matching import case_words
from orchestrator.report.expect_text import judgment_words


def junit(run: str, judgments: Sequence[Judgment]) -> str:
    """The whole document; well-formed whatever a name holds."""
    suite = ElementTree.Element(
        "testsuite",
        name=clean(f"eagle3-remote {run}"),
        tests=str(len(judgments)),
        failures=str(sum(item.outcome == "failed" for item in judgments)),
        errors=str(sum(item.outcome == "cannot tell" for item in judgments)),
        skipped="0",
    )
    for item in judgments:
        load = case_words(item.case)
        name = f"{item.condition.words}{f' at {load}' if load else ''}"
        case = ElementTree.SubElement(suite, "testcase", classname=clean(run), name=clean(name))
        words = clean(judgment_words(item))
        if item.outcome == "failed":
            ElementTree.SubElement(case, "failure", type="expectation", message=words).text = words
        elif item.outcome == "cannot tell":
            ElementTree.SubElement(case, "error", type="cannot tell", message=words).text = words
        else:
            ElementTree.SubElement(case, "system-out").text = words
    ElementTree.indent(suite)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(suite, encoding="unicode") + "\n"


def clean(text: str) -> str:
    """The text without what XML 1.0 cannot hold, written as escapes."""
    return "".join(char if _allowed(ord(char)) else f"\\u{ord(char):04x}" for char in text)


def _allowed(code: int) -> bool:
    return code in (0x9, 0xA, 0xD) or 0x20 <= code <= 0xD7FF or 0xE000 <= code <= 0xFFFD or 0x10000 <= code <= 0x10FFFF
