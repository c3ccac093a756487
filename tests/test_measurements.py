import dataclasses
import os
from pathlib import Path

import pytest

from orchestrator.errors import InvalidRunError
from orchestrator.measurements import measurements_of
from orchestrator.records.measurement import Measurement, MeasurementSet, Series
from orchestrator.store import Store
from orchestrator.store.layout import KEY, MEASUREMENTS
from tests.cli.test_runs_baseline_diff import put_run
from tests.support.made_bench import made_paired
from tests.support.made_runs import made_run
from tests.support.made_sets import put_bench


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path)


def series(measurement: Measurement, metric: str) -> Series:
    return next(item for item in measurement.series if item.metric == metric)


def side(found: MeasurementSet, name: str) -> Measurement:
    return next(item for item in found.measurements if item.case[0].value == name)


def test_a_served_run_has_prompts_for_acceptance_and_repeats_for_speed(store: Store) -> None:
    result, requests = made_paired(repeats=3)
    record = put_bench(store, "bench-a1", (result, requests))
    found = measurements_of(store, record)
    spec, plain = side(found, "spec"), side(found, "plain")
    length = series(spec, "accept_length_pooled")
    mine = [item for item in requests if item.verify_steps and item.prompt == 3]
    at = length.keys.index(f"{'cd' * 6}#3")
    assert length.level == "prompt"
    assert len(length.keys) == 8
    assert length.x[at] == sum(item.verify_steps or 0 for item in mine) == 90
    assert length.y[at] == 90 + sum(item.correct_drafts or 0 for item in mine)
    throughput = series(spec, "output_throughput_tok_s")
    assert throughput.keys == ("bench-a1/0", "bench-a1/1", "bench-a1/2")
    assert throughput.y == pytest.approx((56.8 * 0.99, 56.8, 56.8 * 1.01))
    assert series(spec, "speedup").y == pytest.approx([56.8 / 90] * 3)
    assert series(spec, "identical_outputs").y == (1.0,) * 8
    assert spec.histogram
    assert not plain.histogram
    assert {item.metric for item in plain.series}.isdisjoint({"accept_length_pooled", "speedup", "accept_rate"})
    facts = {fact.name: fact.value for fact in plain.hard}
    assert (facts["draft"], facts["num_steps"], facts["gpu"], facts["cache_policy"]) == (
        "none",
        "none",
        "none, CPU",
        "flushed before each point",
    )
    assert {fact.name: fact.value for fact in spec.hard}["num_steps"] == "3"
    assert {fact.name: fact.value for fact in spec.arguments}["speculative_num_steps"] == "3"
    assert spec.invalid == plain.invalid == ()


def test_a_load_with_a_failed_request_is_invalid_with_its_reason(store: Store) -> None:
    result, requests = made_paired(repeats=3)
    broken = dataclasses.replace(requests[0], error="timed out")
    points = (dataclasses.replace(result.points[0], failed=1), *result.points[1:])
    made = (dataclasses.replace(result, points=points), (broken, *requests[1:]))
    found = measurements_of(store, put_bench(store, "bench-a1", made))
    assert "1 of 24 requests failed" in side(found, "spec").invalid[0]
    assert side(found, "plain").invalid == ()


def test_a_warm_cache_voids_only_where_nobody_flushed(store: Store) -> None:
    result, requests = made_paired(repeats=3)
    warm = tuple(dataclasses.replace(item, cached_tokens=10) for item in requests)
    flushed = measurements_of(store, put_bench(store, "flushed", (result, warm)))
    assert side(flushed, "spec").invalid == ()
    assert any("prefix cache" in text for text in side(flushed, "spec").warnings)
    points = tuple(dataclasses.replace(point, flushed=False) for point in result.points)
    cold = measurements_of(store, put_bench(store, "not", (dataclasses.replace(result, points=points), warm)))
    assert "prefix cache" in side(cold, "spec").invalid[0]


def test_plain_decoding_slower_than_possible_voids_it_and_the_speed_up(store: Store) -> None:
    made = made_paired(repeats=3, spec_tok_s=200.0, plain_tok_s=90.0)
    found = measurements_of(store, put_bench(store, "bench-a1", made))
    assert "plain decoding looks too slow" in side(found, "plain").invalid[0]
    assert side(found, "spec").invalid == ()
    assert "speedup" not in {item.metric for item in side(found, "spec").series}
    assert any("plain decoding looks too slow" in text for text in side(found, "spec").warnings)


def test_a_run_that_ended_early_is_invalid(store: Store) -> None:
    result, requests = made_paired(repeats=3)
    part = dataclasses.replace(result, whole=False, planned=8, repeats=4)
    found = measurements_of(store, put_bench(store, "bench-a1", (part, requests)))
    assert all("ended early" in item.invalid[0] for item in found.measurements)


def test_a_drafter_test_is_counted_by_row(store: Store) -> None:
    (only,) = measurements_of(store, put_run(store, "run-a1", 0.7)).measurements
    length = series(only, "declared.accept_length_walk")
    assert len(length.keys) == 12
    assert sum(length.x) == sum(only.histogram)
    assert sum(length.y) == sum((accepted + 1) * steps for accepted, steps in enumerate(only.histogram))
    assert series(only, "best.first_step_accuracy").unit == "share"


def test_what_was_made_is_kept_until_a_file_or_the_copy_itself_changes(store: Store) -> None:
    record = put_bench(store, "bench-a1", made_paired())
    run = store.run_dir("bench-a1")
    first = measurements_of(store, record)
    kept = run.path / MEASUREMENTS
    inode = kept.stat().st_ino
    assert measurements_of(store, record) == first
    assert kept.stat().st_ino == inode  # read, not made again
    whole = kept.read_text()
    for edited in (whole.replace("56.8", "95.8"), "{", "", "\0" * len(whole)):  # as a power cut may leave it, too
        kept.write_text(edited)
        assert measurements_of(store, record) == first
        assert kept.read_text() == whole
    for other in ("another version", "", "\0" * 130):
        (run.path / KEY).write_text(other)
        assert measurements_of(store, record) == first
    path = run.result / "requests.jsonl.gz"
    times = (path.stat().st_atime_ns, path.stat().st_mtime_ns)
    path.write_bytes(path.read_bytes()[:-8] + bytes(8))  # as long as it was, and as old as it was
    os.utime(path, ns=times)
    with pytest.raises(InvalidRunError, match="not what the run left"):
        measurements_of(store, record)


def test_a_run_without_figures_is_refused_by_name(store: Store) -> None:
    store.begin(made_run("bare"))
    with pytest.raises(InvalidRunError, match="`bare`"):
        measurements_of(store, store.load("bare"))
