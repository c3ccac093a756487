"""Any text as it can stand in a file that people open: nothing invisible, nothing that turns its neighbours around."""

import re

MOST = 4000
"""Characters of one text that are shown."""
_LETTERS = "\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc"
_RIGHT_TO_LEFT = re.compile(f"[{_LETTERS}]+(?: +[{_LETTERS}]+)*")
_ISOLATED = "\u2068\\g<0>\u2069"


def visible(text: str, kept: str = "\n\t") -> str:
    """Control and format characters, and halves of characters, as escapes; only the `kept` ones stay."""
    return "".join(
        char if char.isprintable() or char in kept else char.encode("unicode_escape").decode("ascii") for char in text
    )


def shown(text: str, most: int = MOST) -> str:
    """The same with right-to-left words kept to themselves, and what is beyond `most` cut and told."""
    more = len(text) - most
    tail = f"... ({more} characters more)" if more > 0 else ""
    return _RIGHT_TO_LEFT.sub(_ISOLATED, visible(text[:most])) + tail
