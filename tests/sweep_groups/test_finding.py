"""Shares that another laptop made are taken in by name; two of one name are told, and not taken for one."""

import dataclasses

import pytest

from orchestrator.errors import ClaimedError
from orchestrator.records.group import GroupShare
from orchestrator.sweep_groups.finding import Heard, gathered, merged


def share(number: int, host: str, destination: str = "", *, is_dead: bool = False) -> GroupShare:
    return GroupShare(
        share_id=f"n.h{number}",
        number=number,
        host=host,
        destination=destination or f"u@{host} ~/x",
        host_class="x",
        job_json="{}",
        is_launched=True,
        is_dead=is_dead,
    )


def at(place: str | None, one: GroupShare, *, is_hearsay: bool = False) -> GroupShare:
    return dataclasses.replace(one, place=place, is_hearsay=is_hearsay)


def test_a_share_that_another_laptop_made_is_taken_in_and_what_is_known_of_one_holds() -> None:
    known = (share(1, "a", is_dead=True), share(2, "b"))
    told = [share(4, "c"), share(1, "a"), share(2, "b", "u@other-address ~/x")]
    assert merged(known, told) == (*known, share(4, "c"))
    assert merged(known, []) == known


def test_two_shares_of_one_name_are_refused() -> None:
    with pytest.raises(ClaimedError, match=r"two machines have a share `n.h4` of this sweep: a \(u@a\) and c \(u@c\)"):
        merged((share(1, "a"), share(4, "a")), [share(4, "c")])


def test_one_name_of_two_machines_is_told_and_two_names_of_one_are_not() -> None:
    known = (at("p1", share(4, "a")),)
    with pytest.raises(ClaimedError, match=r"two machines have a share `n.h4`"):
        merged(known, [at("p2", share(4, "a"))])
    assert merged(known, [at("p1", share(4, "c"))]) == known
    assert merged((share(4, "a"),), [at("p1", share(4, "a"))]) == known  # its place is learnt
    both = {
        name: Heard(own=(at(place, share(1, name)),), others=(), place=place)
        for name, place in (("a", "p1"), ("b", "p2"))
    }
    with pytest.raises(ClaimedError, match="two machines"):  # on a laptop that knows nothing yet
        gathered((), both)


def test_what_hosts_were_told_of_counts_until_its_own_host_says_more() -> None:
    told = at("p2", share(2, "gpu-b"), is_hearsay=True)
    elsewhere = at("p9", share(3, "c"), is_hearsay=True)
    a = Heard(own=(at("p1", share(1, "a")),), others=(told, elsewhere), place="p1")
    known = gathered((), {"a": a})
    assert known == (*a.own, told, elsewhere)
    silent_b = Heard(own=(), others=(), place="p2")  # it has no run of that name, whatever it is called here
    assert [one.host for one in gathered((), {"a": a, "b": silent_b})] == ["a", "b", "c"]
    own = at("p2", share(2, "b"))
    found = gathered(known, {"a": a, "b": Heard(own=(own,), others=(), place="p2")})
    assert found == (*a.own, own, elsewhere)
    dead = tuple(dataclasses.replace(one, is_dead=True) for one in known)
    assert [one.is_dead for one in gathered(dead, {"b": Heard(own=(own,), others=(), place="p2")})] == [True] * 3
