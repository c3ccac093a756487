"""`eagle3-remote import`: files of other tools become runs, once, and are compared."""

import json
from pathlib import Path

import pytest

from orchestrator.store import Store
from tests.cli.conftest import Eagle

DATA = Path(__file__).parents[1] / "importers" / "data"
SERVING, VLLM = str(DATA / "sglang_serving_0.5.23.jsonl"), str(DATA / "vllm_serve.json")


def test_a_file_is_imported_once(store: Store, eagle: Eagle) -> None:
    first = eagle("import", SERVING, "--tag", "other", "--json")
    run_id = first.json["run_id"]
    assert first.json["new"] is True
    assert store.imported(run_id).tool == "sglang bench_serving"
    assert store.labels(run_id).tags == ("other",)
    again = eagle("import", SERVING, "--label", "again")
    assert f"already here: {run_id}" in again.out
    assert len(eagle("runs", "list", "--json").json["runs"]) == 1


def test_a_dry_run_keeps_nothing(store: Store, eagle: Eagle) -> None:
    told = eagle("import", SERVING, VLLM, "--dry-run")
    assert told.out.count("would import") == 2
    assert "the file does not tell the GPU" in told.err.replace("\n", " ")
    assert store.list() == ()


def test_nothing_is_kept_where_one_of_several_is_broken(store: Store, eagle: Eagle, tmp_path: Path) -> None:
    broken = tmp_path / "cut.jsonl"
    broken.write_bytes(Path(VLLM).read_bytes()[:200])
    assert eagle("import", VLLM, str(broken)).code == 5
    assert eagle("import", str(tmp_path / "none.json")).code == 6
    assert eagle("import", VLLM, "--kind", "nothing").code == 2
    assert store.list() == ()


def test_a_file_with_a_secret_is_not_kept_itself(store: Store, eagle: Eagle, tmp_path: Path) -> None:
    value = json.loads(Path(SERVING).read_text().splitlines()[0])
    value["server_info"]["api_key"] = "sk-123"
    path = tmp_path / "with.jsonl"
    path.write_text(json.dumps(value))
    found = eagle("import", str(path), "--json")
    assert "seems to hold a secret" in found.err
    kept = {item.name for item in store.run_dir(found.json["run_id"]).path.iterdir()}
    assert kept == {"measurements.json", "measurements.key"}


@pytest.mark.usefixtures("store")
def test_a_file_is_a_side_of_a_comparison(eagle: Eagle) -> None:
    same = eagle("diff", SERVING, SERVING)
    assert same.code in (0, 1), same.err
    assert eagle("diff", SERVING, VLLM).code == 4  # another tool's figures are no pair
