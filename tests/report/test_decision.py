"""A decision as text on one screen, as Markdown that nothing can break, as JSON; golden files as in `test_text`."""

import json
import re
from dataclasses import replace

import pytest

from orchestrator.diagnosis.decision.decide import decide
from orchestrator.diagnosis.decision.inputs import Known
from orchestrator.diagnosis.finding import CheckResult, Evidence
from orchestrator.report.decision_json import decision_json
from orchestrator.report.decision_markdown import decision_markdown
from orchestrator.report.decision_text import MOST_LINES, decision_text
from orchestrator.report.document_json import json_text
from tests.diagnosis.decision.scenes import fed, offline, published_story, served, sound, story
from tests.report.test_text import check

SCENES = {
    "story": story,
    "published": published_story,
    "healthy": sound,
    "unknown": Known,
    "offline": lambda: Known(offline=offline("wrong", heldout=False)),
    "served": lambda: Known(served=served("embed_story_wrong")),
}


@pytest.mark.parametrize("name", SCENES)
def test_a_decision_is_one_screen(name):
    text = decision_text(decide(SCENES[name]()))
    assert len(text.splitlines()) <= MOST_LINES
    assert max(map(len, text.splitlines())) <= 100
    check(f"decision_{name}.txt", text)


def test_the_story_is_told_in_its_own_numbers():
    text = " ".join(decision_text(decide(published_story())).split())
    assert "fc is fed with [layer 3, layer 31, layer 59] instead of [embed, layer 3, layer 31]" in text
    assert "asked for 16 draft tokens, the server runs with 2" in text
    assert "speculation cannot pay below accept length 3.0 to 3.7 at this step cost (now 1.90, at most 2" in text
    assert '"eagle_aux_hidden_state_layer_ids": [0, 3, 31]' in text


def test_however_much_there_is_to_say_it_is_one_screen():
    found = decide(story())
    many = tuple(
        replace(item, summary=f"{n} {item.summary} " + "very long words " * 20)
        for n in range(9)
        for item in found.findings
    )
    lines = decision_text(replace(found, findings=many)).splitlines()
    assert len(lines) == MOST_LINES
    assert max(map(len, lines)) <= 100
    assert lines[-1].startswith("... ")


@pytest.mark.parametrize("width", [60, 80, 120])
def test_narrow_and_wide_screens(width):
    lines = decision_text(decide(story()), width).splitlines()
    whole = [line for line in lines if "eagle_config" not in line]  # a line to copy is not broken
    assert max(map(len, whole)) <= width


@pytest.mark.parametrize("name", SCENES)
def test_json_holds_no_number_that_is_none(name):
    value = json.loads(json_text(decision_json(decide(SCENES[name]()))))
    assert value["decision_version"] == 1
    assert value["place"].keys() >= {"files", "feeding", "served_train", "fed", "pays"}
    assert all(place["means"] for place in value["place"].values())
    if name == "story":
        assert value["fix"]["config"]["eagle_config"]["eagle_aux_hidden_state_layer_ids"] == [-1, 1, 3]
        assert value["causes"] == ["wiring", "parameters", "economics"]


def test_markdown_of_the_story():
    check("decision_story.md", decision_markdown(decide(story())).rstrip("\n"))


HOSTILE = "@everyone #1 | `x` </details><script>alert(1)</script> \n\n# head ![i](http://e) ```\nrm -rf / \u202egnp.exe"


def test_nothing_that_a_run_brought_along_breaks_the_markdown():
    found = decide(story(fed=fed((2, 4, 5))))
    bad = CheckResult(
        check="K1",
        title=HOSTILE,
        outcome="finding",
        summary=HOSTILE,
        severity="fatal",
        cause="loading",
        evidence=(Evidence(name=HOSTILE, value=HOSTILE), Evidence(name="a", value="b")),
        remedy=(HOSTILE,),
        refuted_by=HOSTILE,
    )
    text = decision_markdown(replace(found, findings=(bad,), also=(HOSTILE,), headline=HOSTILE, checks=(bad,)))
    outside = re.sub(r"^(`{3,}).*?^\1$", "", text, flags=re.DOTALL | re.MULTILINE)
    assert not re.search(r"(?<!\w)@\w", outside)
    assert not re.search(r"(?<!\w)#\d", outside)
    assert not re.search(r"(?<!\\)<(?!!-- -->|/?(?:details|summary)>)", outside)
    assert (
        len(re.findall(r"^</details>$", outside, re.MULTILINE))
        == len(re.findall(r"^<details>$", outside, re.MULTILINE))
        == 2
    )
    assert "\u202e" not in text
    for line in outside.splitlines():
        if line.startswith("|"):
            cells = re.split(r"(?<!\\)\|", line)
            assert len(cells) in (4, 5)
        assert not re.match(r"# ", line)


def test_a_fence_is_longer_than_what_it_holds():
    found = decide(story())
    assert found.fix is not None
    text = decision_markdown(replace(found, fix=replace(found.fix, sglang="``` ```` x")))
    assert "\n`````\nneeded first" in text
