"""Whether two spellings of a path surely name one folder of weights."""

import re
from pathlib import PurePosixPath

_HUB = "models--"
_HOME = re.compile(r"/root|/(?:[^/]+/)*(?:home|users|Users)/[^/]+")
"""Where `~` may lead."""


def is_one_path(one: str, other: str, *, attached: bool) -> bool:
    """Whether two spellings surely name one folder.

    A hub's name alone tells no revision. `~` is the home of who asked: of a server that we did not start, or one in a
    container, it may be another's, so only a folder of a home is taken for it, and of a server of our own alone.
    """
    a, b = (str(PurePosixPath(path)) for path in (one, other))
    if _HUB in a and _HUB in b:  # wherever the cache lies
        return a[a.index(_HUB) :] == b[b.index(_HUB) :]
    if a == b:
        return True
    short, full = (a, b) if a.startswith("~/") else (b, a)
    return short.startswith("~/") and not attached and _HOME.fullmatch(full.removesuffix(short[1:])) is not None
