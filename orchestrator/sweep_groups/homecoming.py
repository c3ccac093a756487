"""A sweep over several hosts followed to its end and brought home: each host asked now and then over one connection."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from orchestrator.following import Tell
from orchestrator.records.group import SweepGroup
from orchestrator.remote.session import HostSession
from orchestrator.report.sweep_text import counts_text
from orchestrator.several_hosts import Several, told_by
from orchestrator.store import Store
from orchestrator.sweep_collecting import collect
from orchestrator.sweep_groups.members import Member, ask
from orchestrator.updates import Note, Reconnecting, Update

EVERY_S = 5.0
"""Between two questions to a host that answers; one that does not is asked less and less often."""
SELDOM_S = 60.0


def until_over(group: SweepGroup, hosts: Several, store: Store, tell: Tell, every_s: float = EVERY_S) -> None:
    """Ask until no share that answers measures any more, and the others did not answer for their `reconnect_s`.

    A host that this command never reached is not waited for.
    """
    watch = _Watch(hosts)
    while True:
        members = [member for member in ask(group, hosts, store) if member.share.host in hosts.names]
        for member in members:
            watch.tell(member, tell)
        if not watch.is_hopeful(members):
            return
        time.sleep(watch.wait_s(every_s))


@dataclass
class _Watch:
    """What was told last of each share, and since when its host does not answer."""

    hosts: Several
    said: dict[str, str] = field(default_factory=dict)
    silent_since_s: dict[str, float] = field(default_factory=dict)
    tries: int = 0

    def tell(self, member: Member, tell: Tell) -> None:
        """Say what is new."""
        part = member.part
        if part.problem is None:
            self.silent_since_s.pop(part.host, None)
        elif part.host not in self.silent_since_s:
            self.silent_since_s[part.host] = time.monotonic()
        words = f"{part.progress.phase}; {counts_text(part.progress)}" if part.problem is None else part.problem
        if self.said.get(part.share_id) != words:
            self.said[part.share_id] = words
            tell(Note(name=part.share_id, text=f"{part.host}: {words}"))

    def is_hopeful(self, members: Sequence[Member]) -> bool:
        """Whether anything more is to be heard."""
        open_ = [member.part for member in members if member.part.may_measure]
        now_s = time.monotonic()
        waited = (
            part.problem is None
            or (
                (session := self.hosts.session(part.host)).has_connected
                and now_s - self.silent_since_s[part.host] <= session.host.reconnect_s
            )
            for part in open_
        )
        return any(waited)

    def wait_s(self, every_s: float) -> float:
        """Longer each time while some host does not answer: a dial each would be too much."""
        self.tries = self.tries + 1 if self.silent_since_s else 0
        return float(min(every_s * 1.5**self.tries, max(every_s, SELDOM_S)))


def bring_home(
    group: SweepGroup, members: Sequence[Member], hosts: Several, store: Store, tell: Tell
) -> tuple[str, ...]:
    """Everything that has ended on the hosts that answered; returns what could not be brought, a sentence each."""

    def work(session: HostSession) -> list[str]:
        problems: list[str] = []
        for member in members:
            if member.share.host == session.name and member.asked is not None and member.part.problem is None:
                quiet = _of_many(told_by(session.name, tell, hosts.lock))
                problems += collect(member.asked, session, store, quiet, tags=(group.group_id,))
        return problems

    names = {member.share.host for member in members if member.part.problem is None and member.asked is not None}
    answers = hosts.each(work, [name for name in hosts.names if name in names])
    told = [f"{name}: {words}" for name, some in answers.found.items() for words in some]
    return (*told, *(f"{name}: {error.message}" for name, error in answers.errors.items()))


def _of_many(tell: Tell) -> Tell:
    """Of what many runs tell only how many came, and that the link broke."""

    def quiet(update: Update) -> None:
        if isinstance(update, Reconnecting) or (isinstance(update, Note) and " runs" in update.text):
            tell(update)

    return quiet
