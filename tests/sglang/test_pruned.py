"""A sweep's own chains rule others out, and its best are measured afresh: from the command line, on a real SGLang."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.sglang.conftest import ARGUMENTS, ENVIRONMENT, Models
from tests.support.laptop import Laptop
from tests.support.sshd import running_sshd

MARGIN = 1.05
"""How much a point's best case must lie below the best: it is in the words that a point is skipped with, and here."""
NAMES = ("plain", "unloaded 1", "unloaded 5", "std 3")
A_SWEEP_S = 3000


@pytest.fixture
def laptop(tmp_path: Path) -> Iterator[Laptop]:
    folder = tmp_path / "laptop"
    folder.mkdir()
    with running_sshd(tmp_path / "gpu1") as server:
        made = Laptop(folder)
        made.add_host("gpu1", server)
        yield made
        made.close()


def write_sweep(path: Path, models: Models, python: str, repeats: int, points: str) -> str:
    settings = {
        "draft": str(models.unloaded),
        "model": str(models.target),
        "prompts": str(models.prompts),
        "dtype": "float32",
        "context_length": 1024,
        "eagle_topk": 1,
        "num_draft_tokens": 4,
        "max_prompts": 8,
        "max_new_tokens": 64,
        "ignore_eos": True,
        "server_python": python,
        "server_args": list(ARGUMENTS),
        "server_environment": [f"{name}={value}" for name, value in ENVIRONMENT.items()],
    }
    base = "".join(f"{key} = {json.dumps(value)}\n" for key, value in settings.items())
    head = f'[sweep]\njob = "bench"\nrepeats = {repeats}\nblocks = "abab"\n'
    path.write_text(f"{head}[sweep.base]\n{base}{points}", encoding="utf-8")
    return str(path)


def by_name(report: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The rows, as `std 3` by drafter's folder and steps; plain decoding as `plain`."""
    settings = {one["point_id"]: one["settings"] for one in report["points"]}
    return {name_of(settings[row["point_id"]]): row for row in report["rows"]}


def name_of(settings: dict[str, Any]) -> str:
    return f"{Path(settings['draft']).name} {settings['num_steps']}" if settings["draft"] else "plain"


def expected_skips(report: dict[str, Any]) -> set[str]:
    """Chains of a drafter that is never accepted have the speed of their verify steps: at most that of shallower ones.

    So none is the best where the best is surely faster. How sure that is the machine's noise decides.
    """
    speeds = {name: row["figures"]["output_throughput_tok_s"] for name, row in by_name(report).items()}
    best = max(one["low"] for one in speeds.values())
    most = {"unloaded 1": speeds["plain"]["high"]}
    most["unloaded 3"] = min(speeds["plain"]["high"], speeds["unloaded 1"]["high"])
    return {name for name, speed in most.items() if speed * MARGIN < best}


def check_measured(report: dict[str, Any]) -> None:
    """The figures that the pair decides, not the machine."""
    rows = by_name(report)
    assert {name: row["measured"] for name, row in rows.items()} == dict.fromkeys(NAMES, 3)
    assert [row["invalid"] for row in rows.values()] == [[]] * len(NAMES)
    lengths = {name: row["figures"].get("accept_length_pooled") for name, row in rows.items()}
    assert lengths.pop("plain") is None
    assert {(lengths[name]["value"], lengths[name]["high"]) for name in ("unloaded 1", "unloaded 5")} == {(1.0, 1.0)}
    assert 2.3 < lengths["std 3"]["value"] < 3.1
    assert {one["rows"] for one in lengths.values()} == {8}  # prompts, however often they were measured


@pytest.mark.slow
@pytest.mark.timeout(A_SWEEP_S + 300)
def test_a_sweep_rules_out_by_its_own_chains_and_its_best_are_measured_afresh(
    laptop: Laptop, models: Models, sglang_python: str, tmp_path: Path
) -> None:
    """Twelve starts, eight minutes on a quiet machine."""
    told = ((models.unloaded, 1), (models.unloaded, 5), (models.std, 3))
    points = "".join(
        f"[[sweep.points]]\ndraft = {json.dumps(str(path))}\nnum_steps = {steps}\n" for path, steps in told
    )
    file = write_sweep(tmp_path / "night.toml", models, sglang_python, 3, points)
    started = laptop.start("sweep", "run", file, "--host", "gpu1", "--run-id", "night", "--json")
    out, err = started.communicate(timeout=A_SWEEP_S)
    assert started.returncode == 0, err
    night = json.loads(out.splitlines()[-1])
    check_measured(night)

    grid = f'[sweep.grid]\nnum_steps = [1, 3, 5]\ndraft = ["{models.std}", "{models.unloaded}"]\n'
    more = write_sweep(tmp_path / "more.toml", models, sglang_python, 1, grid)
    asked = ("sweep", "run", more, "--host", "gpu1", "--prune", "night")
    planned = laptop.run(*asked, "--dry-run", "--json")
    assert planned.code == 0, planned.err
    skipped = json.loads(planned.out)["skipped"]
    assert {name_of(one["settings"]) for one in skipped} == expected_skips(night)
    assert all("accept length at most 1.00 by the chain of 5 steps" in one["reason"] for one in skipped)
    assert ("the intervals of its chains rule out no greedy chain" in planned.err) == (not skipped)
    launched = laptop.run(*asked, "--detach", "--run-id", "more")  # models and software are those of `night`
    assert launched.code == 0, launched.err
    assert laptop.run("sweep", "cancel", "more").code == 0

    confirming = laptop.run("sweep", "confirm", "night", "--run-id", "fresh", "--detach")
    assert confirming.code == 0, confirming.err
    assert laptop.run("sweep", "cancel", "fresh").code == 0
    fresh = json.loads(laptop.run("sweep", "report", "fresh", "--json").out)
    lost = {name for name, row in by_name(night).items() if (row["against_plain"] or {}).get("verdict") == "regressed"}
    assert {*by_name(fresh)} == {*NAMES} - lost
    assert (fresh["confirms"], fresh["planned"]) == ("night", 3 * (len(NAMES) - len(lost)))
    assert [one["point_id"] for one in fresh["recommended"]] == [None]  # what `night` measured recommends nothing
