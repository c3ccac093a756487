"""Any text as it can stand in a page: nothing invisible, nothing that turns its neighbours around, nothing endless."""

import re

MOST = 4000
"""Characters of one text that are shown."""
_RIGHT_TO_LEFT = re.compile(
    "[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]+(?:[ ]+[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]+)*"
)
_ISOLATED = "\u2068\\g<0>\u2069"


def shown(text: str) -> str:
    """Control and format characters as escapes, right-to-left words kept to themselves, the rest cut and told."""
    more = len(text) - MOST
    visible = "".join(
        char if char.isprintable() or char in "\n\t" else char.encode("unicode_escape").decode("ascii")
        for char in text[:MOST]
    )
    tail = f"... ({more} characters more)" if more > 0 else ""
    return _RIGHT_TO_LEFT.sub(_ISOLATED, visible) + tail
