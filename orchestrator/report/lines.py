"""Long sentences in lines."""

import textwrap


def wrapped(text: str, width: int, indent: str = "") -> list[str]:
    """The text in lines; the second and later ones two spaces in."""
    return textwrap.wrap(
        text, width, initial_indent=indent, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
    )
