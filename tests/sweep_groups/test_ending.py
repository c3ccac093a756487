"""A sweep over several hosts ends once nothing more comes of any share; that is told once, and after a resume again."""

import dataclasses
import json
from pathlib import Path

from orchestrator.config import NotifyConfig
from orchestrator.notifying import tell
from orchestrator.records.group import GroupShare, SweepGroup
from orchestrator.store import Store
from orchestrator.store.groups import forget_group, group_ids, keep_group, told_folder
from orchestrator.sweep.group import Part
from orchestrator.sweep.standing import progress_of
from orchestrator.sweep_groups.ending import ending_of_group
from orchestrator.sweep_groups.members import Member
from orchestrator.sweeping.asking import Asked
from remote_payload.schema import RunState, SelftestJob, SweepJob, SweepPoint, SweepUnit, to_json
from tests.support.made_runs import made_run
from tests.sweeping.test_asking import attempt


def member(number: int, host: str, *, is_over: bool = True, is_measured: bool = True) -> Member:
    point = f"p{number}"
    unit = SweepUnit(unit_id="u0", block=0, changes_json="{}", points=(point,))
    points = (SweepPoint(point_id=point, changes_json=json.dumps({"result_bytes": number})),)
    job = SweepJob(base_json=to_json(SelftestJob()), units=(unit,), points=points)
    phase = "succeeded" if is_over else "running"
    share_id = f"gg.h{number}"
    attempts = (attempt(f"{share_id}.u0.1", point=point),) if is_measured else ()
    part = Part(
        share_id=share_id,
        number=number,
        host=host,
        host_class="x",
        job=job,
        progress=progress_of(job, attempts, phase),
    )
    share = GroupShare(
        share_id=share_id, number=number, host=host, destination=host, host_class="x", job_json=to_json(job)
    )
    state = RunState(
        run_id=share_id, sequence=1, phase="succeeded", started_unix_s=10.0 - number, finished_unix_s=100.0 + number
    )
    return Member(
        share=share, part=part, asked=Asked(record=made_run(share_id), job=job, attempts=attempts, state=state)
    )


def group_of(*members: Member) -> SweepGroup:
    return SweepGroup(group_id="gg", created_unix_s=0.0, shares=tuple(one.share for one in members))


def test_the_end_is_that_of_the_last_share_and_counts_all_points() -> None:
    two = (member(1, "a"), member(2, "b", is_measured=False))
    found = ending_of_group(group_of(*two), two)
    assert found is not None
    assert found.text == "sweep gg on a, b: over, 1 of 2 points measured"
    assert (found.phase, found.points, found.points_measured) == ("over", 2, 1)
    assert (found.started_unix_s, found.finished_unix_s, found.told_by) == (8.0, 102.0, "laptop")
    still = (two[0], member(2, "b", is_over=False, is_measured=False))
    assert ending_of_group(group_of(*still), still) is None
    lacking = dataclasses.replace(group_of(*two), missing=("share 3 of 3: none of the hosts asked has it",))
    assert ending_of_group(lacking, two) is None


def test_it_is_told_once_and_once_more_after_it_was_gone_on_with(tmp_path: Path) -> None:
    store, lines = Store(tmp_path / "store"), tmp_path / "told"
    program = tmp_path / "tell"
    program.write_text(f"#!/bin/sh\ncat >> {lines}\n")
    program.chmod(0o755)
    config = NotifyConfig(command=(str(program),))
    first = (member(1, "a"), member(2, "b", is_measured=False))
    for members in (first, first, (*first, member(3, "a"))):
        group = group_of(*members)
        keep_group(store.home, group)
        ending = ending_of_group(group, members)
        assert ending is not None
        assert tell(ending, told_folder(store.home, group), store, config) == ()
    told = [json.loads(line) for line in lines.read_text().splitlines()]
    assert [(one["run_id"], one["points"], one["points_measured"]) for one in told] == [("gg", 2, 1), ("gg", 3, 2)]
    assert group_ids(store.home) == ("gg",)
    forget_group(store.home, "gg")
    assert not list((store.home / "groups").iterdir())
