"""A sweep over several hosts followed to its end and brought home: each host asked now and then over one connection."""

import time
from collections.abc import Sequence

from orchestrator.following import Tell
from orchestrator.records.group import SweepGroup
from orchestrator.remote.session import HostSession
from orchestrator.report.sweep_text import counts_text
from orchestrator.several_hosts import Several, told_by
from orchestrator.store import Store
from orchestrator.sweep_groups.members import Member, ask
from orchestrator.sweeping.collecting import collect
from orchestrator.updates import Note, Reconnecting, Update

FIRST_S, EVERY_S = 1.0, 5.0
"""Between two questions to a host that answers, first and later; one that does not is asked ever less often."""
SELDOM_S = 60.0


def until_over(group: SweepGroup, hosts: Several, store: Store, tell: Tell, every_s: float = EVERY_S) -> None:
    """Ask until no share that answers measures any more, and the others did not answer for their `reconnect_s`.

    A host that this command never reached is not waited for.
    """
    watch = _Watch(hosts, every_s)
    while True:
        due = watch.due()
        for member in ask(group, hosts, store, due):
            if member.share.host in due:
                watch.take(member, tell)
        if not watch.is_hopeful():
            return
        time.sleep(watch.wait_s())


class _Watch:
    """Every share as it was told last, and when its host is asked again."""

    def __init__(self, hosts: Several, every_s: float) -> None:
        self._hosts, self._every_s = hosts, every_s
        self._members: dict[str, Member] = {}
        self._next_s = dict.fromkeys(hosts.names, 0.0)
        self._tries: dict[str, int] = {}
        self._rounds = 0
        self._silent_since_s: dict[str, float] = {}

    def due(self) -> tuple[str, ...]:
        """The hosts to ask now; each is put off for as long as suits it."""
        now_s = time.monotonic()
        found = tuple(name for name, next_s in self._next_s.items() if next_s <= now_s)
        for name in found:
            usual_s = min(self._every_s, FIRST_S * 1.5**self._rounds)
            self._next_s[name] = now_s + min(usual_s * 1.5 ** self._tries.get(name, 0), SELDOM_S)
        self._rounds += 1
        return found

    def take(self, member: Member, tell: Tell) -> None:
        """What a share is now; says what is new."""
        part, before = member.part, self._members.get(member.part.share_id)
        self._members[part.share_id] = member
        if part.problem is None:
            self._silent_since_s.pop(part.host, None)
            self._tries.pop(part.host, None)
        else:
            self._silent_since_s.setdefault(part.host, time.monotonic())
            self._tries[part.host] = self._tries.get(part.host, 0) + 1
        if before is None or _words(before) != _words(member):
            tell(Note(name=part.share_id, text=f"{part.host}: {_words(member)}"))

    def is_hopeful(self) -> bool:
        """Whether anything more is to be heard."""
        return any(self._is_waited_for(member) for member in self._members.values() if member.part.may_measure)

    def _is_waited_for(self, member: Member) -> bool:
        since_s = self._silent_since_s.get(member.part.host)
        session = self._hosts.session(member.part.host)
        if since_s is None:
            return True
        return session.has_connected and time.monotonic() - since_s <= session.host.reconnect_s

    def wait_s(self) -> float:
        """Until the next host is due."""
        return max(0.1, min(self._next_s.values()) - time.monotonic())


def _words(member: Member) -> str:
    part = member.part
    return part.problem or f"{part.progress.phase}; {counts_text(part.progress)}"


def bring_home(
    group: SweepGroup, members: Sequence[Member], hosts: Several, store: Store, tell: Tell
) -> dict[str, list[str]]:
    """Everything that has ended on the hosts that answered; by host what could not be brought, a sentence each."""

    def work(session: HostSession) -> list[str]:
        problems: list[str] = []
        for member in members:
            if member.share.host == session.name and member.asked is not None and member.part.problem is None:
                quiet = _of_many(told_by(session.name, tell, hosts.lock))
                problems += collect(member.asked, session, store, quiet, tags=(group.group_id,))
        return problems

    names = {member.share.host for member in members if member.part.problem is None and member.asked is not None}
    answers = hosts.each(work, [name for name in hosts.names if name in names])
    told = {name: some for name, some in answers.found.items() if some}
    return told | {name: [error.message] for name, error in answers.errors.items()}


def _of_many(tell: Tell) -> Tell:
    """Of what many runs tell only how many came, and that the link broke."""

    def quiet(update: Update) -> None:
        if isinstance(update, Reconnecting) or (isinstance(update, Note) and " runs" in update.text):
            tell(update)

    return quiet
