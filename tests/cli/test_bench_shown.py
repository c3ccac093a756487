"""A served benchmark in the store, shown again by `runs show`."""

import dataclasses
import gzip
import json

import pytest

from orchestrator.cli.ending import end
from orchestrator.errors import InvalidRunError
from orchestrator.records import RunRecord
from orchestrator.store import Store
from remote_payload.schema import to_json
from remote_payload.schema.bench import SampledLoad
from remote_payload.schema.workload import TemplateCheck
from remote_payload.sglang_bench.edits import compared
from tests.cli.conftest import Eagle
from tests.support.made_bench import made_paired
from tests.support.made_runs import made_run, put_files


@pytest.fixture
def record(store: Store) -> RunRecord:
    record = made_run("bench-20260102-0304-ab12cd")
    record = dataclasses.replace(record, spec=dataclasses.replace(record.spec, job_kind="bench"))
    result, requests = made_paired()
    lines = "".join(f"{to_json(item)}\n" for item in requests)
    run = store.begin(record)
    put_files(run, {"bench.json": to_json(result).encode(), "requests.jsonl.gz": gzip.compress(lines.encode())})
    return record


def test_it_is_shown_again_from_what_came_home(eagle: Eagle, record: RunRecord) -> None:
    short, long = eagle("runs", "show", "last"), eagle("runs", "show", record.run_id, "--verbose")
    assert short.code == long.code == 0, short.err + long.err
    assert short.out.startswith("Slower than plain decoding at 1 user: 56.8 against 90.0 tok/s (0.63x)")
    assert "Tokens per verify = output tokens / verify steps" in " ".join(long.out.split())
    value = eagle("runs", "show", "last", "--json").json
    assert value["run"]["job_kind"] == "bench"
    assert len(value["requests"]) == 48
    assert value["result"]["workload"]["sha256"] == "cd" * 32


def test_a_load_at_another_temperature_and_the_served_template_are_told(
    eagle: Eagle, record: RunRecord, store: Store
) -> None:
    result, requests = made_paired()
    hot = tuple(dataclasses.replace(item, point=0) for item in requests if item.point == 0)
    doubled = compared(0, (1, 2, 3, 7), 3, (1, 1, 2, 3))
    result = dataclasses.replace(
        result,
        sampled=SampledLoad(temperature=0.8, point=result.points[0]),
        workload=dataclasses.replace(result.workload, retokenised=TemplateCheck(rows=(doubled,), with_messages=1)),
    )
    lines = {
        name: "".join(f"{to_json(item)}\n" for item in some)
        for name, some in (("requests", requests), ("sampled", hot))
    }
    packed = {f"{name}.jsonl.gz": gzip.compress(text.encode()) for name, text in lines.items()}
    put_files(store.run_dir(record.run_id), {"bench.json": to_json(result).encode(), **packed})
    told = " ".join(eagle("runs", "show", "last", "--verbose").out.split())
    assert "temperature 0.8 is not sampled while speculating" in told
    assert "the first token is doubled" in told


@pytest.mark.parametrize("as_json", [False, True])
def test_a_run_with_a_failed_request_ends_as_invalid(
    store: Store, record: RunRecord, as_json: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    end(record, store, as_json=as_json)  # a sound one ends well
    result, requests = made_paired()
    broken = (dataclasses.replace(requests[0], error="HTTP 503", status=503), *requests[1:])
    lines = "".join(f"{to_json(item)}\n" for item in broken)
    files = {"bench.json": to_json(result).encode(), "requests.jsonl.gz": gzip.compress(lines.encode())}
    put_files(store.run_dir(record.run_id), files)
    with pytest.raises(InvalidRunError, match="is no measurement: 1 request failed") as caught:
        end(record, store, as_json=as_json)
    assert caught.value.exit_code == 5
    assert "1 request failed" in capsys.readouterr().out


@pytest.mark.parametrize(
    "asked", [("--depths",), ("--rules",), ("--step-cost", "1.9"), ("--max-new-tokens", "8"), ("--rules", "--json")]
)
def test_what_only_a_drafters_test_can_answer_is_refused(
    eagle: Eagle, record: RunRecord, asked: tuple[str, ...]
) -> None:
    answer = eagle("runs", "show", record.run_id, *asked)
    assert answer.code == 2
    assert f"{asked[0]}: expected a run of kind standalone, this one is: bench" in answer.err


def test_a_broken_line_is_named_with_its_file(eagle: Eagle, record: RunRecord, store: Store) -> None:
    path = store.run_dir(record.run_id).result
    bench = (path / "bench.json").read_bytes()
    put_files(
        store.run_dir(record.run_id), {"bench.json": bench, "requests.jsonl.gz": gzip.compress(b'{"point": 1}\n')}
    )
    answer = eagle("runs", "show", "last")
    assert answer.code == 40
    assert "requests.jsonl.gz, line 1" in answer.err


def test_a_result_that_changed_is_refused(eagle: Eagle, record: RunRecord, store: Store) -> None:
    path = store.run_dir(record.run_id).result / "bench.json"
    value = json.loads(path.read_text())
    path.write_text(json.dumps({**value, "seconds": 1.0}))
    assert eagle("runs", "show", "last").code == 5
