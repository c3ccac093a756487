"""The pruned search keeps what is good, and says how far each reading was measured."""

from dataclasses import replace

import torch

from remote_payload.standalone.checkpoint.load import load_checkpoint
from remote_payload.standalone.graph import Reading
from remote_payload.standalone.measure.acceptance import Teacher, judge_row, measure
from remote_payload.standalone.measure.tally import Measurer, Tally, counted_hits
from remote_payload.standalone.measure.wirings import every
from remote_payload.standalone.model.drafter import Drafter
from remote_payload.standalone.rows.files import find_rows
from remote_payload.standalone.rows.row import RowReader
from tests.standalone.running import DATA, run_job
from tests.standalone.test_job import BUNDLE, RIGHT
from tests.standalone.test_served_truth import miswired
from tests.support.tiny import Tiny, write_rows


def stages(out):
    told = {}
    for reading in out.result.readings:
        told.setdefault(reading.stage, []).append(reading)
    return told


def test_the_screen_halves_until_few_are_left(tmp_path):
    settings = {"keep_readings": 5, "search_rows": 3, "sweep": "wiring", "token_offsets": (1,)}
    out = run_job(tmp_path / "out", **BUNDLE, draft=DATA / "drafter_embed", **settings)
    told = stages(out)
    # Screen: 24 on the first row, 12 on the second, 6 on the third, and five survive.
    assert sorted(reading.rows for reading in told["screen"]) == [1] * 12 + [2] * 6 + [3]
    # Search: five on the first row, then three, of which two are measured in full.
    assert sorted(reading.rows for reading in told["search"]) == [1, 1, 3]
    assert all(reading.rows == 10 for reading in told["full"])
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


def test_long_rows_are_screened_by_their_beginning_and_at_once(tmp_path, made):
    rows = write_rows(tmp_path / "long", Tiny(), lengths=(600, 600))
    out = run_job(
        tmp_path / "out", **(made | {"rows": rows}), steps=2, keep_readings=4, token_offsets=(1,), sweep="wiring"
    )
    told = stages(out)
    assert {(reading.rows, reading.positions) for reading in told["screen"]} == {(1, 256 + 2)}
    assert len(told["screen"]) == 24 - 4
    assert {(reading.rows, reading.positions) for reading in told["full"]} == {(2, 2 * 400)}


def test_a_wiring_that_is_neither_first_nor_declared_is_found(tmp_path):
    out = run_job(tmp_path / "out", **BUNDLE, draft=DATA / "drafter_std", keep_readings=2)
    assert out.full()[0] == "slots 1,2,3 offset +1"
    told = {reading.name: reading.stage for reading in out.result.readings}
    assert told["slots 0,1,2 offset +1"] == "screen"


def test_tallies_count_what_the_hits_say(made):
    checkpoint = load_checkpoint(made["draft"], made["target"])
    cpu = torch.device("cpu")
    measurer = Measurer(
        drafter=Drafter(checkpoint, cpu, torch.float32),
        teacher=Teacher(checkpoint.teacher_head, checkpoint.target_ids, cpu),
    )
    reader = RowReader(folder=find_rows(made["rows"], None, None), target_hidden_size=16, vocab_size=40, steps=4)
    readings = [Reading(slots=slots, token_offset=1) for slots in every(4, 3)]
    tallies = [Tally(reading=reading, stage="search") for reading in readings]
    first, leading, positions = [0] * 24, [0] * 24, 0
    for row in reader.rows():
        judged = judge_row(measurer.drafter, measurer.teacher, row, 4)
        # Random drafters hardly ever hit twice: let the answers be what reading 5 drafts, but for some second steps.
        drafted = checkpoint.target_ids[measurer.drafter.draft(judged.inputs, [readings[5]], 4)[0]]
        drafted[::3, 1] = -1
        judged = replace(judged, wanted=drafted)
        hits = measure(measurer.drafter, measurer.teacher, judged, readings, 4)
        for tally, own in zip(tallies, counted_hits(judged, hits), strict=True):
            tally.add(own, 0.0)
        for at, j in enumerate(judged.positions.tolist()):
            if j + 1 < len(row.tokens) and row.loss_mask[j + 1]:
                positions += 1
                for reading in range(24):
                    steps = hits[reading, at].tolist()
                    first[reading] += steps[0]
                    leading[reading] += [*steps, False].index(False)
    assert [tally.first_step_hits for tally in tallies] == first
    assert [tally.leading_hits for tally in tallies] == leading
    assert {tally.positions for tally in tallies} == {positions}
    assert first[5] == positions > leading[5] / 4 > max(leading[:5]) / 4
