"""Held-out rows: the finalists on all of them, in a file of their own."""

from dataclasses import replace

import pytest

from remote_payload.failure import JobFailure
from tests.standalone.running import bits, run_job, unpack
from tests.support.tiny import Tiny, row_tensors, write_row, write_rows


def test_the_same_rows_held_out_are_hit_alike(tmp_path, made):
    out = run_job(tmp_path / "out", **made, heldout=made["rows"], states=(1, 2, 4, 5))
    assert out.heldout_hits == out.hits
    assert out.heldout_rows == out.rows
    full = [reading for reading in out.result.readings if reading.stage == "full"]
    assert [(r.name, r.rows, r.first_step_hits, r.states) for r in out.result.heldout_readings] == [
        (r.name, r.rows, r.first_step_hits, r.states) for r in sorted(full, key=lambda r: names(out).index(r.name))
    ]
    assert (out.result.rows.lint.also_in_train, out.result.heldout.lint.also_in_train) == (None, 3)
    assert [phase.name for phase in out.result.phases] == ["load", "look", "search", "measure", "heldout"]


def names(out):
    return [reading.name for reading in out.result.heldout_readings]


def test_final_states_may_be_normed_in_one_split_alone(tmp_path, made):
    rows = tmp_path / "unnormed"
    for number, tokens in enumerate((20, 17, 23)):
        row = row_tensors(Tiny(), tokens, tokens // 3, salt=number)
        row["hidden_state"] = 3 * Tiny().draw(1, tokens, 16, salt=2000 + number)  # what tiny's rows hold normed
        write_row(rows, number, row)
    out = run_job(tmp_path / "out", **made, heldout=rows)
    assert (out.result.rows.final_state, out.result.heldout.final_state) == ("post_norm", "pre_norm")
    assert out.heldout_hits == out.hits


def test_other_states_are_taken_by_place_and_told(tmp_path, made):
    rows = write_rows(tmp_path / "more", Tiny(captured=5), lengths=(20, 17))
    out = run_job(tmp_path / "out", **made, heldout=rows, states=(1, 2, 4, 5))
    assert any("hold 5 captured states, the train rows 4" in warning for warning in out.result.warnings)
    assert out.result.heldout.states is None
    assert {reading.states for reading in out.result.heldout_readings} == {None}
    assert {reading.rows for reading in out.result.heldout_readings} == {2}


def test_too_few_states_are_refused(tmp_path, made):
    few = write_rows(tmp_path / "few", Tiny(captured=2), lengths=(20, 17))
    with pytest.raises(JobFailure, match="fc joins 3 states, the rows hold only: 2"):
        run_job(tmp_path / "out", **made, heldout=few)
    assert list((tmp_path / "out").iterdir()) == []


def test_a_missing_state_is_refused(tmp_path, made):
    """Three states are enough for fc, but some finalist takes the fourth."""
    few = write_rows(tmp_path / "few", Tiny(captured=3), lengths=(20, 17))
    with pytest.raises(JobFailure, match=r"take captured state 3 .* the held-out rows hold only: 3") as caught:
        run_job(tmp_path / "out", **made, heldout=few)
    assert caught.value.failure.kind == "rows"


def test_another_width_is_refused(tmp_path, made):
    other = write_rows(tmp_path / "wide", Tiny(target_hidden=24), lengths=(20, 17))
    with pytest.raises(JobFailure, match="none of the 2 rows can be used"):
        run_job(tmp_path / "out", **made, heldout=other)


def test_hits_within_the_vocabulary(tmp_path, made):
    """What speculators judges by: the best one of the drafter's own tokens, not of all."""
    out = run_job(tmp_path / "out", **made, sweep="wiring")
    for record in out.records:
        assert record.hits_in_vocab is not None
        sayable = bits(out.rows[record.row].teacher_in_draft_vocab, out.rows[record.row].tokens)
        plain, within = out.hits[record.reading, record.row], unpack(replace(record, hits=record.hits_in_vocab))
        for j, hits in plain.items():
            for step in range(out.result.steps):
                if j + 1 + step < len(sayable) and sayable[j + 1 + step]:
                    assert hits >> step & 1 == within[j] >> step & 1
                else:
                    assert not hits >> step & 1


def test_a_folder_that_is_not_there_is_named_by_its_own_key(tmp_path, made):
    with pytest.raises(JobFailure) as refused:
        run_job(tmp_path / "out", **made, heldout=tmp_path / "nowhere")
    assert refused.value.failure.hint == "`heldout` must name a folder on the server that runs the job"
