"""Numbers and lines of findings: counts, points, JSON that is there to be copied."""

import json

import pytest

from orchestrator.diagnosis.finding import CheckResult, Evidence
from orchestrator.report.findings_text import evidence_words, tally, wrapped

BLOCK = {"use_aux_hidden_state": True, "eagle_aux_hidden_state_layer_ids": [-1, 1, 3]}


@pytest.mark.parametrize(
    ("evidence", "expected"),
    [
        (Evidence(name="tokens that t2d marks", value=640, n=1280), "640 of 1280"),
        (Evidence(name="rows cut", value=9, unit="rows", n=12), "9 of 12 rows"),
        (Evidence(name="readings tried", value=9), "9"),
        (Evidence(name="size of model.safetensors", value=729680, unit="bytes", n=15), "729680 bytes n=15"),
        (Evidence(name="first token minus n_prompt_tokens", value=3, unit="tokens", n=12), "3 tokens n=12"),
        (Evidence(name="step-1 accuracy", value=0.5, unit="share", n=4), "50.0 % n=4"),
        (Evidence(name="best minus runner-up", value=0.013, unit="share", n=24), "+1.3 points n=24"),
        (
            Evidence(name="train minus held-out", value=-0.02, low=-0.05, high=0.01, unit="share"),
            "-2.0 [-5.0, +1.0] points",
        ),
        (
            Evidence(
                name="best minus declared", value=0.351, low=0.298, high=0.405, unit="share", confidence=0.975, n=24
            ),
            "+35.1 [+29.8, +40.5] points (97.5 % interval) n=24",
        ),
        (
            Evidence(name="best over declared, minus 1", value=0.753, low=0.64, high=0.873, unit="change", n=24),
            "+75.3 [+64.0, +87.3] % n=24",
        ),
        (Evidence(name="accept length", value=2.5, low=2.0, high=3.0, confidence=0.95), "2.5 [2, 3]"),
        (Evidence(name="accept length, a minus b", value=0.25, unit="tokens"), "0.25 tokens"),
        (Evidence(name="rows compared", value=None), "unknown"),
    ],
)
def test_a_number_is_written_as_what_it_is(evidence: Evidence, expected: str) -> None:
    assert evidence_words(evidence) == expected


def test_findings_that_were_told_already_are_counted() -> None:
    finding = CheckResult(check="K3", title="map", outcome="finding", summary="s", severity="minor", cause="data")
    assert tally([finding] * 4, above=2) == "0 passed, 4 findings, 2 of them above, 0 cannot tell"
    assert tally([finding] * 2, above=2) == "0 passed, 2 findings (above), 0 cannot tell"
    assert tally([finding]) == "0 passed, 1 finding, 0 cannot tell"


@pytest.mark.parametrize("width", [40, 80, 110, 200])
def test_json_to_be_copied_stays_json_and_fits(width: int) -> None:
    lines = wrapped(f'set in the drafter\'s config.json: "eagle_config": {json.dumps(BLOCK)}', width)
    text = "\n".join(lines)
    assert json.loads("{" + text[text.index('"eagle_config"') :] + "}") == {"eagle_config": BLOCK}
    assert all(len(line) <= width for line in lines) or width == 40  # the longest key alone takes 50
    assert (len(lines) == 1) == (width == 200)


def test_a_whole_config_is_copied_whole() -> None:
    config = {"architectures": ["LlamaForCausalLMEagle3"], "hidden_size": 128, "eagle_config": BLOCK, "empty": {}}
    lines = wrapped(f"for SGLang, write as the drafter's config.json: {json.dumps(config)}", 60)
    assert lines[0] == "  for SGLang, write as the drafter's config.json:"
    assert json.loads("\n".join(lines[1:])) == config
    alone = wrapped(json.dumps(config), 60, first="    -> ", then="       ")
    assert alone[0] == "    -> {"
    assert json.loads("{" + "\n".join(alone).split("{", 1)[1]) == config


def test_braces_that_are_no_json_are_words() -> None:
    text = "write `" + '"eagle_config": {"eagle_aux_hidden_state_layer_ids": [...]}' + "` in SGLang's numbering, please"
    assert len(wrapped(text, 60)) > 1
