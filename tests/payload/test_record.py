"""The base of the wire's records: a frozen keyword-only dataclass, whatever its subclasses leave out."""

import copy
import dataclasses
import pickle
from typing import Literal

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


class Lists(Record):
    counts: tuple[int, ...] = ()
    times: tuple[float, ...] | None = None
    words: tuple[str, ...] = ()
    flags: tuple[bool, ...] = ()
    nested: tuple[tuple[int, ...], ...] = ()
    inside: tuple[Setting, ...] = ()
    choice: Literal["a", "b"] | None = None
    maybe: float | None = None
    count: int = 0
    word: str = ""
    named: dict[str, int] = dataclasses.field(default_factory=dict)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('{"counts": [1, 2, true]}', "$.counts[2]: expected int, found: True"),
        ('{"counts": [true]}', "$.counts[0]: expected int, found: True"),
        ('{"counts": [1, 2.0]}', "$.counts[1]: expected int, found: 2.0"),
        ('{"counts": [1, null]}', "$.counts[1]: expected int, found: None"),
        ('{"counts": [1, 9223372036854775808]}', "$.counts[1]: expected a number of at most 64 bits"),
        ('{"counts": [-9223372036854775809, 1]}', "$.counts[0]: expected a number of at most 64 bits"),
        ('{"counts": 1}', "$.counts: expected a list, found: int"),
        ('{"counts": null}', "$.counts: expected a list, found: NoneType"),
        ('{"times": [1.5, 1e999]}', "$.times[1]: expected a finite number"),
        ('{"times": [1.5, "x"]}', "$.times[1]: expected float, found: 'x'"),
        ('{"words": "text"}', "$.words: expected a list, found: str"),
        ('{"words": ["a", 1]}', "$.words[1]: expected str, found: 1"),
        ('{"flags": [1]}', "$.flags[0]: expected bool, found: 1"),
        ('{"nested": [[1], [2, "x"]]}', "$.nested[1][1]: expected int, found: 'x'"),
        ('{"nested": [1]}', "$.nested[0]: expected a list, found: int"),
        ('{"inside": [{"key": "k"}]}', "$.inside[0].value: missing key of Setting"),
        ('{"choice": "c"}', "$.choice: expected one of 'a', 'b', found: 'c'"),
        ('{"choice": ["a"]}', "$.choice: expected one of 'a', 'b', found: list"),
        ('{"maybe": "1"}', "$.maybe: expected float, found: '1'"),
        ('{"count": null}', "$.count: expected int, found: None"),
        ('{"word": null}', "$.word: expected str, found: None"),
        ('{"named": {"a": true}}', "$.named.a: expected int, found: True"),
        ('{"named": 1}', "$.named: expected an object, found: int"),
        ('{"y": 1, "x": 1}', "$.x: unknown key; allowed: counts, times,"),
    ],
)
def test_each_value_is_looked_at_and_the_first_wrong_one_named(text: str, told: str) -> None:
    with pytest.raises(SchemaError) as refused:
        from_json(Lists, text)
    assert str(refused.value).startswith(told)


def test_right_values_come_back_as_their_types() -> None:
    found = from_json(Lists, '{"times": [1, 2.5], "maybe": 3, "nested": [[1], []], "flags": [true], "choice": "b"}')
    assert (found.times, found.maybe) == ((1.0, 2.5), 3.0)
    assert [type(value) for value in (*(found.times or ()), found.maybe)] == [float, float, float]
    assert (found.nested, found.flags, found.choice) == (((1,), ()), (True,), "b")
    assert from_json(Lists, '{"times": null, "choice": null, "maybe": null}') == Lists()
