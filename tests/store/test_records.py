import pytest

from orchestrator.errors import ProtocolError, StoreError
from orchestrator.records import (
    Baseline,
    BaselineEntry,
    BaselineNumber,
    RunRecord,
    read_frame,
    read_record,
    record_bytes,
)
from remote_payload.schema import PulseFrame, from_json, to_json
from tests.support.made_runs import made_run


def test_both_readers_read_the_same_run() -> None:
    record = made_run()
    assert read_record(RunRecord, record_bytes(record)) == record
    assert from_json(RunRecord, record_bytes(record).decode()) == record


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ('"tags":[]', '"tags":[],"tag":1', "run.json: `tag`: unknown key, found: 1"),
        ('"python":"/usr/bin/python3",', "", "run.json: `spec.python`: missing key of RunRecord"),
        ('"sequence":3', '"sequence":3.5', "run.json: `state.sequence`: expected a valid integer"),
        ('"phase":"succeeded"', '"phase":"won"', "run.json: `state.phase`: expected 'queued'"),
        ('"created_unix_s":1767323045.0', '"created_unix_s":NaN', "run.json: `spec.created_unix_s`: expected a finite"),
    ],
)
def test_what_is_wrong_is_named_with_file_and_key(old: str, new: str, expected: str) -> None:
    text = record_bytes(made_run()).decode()
    assert old in text
    with pytest.raises(StoreError) as failure:
        read_record(RunRecord, text.replace(old, new), where="run.json", error=StoreError)
    assert expected in failure.value.message


def test_long_values_are_shortened_and_deep_nesting_is_an_error_like_any_other() -> None:
    with pytest.raises(ProtocolError) as failure:
        read_record(RunRecord, f'{{"host": "{"x" * 5000}"}}')
    assert len(failure.value.message) < 1000
    with pytest.raises(ProtocolError, match="expected"):
        read_record(RunRecord, "[" * 100_000)


def test_frames_are_chosen_by_kind() -> None:
    assert read_frame(to_json(PulseFrame(heartbeat_age_s=1.5))) == PulseFrame(heartbeat_age_s=1.5)
    for text in ("", "[]", "{}", '{"kind": "nonsense"}', '{"kind": ["pulse"]}'):
        with pytest.raises(ProtocolError, match=r"frame|kind"):
            read_frame(text, where="gpu1")
    with pytest.raises(ProtocolError, match="`age`: unknown key"):
        read_frame('{"kind": "pulse", "age": 1}')


def test_a_baseline_entry_is_a_run_or_numbers() -> None:
    number = BaselineNumber(metric="m", value=1.0)
    with pytest.raises(ValueError, match="either a run or typed numbers"):
        BaselineEntry(run_id="r", numbers=(number,), set_at_unix_s=1)
    with pytest.raises(ValueError, match="either a run or typed numbers"):
        BaselineEntry(set_at_unix_s=1)
    with pytest.raises(ValueError, match="once"):
        BaselineEntry(numbers=(number, number), set_at_unix_s=1)
    with pytest.raises(ValueError, match="finite"):
        BaselineNumber(metric="m", value=float("inf"))
    with pytest.raises(ValueError, match="metric's name"):
        BaselineNumber(metric="tok/s", value=1.0)
    with pytest.raises(ValueError, match="must not be empty"):
        Baseline(name="n", history=())
