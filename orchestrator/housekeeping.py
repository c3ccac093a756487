"""`gc` from the laptop: what it has at home, told to the host, which says what may go and takes it away."""

from dataclasses import dataclass

from orchestrator.errors import Eagle3Error, ProtocolError
from orchestrator.following import ANSWER_S
from orchestrator.remote.session import HostSession
from orchestrator.remote.verbs import new_nonce
from orchestrator.store import RunSummary, Store
from orchestrator.store.groups import group_ids, load_group
from orchestrator.store.things import not_collected
from remote_payload.schema import TERMINAL_PHASES
from remote_payload.schema.frames import GcFrame
from remote_payload.schema.housekeeping import GcItem, GcRequest, GcRules, GcTotals, HomeGroup, HomeRun


@dataclass(frozen=True, kw_only=True)
class Garbage:
    """What the host said of everything under its root, and what became of it."""

    items: tuple[GcItem, ...]
    totals: GcTotals
    applied: bool

    @property
    def failed(self) -> tuple[GcItem, ...]:
        """What was to go and is not gone, all of it."""
        return tuple(item for item in self.items if self.applied and item.goes and not item.removed)


def collect_garbage(session: HostSession, store: Store, rules: GcRules, *, apply: bool) -> Garbage:
    """Ask the host what may go by these rules; with `apply` it goes. Raises HostError, ProtocolError."""
    request = GcRequest(
        nonce=new_nonce(),
        root=session.host.root,
        rules=rules,
        home=at_home(session, store),
        groups=groups_at_home(store),
        apply=apply,
    )
    items: list[GcItem] = []
    totals = None
    for frame in session.frames("gc", request, ANSWER_S):
        if isinstance(frame, GcFrame):
            items += frame.items
            totals = frame.totals or totals
    if totals is None:
        raise ProtocolError("the host ended its answer to `gc` without its totals")
    if any(item.removed and not (apply and item.goes) for item in items):
        raise ProtocolError("the host says that it removed what it was not asked to")
    return Garbage(items=tuple(items), totals=totals, applied=apply)


def at_home(session: HostSession, store: Store) -> tuple[HomeRun, ...]:
    """Runs of this host, by whatever name it was reached, that are over and here; one that cannot be read is not."""
    return tuple(
        HomeRun(
            run_id=run.run_id,
            created_unix_s=run.created_unix_s,
            whole=store.run_dir(run.run_id).manifest.is_file(),
        )
        for run in store.list()
        if run.phase in TERMINAL_PHASES and run.created_unix_s is not None and _is_of(run, session, store)
    )


def groups_at_home(store: Store) -> tuple[HomeGroup, ...]:
    """The sweeps over several hosts that this laptop knows, whatever their hosts; one that cannot be read goes on."""
    found = []
    for group_id in group_ids(store.home):
        try:
            group = load_group(store.home, group_id)
            is_over = not group.missing and not_collected(group, store) is None
        except Eagle3Error:
            is_over = False
        found.append(HomeGroup(group_id=group_id, is_over=is_over))
    return tuple(found)


def _is_of(run: RunSummary, session: HostSession, store: Store) -> bool:
    """Whether it was launched under this root of this host. Its moment of creation is compared by the host itself."""
    if run.host == session.name:
        return True
    try:
        host = store.load_exact(run.run_id).host
    except Eagle3Error:
        return False
    return (host.destination, host.root) == (session.destination, session.host.root)
