"""Every share of a group on one host ended; what never began there has nothing to end."""

from orchestrator import pipeline
from orchestrator.errors import NotFoundError
from orchestrator.records.group import SweepGroup
from orchestrator.remote.session import HostSession
from orchestrator.store import Store
from orchestrator.sweep_groups.telling import elsewhere, tell
from remote_payload.schema import CancelAnswer


def cancel_on(session: HostSession, group: SweepGroup, grace_s: float, store: Store) -> list[CancelAnswer]:
    """The answers. Raises HostNotReadyError where the host is not the one that a share was launched on."""
    found = []
    for share in group.shares:
        if share.host != session.name:
            continue
        try:
            found.append(pipeline.cancel(session, share.share_id, grace_s, store))
        except NotFoundError:
            error = elsewhere(share, tell(session, group.group_id, known=[one.share_id for one in group.shares]))
            if error is not None:
                raise error from None
    return found
