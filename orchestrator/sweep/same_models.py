"""Whether hosts have the same models and data under the paths of a sweep, by the content of the files. Pure."""

from collections.abc import Mapping, Sequence

from remote_payload.schema import PathIdentity
from remote_payload.schema.sweep import PathContent

SHOWN_FILES = 3
Found = Mapping[str, Sequence[PathIdentity]]
"""By host: what lies, or lay, under its paths; a path more than once where it was looked at more than once."""


def others(found: Found) -> tuple[str, ...]:
    """What one host has another than the first of them, a sentence a path and host; of what is unknown nothing."""
    told: dict[str, None] = {}
    first: dict[str, tuple[str, PathContent]] = {}
    for host, identity in found.items():
        for one in identity:
            if one.content is None:
                continue
            where, content = first.setdefault(one.path, (host, one.content))
            if content.digest != one.content.digest:
                there = where if where != host else f"{host} before"
                files = _files((there, content), (host, one.content))
                told[f"{one.path} on {host} is another than on {there}{files}"] = None
    return tuple(told)


def unknown(found: Found) -> tuple[str, ...]:
    """Paths of which nobody can say whether they are the same on all of these hosts, a sentence each."""
    lacking: dict[str, dict[str, None]] = {}
    for host, identity in found.items():
        for one in identity:
            if one.content is None:
                lacking.setdefault(one.path, {})[host] = None
    if len(found) < 2:
        return ()
    return tuple(
        f"nobody can tell whether {path} is the same on these hosts: its content is unknown on {', '.join(hosts)}"
        for path, hosts in lacking.items()
    )


def alike(found: Found) -> tuple[tuple[str, ...], ...]:
    """The hosts, those together of which nothing says that they have others; in their order."""
    groups: list[list[str]] = []
    for host in found:
        fitting = (group for group in groups if all(not _differ(found[one], found[host]) for one in group))
        group = next(fitting, None)
        if group is None:
            groups.append([host])
        else:
            group.append(host)
    return tuple(tuple(group) for group in groups)


def _differ(some: Sequence[PathIdentity], more: Sequence[PathIdentity]) -> bool:
    there = _digests(more)
    return any(path in there and digests != there[path] for path, digests in _digests(some).items())


def _digests(some: Sequence[PathIdentity]) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for one in some:
        if one.content is not None:
            found.setdefault(one.path, set()).add(one.content.digest)
    return found


def _files(one: tuple[str, PathContent], another: tuple[str, PathContent]) -> str:
    """Which files are not the same, as far as they are told one by one; each content with its host's name."""
    some, more_of = ({file.name: file.digest for file in content.files} for _, content in (one, another))
    names = sorted(name for name in {*some, *more_of} if some.get(name) != more_of.get(name))
    if not names or "" in names or not some or not more_of:  # a single file has no name of its own
        return ""
    alone = {name: f" (on {one[0] if name in some else another[0]} alone)" for name in {*some} ^ {*more_of}}
    words = [f"{name}{alone.get(name, '')}" for name in names[:SHOWN_FILES]]
    more = f" and {len(names) - SHOWN_FILES} more" if len(names) > SHOWN_FILES else ""
    return f", by {', '.join(words)}{more}"
