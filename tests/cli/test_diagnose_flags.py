"""Flags of `diagnose` that no stage could use are refused before a host is asked."""

from pathlib import Path
from typing import Any

import pytest

from orchestrator.cli.diagnose import diagnose
from orchestrator.cli.diagnose_flags import TEXTS, require_usable
from orchestrator.errors import Eagle3Error


def flags(**given: Any) -> dict[str, Any]:
    return {**{item.name or "": None for item in diagnose.params}, "applies": False, **given}


@pytest.mark.parametrize("name", TEXTS)
def test_an_empty_text_is_no_value(name: str) -> None:
    with pytest.raises(Eagle3Error, match=f"^--{name.replace('_', '-')} is empty: expected a value, found: ' '$") as no:
        require_usable(flags(**{name: " "}))
    assert no.value.exit_code == 2


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("embed,2,2", "found twice: 2"),
        ("0,embed,4", "found twice: embed"),
        ("embed,x", "found: 'x'"),
        ("embed,-1", "found: '-1'"),
        ("embed,,2", "found: ''"),
    ],
)
def test_trained_states(text: str, told: str) -> None:
    with pytest.raises(Eagle3Error, match="--trained") as no:
        require_usable(flags(trained=text))
    assert told in no.value.message
    assert no.value.exit_code == 2


@pytest.mark.parametrize(
    ("train", "heldout"),
    [("prompts", "heldout_prompts"), ("merged", "heldout_merged"), ("merged", "heldout_prompts")],
)
def test_held_out_prompts_are_of_another_file(train: str, heldout: str) -> None:
    require_usable(flags(**{train: "/p/a.jsonl", heldout: "/p/b.jsonl"}))
    with pytest.raises(Eagle3Error, match=r"found one file: /p/a\.jsonl") as no:
        require_usable(flags(**{train: "/p/a.jsonl", heldout: "/p/x/../a.jsonl"}))
    assert no.value.exit_code == 2
    assert no.value.message.startswith(f"--{heldout.replace('_', '-')} and --{train}: ")


def test_states_that_are_some() -> None:
    require_usable(flags(trained="embed,2,4", num_steps=16))


def test_reports_need_a_place(tmp_path: Path) -> None:
    require_usable(flags(html=tmp_path / "new.html"))
    with pytest.raises(Eagle3Error, match=r"^--html: expected a file in a folder that exists"):
        require_usable(flags(html=tmp_path / "none" / "x.html"))
    with pytest.raises(Eagle3Error, match=r"^--markdown: expected a place for a file, there is something else"):
        require_usable(flags(markdown=tmp_path))


def test_steps_that_are_not_foretold() -> None:
    with pytest.raises(Eagle3Error, match="for at most 16 steps, found: 17"):
        require_usable(flags(num_steps=17))


@pytest.mark.parametrize("given", [{"apply_into": "/srv/x"}, {"applies": True, "attach_url": "http://127.0.0.1:9"}])
def test_what_does_not_go_together(given: dict[str, Any]) -> None:
    with pytest.raises(Eagle3Error, match="--apply"):
        require_usable(flags(**given))


@pytest.mark.parametrize("path", ["../eagle", "./eagle", ".", ".."])
def test_a_path_from_a_folder_that_nobody_knows(path: str) -> None:
    with pytest.raises(Eagle3Error, match=r"^--draft: expected a path on the host from `/` or `~` on, found: \.") as no:
        require_usable(flags(draft=path))
    assert no.value.exit_code == 2
    require_usable(flags(draft="lab/eagle", model="~/target", rows="/srv/rows", prompts=".hidden/p.jsonl"))
