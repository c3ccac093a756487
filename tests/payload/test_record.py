"""The base of the wire's records: a frozen keyword-only dataclass, whatever its subclasses leave out."""

import copy
import dataclasses
import pickle

import pytest

from remote_payload.schema import (
    Event,
    Failure,
    PulseFrame,
    SchemaError,
    SelftestJob,
    Setting,
    frame_from_json,
    from_json,
    job_from_json,
)
from remote_payload.schema.record import Record


class Sample(Record):
    first: int
    second: tuple[str, ...] = ()
    third: dict[str, str] = dataclasses.field(default_factory=dict)


def test_fields_defaults_and_factories() -> None:
    sample = Sample(first=1)
    assert [field.name for field in dataclasses.fields(sample)] == ["first", "second", "third"]
    assert (sample.first, sample.second, sample.third) == (1, (), {})
    assert Sample(first=1).third is not Sample(first=1).third
    assert repr(sample) == "Sample(first=1, second=(), third={})"


def test_only_known_keywords_and_all_that_are_needed() -> None:
    with pytest.raises(TypeError, match="has no `fourth`"):
        Sample(first=1, fourth=4)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="needs `first`"):
        Sample()  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        Sample(1)  # type: ignore[misc]


def test_frozen() -> None:
    sample = Sample(first=1)
    with pytest.raises(dataclasses.FrozenInstanceError):
        sample.first = 2  # type: ignore[misc]
    with pytest.raises(dataclasses.FrozenInstanceError):
        del sample.first
    with pytest.raises(dataclasses.FrozenInstanceError):
        sample.new = 2  # type: ignore[attr-defined]


def test_equal_by_class_and_values() -> None:
    pulse = PulseFrame(heartbeat_age_s=1.0)
    assert pulse == PulseFrame(heartbeat_age_s=1.0)
    assert pulse != PulseFrame(heartbeat_age_s=2.0)
    assert Setting(key="a", value="1", source="flag") in {Setting(key="a", value="1", source="flag")}
    assert Sample(first=1) != Failure(kind="job", message="1")


def test_copies_are_checked_again() -> None:
    event = Event(time_unix_s=1.0, kind="phase", name="load")
    assert dataclasses.replace(event, name="search").name == "search"
    with pytest.raises(ValueError, match="must not be negative"):
        dataclasses.replace(SelftestJob(), duration_s=-1.0)
    assert copy.deepcopy(event) == event
    assert pickle.loads(pickle.dumps(event)) == event


class Numbers(Record):
    whole: int = 0
    real: float = 0.0
    inner: Setting | None = None
    names: dict[str, str] = dataclasses.field(default_factory=dict)


DEEP = "[" * 900 + "]" * 900


@pytest.mark.parametrize(
    "text",
    [
        "[" * 300_000,
        '{"names": ' + '{"a":' * 200_000,
        '{"whole": ' + "9" * 5000 + "}",
        '{"whole": ' + "9" * 401 + "}",
        '{"whole": 9223372036854775808}',
        '{"real": ' + "9" * 401 + "}",
        '{"real": 1e999}',
        '{"real": NaN}',
        '{"real": true}',
        '{"whole": 1.0}',
        f'{{"whole": {DEEP}}}',
        f'{{"inner": {DEEP}}}',
        f'{{"names": {{"a": {DEEP}}}}}',
        '{"inner": {"key": "\\ud800", "value": 1, "source": ""}}',
        b'{"whole": "\xff"}',
        b"\xff\xfe\x00",
        b"\xef\xbb\xbf[]",
        "\ud800",
    ],
)
def test_whatever_the_text_only_a_schema_error_comes_of_it(text: str | bytes) -> None:
    with pytest.raises(SchemaError) as refused:
        from_json(Numbers, text)
    assert str(refused.value).startswith("$")
    assert len(str(refused.value)) < 500
    for read in (frame_from_json, job_from_json):
        with pytest.raises(SchemaError):
            read(text if isinstance(text, str) else text.decode("latin-1"))


def test_the_largest_numbers_that_are_taken() -> None:
    found = from_json(Numbers, '{"whole": -9223372036854775808, "real": 9223372036854775807}')
    assert (found.whole, found.real) == (-(2**63), float(2**63))
