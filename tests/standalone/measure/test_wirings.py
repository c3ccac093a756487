"""Which wirings are tried where there are too many to try all."""

from remote_payload.standalone.measure.wirings import beside, replaced


def test_neighbours_move_every_slot_by_at_most_one():
    assert beside((1,), 3) == [(1,), (0,), (2,)]
    around = beside((1, 31, 59), 61)
    assert around[0] == (1, 31, 59)
    assert len(around) == 27
    assert {(0, 30, 58), (2, 32, 60), (0, 31, 60)} <= set(around)
    assert all(max(abs(a - b) for a, b in zip(other, (1, 31, 59), strict=True)) <= 1 for other in around)


def test_neighbours_stay_within_what_was_captured_and_use_no_state_twice():
    assert beside((0, 1), 3) == [(0, 1), (0, 2), (1, 0), (1, 2)]
    assert beside((0, 4), 5) == [(0, 4), (0, 3), (1, 4), (1, 3)]


def test_many_slots_are_moved_together():
    assert beside((1, 2, 3, 4, 5), 7) == [(1, 2, 3, 4, 5), (0, 1, 2, 3, 4), (2, 3, 4, 5, 6)]


def test_a_slot_is_tried_with_every_other_state():
    assert replaced((0, 2), 1, 4) == [(0, 1), (0, 2), (0, 3)]
