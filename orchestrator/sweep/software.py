"""What is installed where the points of a sweep are measured, as hosts tell it, attempt by attempt as well. Pure."""

import json
from collections.abc import Mapping, Sequence

from remote_payload.schema import SweepAttempt, SweepJob

Installed = Mapping[str, Mapping[str, str]]
"""By host: versions by package; none where nobody can tell."""


def other_versions(found: Installed) -> tuple[str, ...]:
    """What one host has in another version than the first that tells, a sentence a package and host; not of `python`.

    A host that cannot tell is said nothing of.
    """
    told: list[str] = []
    known = {host: versions for host, versions in found.items() if versions}
    first, first_has = next(iter(known.items()), ("", {}))
    for host, versions in known.items():
        told += [
            f"{name} is {versions.get(name, 'not installed')} on {host}, and "
            f"{first_has.get(name, 'not installed')} on {first}"
            for name in sorted({*versions, *first_has} - {"python"})
            if versions.get(name) != first_has.get(name)
        ]
    return tuple(told)


def same_versions(found: Installed) -> tuple[tuple[str, ...], ...]:
    """The hosts, those together that have the same versions; one that cannot tell with the first; in their order."""
    groups: list[list[str]] = []
    for host, versions in found.items():
        fitting = (group for group in groups if not other_versions({group[0]: found[group[0]], host: versions}))
        group = next(fitting, None)
        if group is None:
            groups.append([host])
        elif versions and not found[group[0]]:
            group.insert(0, host)  # who tells speaks for those who cannot
        else:
            group.append(host)
    order = list(found)
    return tuple(tuple(sorted(group, key=order.index)) for group in groups)


def measured_with(job: SweepJob, attempts: Sequence[SweepAttempt]) -> tuple[dict[str, str], ...]:
    """What was installed where something was measured, each once; not of units that have a server of their own."""
    own = {unit.unit_id for unit in job.units if "server_python" in json.loads(unit.changes_json)}
    found: list[dict[str, str]] = []
    for one in attempts:
        is_measured = any(outcome.end == "measured" for outcome in one.points)
        if is_measured and one.installed and one.unit_id not in own and one.installed not in found:
            found.append(one.installed)
    return tuple(found)


def mixed(some: Sequence[Mapping[str, str]]) -> tuple[str, ...]:
    """What was installed in more than one version while the points of one sweep were measured, a sentence a package."""
    found = []
    for name in sorted({name for one in some for name in one}):
        versions = list(dict.fromkeys(one.get(name, "none") for one in some))
        if len(versions) > 1:
            found.append(f"{name} was replaced on the way: {', then '.join(versions)}")
    return tuple(found)


def installed_anew(then: Sequence[Mapping[str, str]], now: Mapping[str, str]) -> tuple[str, ...]:
    """What is installed in another version than something was measured with, a sentence a package.

    Where nothing is known of then or of now, nothing is said.
    """
    if not now:
        return ()
    known = [one for one in then if one]
    words = {}
    for name in sorted({*now, *(name for one in known for name in one)}):
        earlier = list(dict.fromkeys(one.get(name, "none") for one in known))
        if any(version != now.get(name, "none") for version in earlier):
            words[name] = f"{name} is another: {' and '.join(earlier)} then, {now.get(name, 'none')} now"
    return tuple(words.values())
