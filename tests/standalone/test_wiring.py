"""The pruned search keeps what is good, and says how far each reading was measured."""

from tests.standalone.running import DATA, run_job
from tests.standalone.test_job import BUNDLE, RIGHT
from tests.standalone.test_served_truth import miswired


def stages(out):
    told = {}
    for reading in out.result.readings:
        told.setdefault(reading.stage, []).append(reading)
    return told


def test_the_screen_halves_until_few_are_left(tmp_path):
    out = run_job(tmp_path / "out", **BUNDLE, draft=DATA / "drafter_embed", keep_readings=5, search_rows=3)
    told = stages(out)
    # 24 after the first row, 12 after the second, 6 after the third; five survive, two of them are measured in full.
    assert sorted(reading.rows for reading in told["screen"]) == [1] * 12 + [2] * 6 + [3]
    assert len(told["search"]) == 5 - 2 + 2
    assert all((reading.rows, reading.positions) == (3, 216) for reading in told["search"])
    assert all(reading.rows == 5 for reading in told["full"])
    assert RIGHT in [reading.name for reading in told["full"]]


def test_a_declared_wiring_that_the_screen_drops_is_measured_in_full(tmp_path):
    out = run_job(tmp_path / "out", **BUNDLE, draft=miswired(tmp_path), states=(0, 2, 4, 5), keep_readings=2)
    assert out.full()[-1] == "slots 1,2,3 offset +1"
    assert len(out.full()) == 3


def test_token_offsets_can_be_left_out(tmp_path):
    out = run_job(tmp_path / "out", **BUNDLE, draft=DATA / "drafter_embed", token_offsets=(1,))
    assert {reading.token_offset for reading in out.result.readings} == {1}


def test_fewer_rows_than_the_search_wants(tmp_path):
    out = run_job(tmp_path / "out", **BUNDLE, draft=DATA / "drafter_embed", max_rows=1, search_rows=9)
    assert (out.result.rows.found, out.result.rows.used) == (1, 1)
    assert all(reading.rows == 1 for reading in out.result.readings)
