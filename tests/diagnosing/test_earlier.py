"""What a step cost before, found among the runs of this laptop: the same pair, server and host, the newest first."""

import dataclasses
import gzip
from pathlib import Path
from typing import Any

import pytest

from orchestrator.config import Config
from orchestrator.diagnosing.asked import Asked
from orchestrator.diagnosing.earlier import earlier_cost
from orchestrator.diagnosis.decision.planned import EarlierCost
from orchestrator.store import Store
from remote_payload.schema import to_json
from tests.diagnosing.test_stages import asked
from tests.support.made_bench import made_paired
from tests.support.made_runs import made_run, put_files


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path)


def put(store: Store, run_id: str, about: Asked, created_unix_s: float, **speeds: Any) -> None:
    """A served benchmark as this diagnosis would ask for it, kept."""
    record = made_run(run_id, created_unix_s=created_unix_s)
    job_json = to_json(about.serve(Config()).job)
    spec = dataclasses.replace(record.spec, job_kind="bench", job_json=job_json)
    result, requests = made_paired(**speeds)
    lines = "".join(f"{to_json(item)}\n" for item in requests)
    run = store.begin(dataclasses.replace(record, spec=spec))
    put_files(run, {"bench.json": to_json(result).encode(), "requests.jsonl.gz": gzip.compress(lines.encode())})


def found(store: Store, about: Asked | None = None, host: str = "gpu1") -> EarlierCost | None:
    return earlier_cost(about or asked(), Config(), store, host)


def test_the_newest_benchmark_of_the_very_server_says_it(store: Store) -> None:
    assert found(store) is None
    put(store, "b1", asked(), 1767323045.0, spec_tok_s=45.0)
    put(store, "b2", asked(num_steps=2), 1767324045.0)
    put(store, "b3", asked(dtype="float32"), 1767325045.0)
    put(store, "d.serve", asked(), 1767326045.0)  # of this diagnosis itself
    cost = found(store)
    assert cost is not None
    assert (cost.run_id, cost.steps) == ("b1", 3)
    assert 3.4 < cost.low < cost.ratio < cost.high < 4.2  # accept length 1.9 at half of plain decoding's speed
    assert found(store, host="gpu2") is None
    assert found(store, asked(draft="/other")) is None


def test_one_repeat_has_no_interval_and_a_broken_run_stops_nobody(store: Store) -> None:
    put(store, "b1", asked(), 1767323045.0)
    put(store, "b2", asked(), 1767324045.0, repeats=1)
    put(store, "b3", asked(), 1767325045.0)
    (store.run_dir("b3").result / "bench.json").write_text("{}")
    cost = found(store)
    assert cost is not None
    assert cost.run_id == "b1"
