"""The file of requests: whole lines wherever it is cut, one compressed member a point once that is over."""

import gzip
from pathlib import Path

from remote_payload.schema.bench import RequestSample
from remote_payload.schema.record import from_json, to_json
from remote_payload.sglang_bench.kept_requests import KeptRequests
from tests.payload.sglang_bench.test_as_a_run import requests_in


def sample(point: int, index: int) -> RequestSample:
    stamps = tuple(0.5 + number / 64 for number in range(200))
    return RequestSample(point=point, index=index, prompt=index, prompt_tokens=2, sent_s=0.25, chunk_s=stamps)


def test_a_point_that_is_over_is_compressed_in_order_and_one_under_way_is_there(tmp_path: Path) -> None:
    path = tmp_path / "requests.jsonl.gz"
    kept = KeptRequests(path)
    for index in (1, 0, 2):
        kept.add(sample(0, index))
        assert [item.index for item in requests_in(path)] == [1, 0, 2][: kept.count]
    loose = path.stat().st_size
    kept.settle()
    assert path.stat().st_size < loose / 4
    assert requests_in(path) == [sample(0, index) for index in range(3)]
    kept.add(sample(1, 1))
    kept.add(sample(1, 0))
    cut = tmp_path / "cut.gz"
    cut.write_bytes(path.read_bytes()[:-9])  # a kill in the middle of a write
    assert requests_in(path) == [*[sample(0, index) for index in range(3)], sample(1, 1), sample(1, 0)]
    with gzip.open(cut, "rt") as file:
        assert [from_json(RequestSample, file.readline()).point for _ in range(4)] == [0, 0, 0, 1]
    kept.close()
    expected = [sample(0, index) for index in range(3)] + [sample(1, index) for index in range(2)]
    assert gzip.decompress(path.read_bytes()).decode("ascii") == "".join(f"{to_json(item)}\n" for item in expected)


def test_nothing_measured_leaves_a_file_that_can_be_read(tmp_path: Path) -> None:
    KeptRequests(tmp_path / "requests.jsonl.gz").close()
    assert requests_in(tmp_path / "requests.jsonl.gz") == []
