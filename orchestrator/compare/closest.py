"""The names nearest to one that does not exist: those that hold it, or a word of it, then those spelt like it."""

import difflib
import re
from collections.abc import Iterable

MOST = 3
LEAST_WORD = 4
"""Letters of a word by which a name is found: shorter ones stand in anything."""


def closest(name: str, known: Iterable[str], most: int = MOST) -> tuple[str, ...]:
    """At most that many, the shortest of those that hold `name` first; none where nothing is near."""
    names = sorted(set(known), key=lambda one: (len(one), one))
    whole = [one for one in names if name and name.lower() in one.lower()]
    alike = difflib.get_close_matches(name, names, n=most)
    words = [word for word in re.split(r"[^a-z0-9.]+", name.lower()) if len(word) >= LEAST_WORD]
    by_word = [one for one in names if any(word in one.lower() for word in words)]
    return tuple(dict.fromkeys((*whole, *alike, *by_word)))[:most]
