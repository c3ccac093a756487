from pathlib import Path

import pytest

from orchestrator.compare.asked import Asked
from orchestrator.compare.diff import compare_many
from orchestrator.errors import InvalidRunError, NotFoundError, UsageError
from orchestrator.measurements import measurements_of
from orchestrator.operands import operand
from orchestrator.records import BaselineEntry, BaselineNumber, record_bytes
from orchestrator.store import Store
from tests.support.made_bench import made_paired
from tests.support.made_sets import measurement, measurement_set, put_bench, throughputs


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "home")


def test_a_run_an_imported_one_and_a_file_are_operands(store: Store, tmp_path: Path) -> None:
    record = put_bench(store, "bench-a1", made_paired())
    own = operand(store, "bench-a")
    assert (own.label, own.sets) == ("bench-a1", (measurements_of(store, record),))
    assert operand(store, "last").label == "bench-a1"
    other = measurement_set(measurement(throughputs(90.0, 91.0)), run_id="sglang-x1", origin="imported")
    store.add_imported(other)
    assert operand(store, "sglang-x1").sets == (other,)
    path = tmp_path / "measurements.json"
    path.write_bytes(record_bytes(other))
    assert operand(store, str(path)).sets == (other,)
    both = operand(store, f"bench-a1,{path}")
    assert (both.label, len(both.sets), both.notes) == (f"bench-a1,{path}", 2, ())


def test_a_run_that_is_named_twice_counts_once_and_two_of_one_id_are_refused(store: Store, tmp_path: Path) -> None:
    first = measurement_set(measurement(throughputs(90.0, 91.0)), run_id="x1", origin="imported")
    store.add_imported(first)
    path = tmp_path / "x.json"
    path.write_bytes(record_bytes(first))
    twice = operand(store, f"x1,{path},x1")
    assert twice.sets == (first,)
    assert twice.notes == (
        f"x1 and {path} are the same run, x1: it counts once",
        "x1 is named twice: it counts once",
    )
    (found,) = compare_many((operand(store, "x1"), twice), Asked())
    assert twice.notes[0] in found.notes
    path.write_bytes(record_bytes(measurement_set(measurement(throughputs(500.0)), run_id="x1", origin="imported")))
    with pytest.raises(InvalidRunError, match=rf"`x1` and `{path}` hold different measurements of one id: x1"):
        operand(store, f"x1,{path}")


def test_what_is_no_operand_is_told_by_name(store: Store, tmp_path: Path) -> None:
    put_bench(store, "bench-a1", made_paired())
    with pytest.raises(NotFoundError, match="bench-b1") as caught:
        operand(store, "bench-b1")
    assert caught.value.hint == "did you mean: bench-a1"
    with pytest.raises(NotFoundError, match="no such file"):
        operand(store, "gone.json")
    with pytest.raises(UsageError, match="found nothing"):
        operand(store, ",")
    for word in ("bench~0", "bench~1\u0665", "bench@", "bench~", "bench@~3", "standalone~x"):
        with pytest.raises(UsageError, match="expected a set of runs"):
            operand(store, word)
    broken = tmp_path / "broken.json"
    broken.write_text('{"schema_version": 1, "measurements": 3}')
    with pytest.raises(InvalidRunError, match=r"broken\.json"):
        operand(store, str(broken))
    newer = tmp_path / "newer.json"
    newer.write_text('{"schema_version": 99, "measurements": []}')
    with pytest.raises(InvalidRunError, match="newer"):
        operand(store, str(newer))
    with pytest.raises(UsageError):
        operand(store, str(tmp_path) + "/")


def test_a_typed_baseline_has_its_numbers_and_the_catalogues_units(store: Store) -> None:
    numbers = (
        BaselineNumber(metric="output_throughput_tok_s", value=90.0, unit="tok/s"),
        BaselineNumber(metric="accept_length_pooled", value=2.4),
    )
    store.set_baseline("plain", BaselineEntry(numbers=numbers, source="me@laptop", note="x", set_at_unix_s=5.0))
    (typed,) = operand(store, "baseline:plain").sets
    assert (typed.origin, typed.source, typed.created_unix_s) == ("typed", "me@laptop", 5.0)
    (only,) = typed.measurements
    assert [(one.unit, one.level, one.y) for one in only.series] == [
        ("tok/s", "summary", (90.0,)),
        ("tokens", "summary", (2.4,)),
    ]
    with pytest.raises(NotFoundError, match="no such run on this laptop: plain") as bare:
        operand(store, "plain")
    assert bare.value.hint == "did you mean the baseline: baseline:plain"
    with pytest.raises(InvalidRunError, match="`plain` means none"):
        operand(store, "bench@plain..")
