"""How a sweep over several hosts ended, for those who are told: only a laptop that asks them all can see it."""

from collections.abc import Sequence

from orchestrator.records.group import SweepGroup
from orchestrator.sweep.group import counts
from orchestrator.sweep_groups.members import Member
from remote_payload.schema.ending import Ending


def ending_of_group(group: SweepGroup, members: Sequence[Member]) -> Ending | None:
    """Of all its points, wherever they were measured; None while more may come of a share, or one was not found."""
    if group.missing or any(member.part.may_measure for member in members):
        return None
    found = counts([member.part for member in members])
    asked = [member.asked for member in members if member.asked is not None]
    started = [one.state.started_unix_s for one in asked if one.state.started_unix_s is not None]
    finished = [one.state.finished_unix_s for one in asked if one.state.finished_unix_s is not None]
    hosts = ", ".join(group.hosts)
    return Ending(
        run_id=group.group_id,
        job_kind="sweep",
        phase="over",
        host=hosts,
        told_by="laptop",
        text=f"sweep {group.group_id} on {hosts}: over, {found['measured']} of {found.total()} points measured",
        started_unix_s=min(started, default=None),
        finished_unix_s=max(finished, default=None),
        launched_by=asked[0].record.spec.launched_by if asked else "unknown",
        points=found.total(),
        points_measured=found["measured"],
    )
