"""The staged search names what is wrong with a drafter, one fault or two, and leaves a sound one as it is."""

import gzip
from functools import partial

import pytest
import torch

from tests.standalone.running import DATA, run_job
from tests.support import broken_checkpoints as checkpoint
from tests.support.broken_scene import make_scene

STD, EMBED = "slots 1,2,3 offset +1", "slots 0,1,2 offset +1"


def best(result) -> str:
    full = [reading for reading in result.readings if reading.stage == "full"]
    return max(full, key=lambda reading: (reading.leading_hits, reading.first_step_hits)).name


def swept(tmp_path, drafter, *faults, **settings):
    scene = make_scene(tmp_path / "scene", drafter)
    for fault in faults:
        fault(scene)
    return run_job(tmp_path / "out", **(scene.settings | {"capture_rows": 0} | settings)).result


@pytest.mark.parametrize(
    ("drafter", "faults", "found"),
    [
        ("drafter_embed", (), EMBED),
        ("drafter_std", (partial(checkpoint.adapted, "normed_feedback"),), f"{STD} feedback=normed"),
        ("drafter_std", (checkpoint.norm_before_fc, checkpoint.other_theta), f"{STD} input_norm=none rope=theta 10000"),
        ("drafter_std", (checkpoint.swapped_fc, checkpoint.norm_before_residual), "slots 3,1,2 offset +1 residual=raw"),
    ],
    ids=["sound", "feedback", "norm and rope", "order and residual"],
)
def test_the_reading_that_fits_is_found(tmp_path, drafter, faults, found):
    result = swept(tmp_path, drafter, *faults)
    assert best(result) == found
    told = {reading.name: reading for reading in result.readings}
    full = [reading.name for reading in result.readings if reading.stage == "full"]
    assert len(full) <= 8
    # Whatever separates the best from what is declared has its own pair on all rows.
    changes = told[found].changes
    for change in changes if len(changes) > 1 else ():
        others = [other for other in changes if other != change]
        assert " ".join([found.split(" offset")[0], "offset +1", *others]) in full
    if found in (STD, EMBED):
        assert not any(told[name].changes for name in full)


def test_changes_are_held_against_their_base_on_the_same_positions(tmp_path):
    result = swept(tmp_path, "drafter_std")
    factors = [reading for reading in result.readings if reading.stage == "factor"]
    assert {change.split("=")[0] for reading in factors for change in reading.changes} == {
        "feedback", "final_norm", "residual", "rope", "states", "vocabulary",
    }  # fmt: skip
    for reading in factors:
        assert reading.paired_with == " ".join(reading.name.split()[:4])
        assert reading.positions == 72 * reading.rows
        assert reading.paired_leading_hits >= reading.paired_first_step_hits > 0
        assert reading.paired_error >= 0
    skipped = {item.name: item.reason for item in result.skipped_readings}
    assert "cannot change anything" in skipped["position_start=1"]
    assert skipped["rope=theta 10000"] == "it is the checkpoint's own"
    assert skipped["vocabulary=absolute"] == "d2t read so leads to 219 different tokens of 640: no vocabulary"
    controls = {r.changes: r.leading_hits / r.paired_leading_hits for r in factors if "states" in r.changes[0]}
    assert set(controls) == {(f"states={kind}",) for kind in ("shuffled", "zeroed", "earlier", "later")}
    assert max(controls.values()) < 0.6


def test_wirings_alone(tmp_path):
    result = swept(tmp_path, "drafter_std", checkpoint.norm_before_residual, sweep="wiring")
    full = [reading for reading in result.readings if reading.stage == "full"]
    assert {reading.stage for reading in result.readings} == {"screen", "search", "full"}
    assert {reading.changes for reading in full} == {(), ("residual=raw",)}  # the latter is what SGLang computes


def test_one_step_feeds_nothing_back(tmp_path):
    result = swept(tmp_path, "drafter_std", steps=1, max_rows=3)
    assert "one step" in {item.name: item.reason for item in result.skipped_readings}["feedback=normed"]


def test_the_right_states_are_found_among_many(tmp_path):
    """Sixteen states: the true four far apart, between them what lies between; 3,360 ordered choices, few tried."""
    places = (0, 5, 10, 15)

    def among_many(_, row):
        true = row["aux_hidden_state"].float().view(-1, 4, 128)
        mixed = [
            torch.lerp(true[:, low], true[:, low + 1], (at - places[low]) / 5)
            for at in range(16)
            for low in [min(at // 5, 2)]
        ]
        row["aux_hidden_state"] = torch.stack(mixed, dim=1).flatten(1)[None]

    scene = make_scene(tmp_path / "scene", "drafter_std")
    scene.edit_rows(among_many)
    settings = scene.settings | {"capture_rows": 0, "states": None, "search_rows": 2, "sweep": "wiring"}
    result = run_job(tmp_path / "out", **settings).result
    slots = max((r for r in result.readings if r.stage == "full"), key=lambda r: r.leading_hits).slots
    assert max(abs(slot - true) for slot, true in zip(slots, (5, 10, 15), strict=True)) <= 1  # neighbours are alike
    assert len({reading.slots for reading in result.readings}) < 400
    (skipped,) = result.skipped_readings
    assert skipped.name.endswith("of 3,360 ordered choices of captured states")


def test_a_closer_look_at_the_best_reading(tmp_path):
    result = swept(tmp_path, "drafter_std", search_rows=4)
    fed, name = result.self_fed, best(result)
    assert (fed.reading, fed.rows, fed.positions) == (name, 4, (4 * 72, 4 * 71, 4 * 70, 4 * 69))
    assert fed.self_fed_hits[0] == fed.teacher_fed_hits[0] == fed.fresh_hits[0]
    for step in range(1, 4):
        # Its own tokens are worse company than the row's, and a chain is worse than a fresh start.
        assert fed.self_fed_hits[step] < fed.teacher_fed_hits[step]
    zones = {zone.place: zone for zone in result.zones}
    assert {zone.positions for zone in result.zones if zone.place == "first_token"} == {4}
    assert zones["inside"].positions == 4 * 71
    assert zones["before_response"].positions == 4 * 4
    assert sum(zone.positions for zone in result.zones) == sum(
        tokens_of(row) - 2 for row in sorted((DATA / "rows").rglob("*.ckpt.gz"))[:4]
    )


def tokens_of(path) -> int:

    with gzip.open(path) as file:
        return len(torch.load(file, weights_only=True)["input_ids"])
