import gzip
from pathlib import Path

import pytest

from orchestrator.errors import InvalidRunError, StoreError
from orchestrator.store import Store
from orchestrator.store.results import read_heldout, read_hits, read_requests, read_standalone
from remote_payload.rundir import RunDir
from remote_payload.schema import to_json
from tests.support.made_bench import made_request
from tests.support.made_results import made_declared, made_readings, made_result
from tests.support.made_runs import made_run, put_files, put_standalone


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path)


def test_a_whole_result_verifies_and_reads_back(store: Store) -> None:
    rows, hits, readings = made_readings({((0, 1, 2), 1): 0.7, ((1, 2, 3), 1): 0.3}, rows=2)
    result = made_result(readings, made_declared((0, 2, 4), (0, 1, 2)), rows=2)
    record = put_standalone(store, made_run(), result, rows, hits)
    run = store.run_dir(record.run_id)
    assert store.verify(record.run_id) == ()
    assert read_standalone(run) == result
    assert read_hits(run) == (rows, hits)
    assert store.list()[0].has_result


def test_held_out_rows_are_read_where_there_are_some(store: Store) -> None:
    rows, hits, readings = made_readings({((0, 1, 2), 1): 0.7}, rows=2)
    other, other_hits, _ = made_readings({((0, 1, 2), 1): 0.5}, rows=3)
    result = made_result(readings, made_declared((0, 2, 4), (0, 1, 2)), rows=2)
    put_standalone(store, made_run("plain"), result, rows, hits)
    assert read_heldout(store.run_dir("plain")) is None
    put_standalone(store, made_run("both"), result, rows, hits, heldout=(other, other_hits))
    assert store.verify("both") == ()
    assert read_heldout(store.run_dir("both")) == (other, other_hits)
    (store.run_dir("both").result / "heldout.jsonl.gz").write_bytes(b"no gzip")
    with pytest.raises(StoreError, match=r"heldout\.jsonl\.gz"):
        read_heldout(store.run_dir("both"))


def test_every_kind_of_damage_is_named(store: Store) -> None:
    run = store.begin(made_run())
    assert "no manifest" in store.verify(run.path.name)[0]
    put_files(run, {"a.json": b"12", "b.json": b"34", "c.json": b"56"})
    (run.result / "a.json").write_bytes(b"13")
    (run.result / "b.json").write_bytes(b"345")
    (run.result / "c.json").unlink()
    (run.result / "d.json").write_bytes(b"")
    problems = "\n".join(store.verify(run.path.name))
    assert "`a.json`: expected sha256" in problems
    assert "`b.json`: expected 2 bytes, found: 3" in problems
    assert "`c.json` is in the manifest and missing" in problems
    assert "`d.json` is not in the manifest" in problems


def test_a_run_without_a_result_says_so(store: Store) -> None:
    run = store.begin(made_run())
    with pytest.raises(InvalidRunError, match="expected the result"):
        read_standalone(run)
    with pytest.raises(InvalidRunError, match="expected the hits"):
        read_hits(run)


@pytest.mark.parametrize(
    "data",
    [b"", b"no gzip", gzip.compress(b'{"kind": "row"}')[:-3], gzip.compress(b"{\n")],
    ids=["nothing", "no gzip", "cut", "half a line"],  # the bytes tell the time they were packed at
)
def test_broken_hits_name_the_file(store: Store, data: bytes) -> None:
    run: RunDir = store.begin(made_run())
    put_files(run, {"hits.jsonl.gz": data})
    if not data:
        assert read_hits(run) == ((), ())
        return
    with pytest.raises(StoreError, match=r"hits\.jsonl\.gz"):
        read_hits(run)


def test_of_a_run_that_was_killed_the_whole_lines_count(store: Store) -> None:
    run = store.begin(made_run())
    lines = "".join(f"{to_json(made_request(0, number, index=number))}\n" for number in range(40)).encode()
    run.result.mkdir()
    path = run.result / "requests.jsonl.gz"
    whole = gzip.compress(lines)
    path.write_bytes(whole)
    assert len(read_requests(run)) == 40
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(StoreError, match=r"requests\.jsonl\.gz: expected a whole gzip file"):
        read_requests(run)
    assert 0 < len(read_requests(run, whole=False)) < 40
    path.write_bytes(b"no gzip")
    with pytest.raises(StoreError):
        read_requests(run, whole=False)
