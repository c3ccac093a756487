"""What was installed where the points of a sweep were measured, as its host told it attempt by attempt. Pure."""

import json
from collections.abc import Mapping, Sequence

from remote_payload.schema import SweepAttempt, SweepJob


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
