"""Sessions on the hosts that share a sweep: those that the user names, or those that the group is known to have."""

import functools
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from orchestrator.cli.options import open_store, tell_what_matters
from orchestrator.errors import Eagle3Error, NotFoundError, UsageError

if TYPE_CHECKING:
    from orchestrator.cli.live import Tell
    from orchestrator.config import Config
    from orchestrator.pipeline import HostSession
    from orchestrator.records.group import SweepGroup
    from orchestrator.several_hosts import Several


def named(host_name: str) -> tuple[str, ...]:
    """`a,b,c` -> the names. Raises UsageError where one is empty or stands twice."""
    names = tuple(name.strip() for name in host_name.split(","))
    if not all(names) or len(set(names)) < len(names):
        raise UsageError(f"--host: expected names with commas between them, none empty or twice, found: {host_name!r}")
    return names


def mix_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Whether hosts that cannot be held against each other may share a sweep all the same."""
    classes = "Of several hosts, although they, or what is installed, are not alike: with a table for each kind."
    models = "Of several hosts, although a path holds another model on each: with a table for each."
    for name, words in (("--mix-models", models), ("--mix-classes", classes)):
        command = click.option(name, is_flag=True, help=words)(command)
    return command


@contextmanager
def opened(names: Sequence[str], settings: "Config", tell: "Tell", *, accept_new: bool) -> "Iterator[Several]":
    """Sessions on these hosts, for as long as the block lasts."""
    from orchestrator.several_hosts import several

    lock = threading.Lock()
    with several(sessions(names, settings, tell, lock, accept_new=accept_new), lock) as hosts:
        yield hosts


def sessions(
    names: Sequence[str], settings: "Config", tell: "Tell", lock: threading.Lock, *, accept_new: bool
) -> "list[HostSession]":
    """One on each of these hosts."""
    from orchestrator import pipeline
    from orchestrator.several_hosts import told_by

    return [pipeline.session(name, settings, told_by(name, tell, lock), accept_new=accept_new) for name in names]


def dialled(group: "SweepGroup", settings: "Config") -> tuple[str, ...]:
    """The hosts of a group that this laptop may dial: a name that was only heard of must be one of its eagle3.toml."""
    names = (one.host for one in group.shares if not one.is_hearsay or one.host in settings.hosts)
    return tuple(dict.fromkeys(names))


@contextmanager
def grouped(
    run_id: str, host_name: str | None, tell: "Tell", *, accept_new: bool
) -> "Iterator[tuple[SweepGroup, Several, dict[str, Eagle3Error]]]":
    """The group with the shares that other laptops made since, sessions on its hosts or on those named, and errors.

    These are of hosts that could not tell of a group that was not known here.
    """
    from orchestrator import config
    from orchestrator.store.groups import load_group
    from orchestrator.sweep_groups.finding import found_on, newest

    store, settings = open_store(), config.load(config.here())
    asked = () if host_name is None else named(host_name)
    known = None if len(asked) > 1 else load_group(store.home, run_id)
    if known is not None and not {*asked} <= {*known.hosts}:
        known = None  # another laptop may have given that host a share since
    names = asked or (() if known is None else dialled(known, settings))
    with opened(names, settings, tell, accept_new=accept_new) as hosts:
        group, errors = found_on(run_id, hosts, store) if known is None else (newest(known, hosts, store), {})
        if len(asked) == 1 and asked[0] not in group.hosts and not errors:
            raise UsageError(f"--host: no share of sweep `{run_id}` is on: {asked[0]}")
        yield group, hosts, errors


def or_of_several(command: Callable[..., None]) -> Callable[..., None]:
    """The command of a sweep; one that its single `--host` does not know may be a share's, and is asked about then.

    So another laptop learns of a sweep over several hosts by naming any of them.
    """

    @functools.wraps(command)
    def with_shares(**asked: Any) -> None:
        try:
            command(**asked)
        except NotFoundError:
            if not _is_learnt(asked["run_id"], asked["host_name"], accept_new=asked["accept_new"]):
                raise
            command(**asked)

    return with_shares


def _is_learnt(run_id: str, host_name: str | None, *, accept_new: bool) -> bool:
    """Whether a host that did not know of it has a share of a sweep of that name; it is known here from then on."""
    from orchestrator import config
    from orchestrator.store.groups import is_group
    from orchestrator.sweep_groups.finding import found_on

    if host_name is None or "," in host_name or is_group(open_store().home, run_id):
        return False
    with opened((host_name,), config.load(config.here()), tell_what_matters, accept_new=accept_new) as hosts:
        try:
            found_on(run_id, hosts, open_store())
        except NotFoundError:
            return False
    return True
