"""Shares that another laptop made are taken in by name; two of one name are told, and not taken for one."""

import pytest

from orchestrator.errors import ClaimedError
from orchestrator.records.group import GroupShare
from orchestrator.sweep_groups.finding import merged


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


def test_a_share_that_another_laptop_made_is_taken_in_and_what_is_known_of_one_holds() -> None:
    known = (share(1, "a", is_dead=True), share(2, "b"))
    told = [share(4, "c"), share(1, "a"), share(2, "b", "u@other-address ~/x")]
    assert merged(known, told) == (*known, share(4, "c"))
    assert merged(known, []) == known


def test_two_shares_of_one_name_are_refused() -> None:
    with pytest.raises(ClaimedError, match=r"two laptops made a share `n.h4` of this sweep, on a and on c"):
        merged((share(1, "a"), share(4, "a")), [share(4, "c")])
