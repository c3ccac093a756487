"""A decision as a document: every format of documents can write it, and nothing it holds gets lost."""

import dataclasses

import pytest

from orchestrator.diagnosis.decision.axes import AXES
from orchestrator.diagnosis.decision.decide import decide
from orchestrator.diagnosis.decision.inputs import Known
from orchestrator.report.document.decision import QUESTIONS, decision_document
from orchestrator.report.document_json import json_text
from orchestrator.report.document_markdown import document_markdown
from orchestrator.report.html.page import html_page
from tests.diagnosis.decision.scenes import sound, story

SCENES = {"bad": story, "good": sound, "unsure": Known}
HOSTILE = '<script>alert("1")</script> & \u202e'


def made(found):
    return decision_document(found, name="story <1>", made_unix_s=1767323045.0, tool="eagle3-remote 0")


@pytest.mark.parametrize("tone", SCENES)
def test_a_decision_is_a_page_and_a_markdown_file(tone):
    found = decide(SCENES[tone]())
    document = made(found)
    assert document.tone == tone
    assert document.file_stem == "diagnosis-story-1"
    page, text = html_page(document), document_markdown(document)
    for item in found.findings:
        for part in (item.check, *(one.name.partition(" (")[0] for one in item.evidence)):
            assert part in page.replace("&#39;", "'")
            assert part in text.replace("\\", "")
    for axis in AXES:
        assert QUESTIONS[axis] in page.replace("&#39;", "'")
    assert page.count("<table") >= 1
    assert json_text(document.values)


def test_what_a_run_brought_along_stays_text():
    found = decide(story())
    bad = dataclasses.replace(found.findings[0], summary=HOSTILE, remedy=(HOSTILE,))
    page = html_page(made(dataclasses.replace(found, findings=(bad,), also=(HOSTILE,), headline=HOSTILE)))
    assert "<script>alert" not in page
    assert "\u202e" not in page
