"""Long sentences in lines."""

import re
import textwrap

_WORD = re.compile(r"(?:`[^`\n]*`|[^\s`]|`)+")
"""Up to a blank; what stands in `backticks` is one word, for it may be a command to copy."""


def wrapped(text: str, width: int, indent: str = "") -> list[str]:
    """The text in lines; the second and later ones two spaces in."""
    return textwrap.wrap(
        text, width, initial_indent=indent, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
    )


def folded(text: str, width: int, used: int = 0) -> str:
    """A message with every line that is too long broken between words; `used`: what stands before its first line.

    Words longer than a line stay whole. Where a line goes on, it is two deeper than it began.
    """
    lines = text.split("\n")
    return "\n".join(_folded(line, width, 0 if number else used) for number, line in enumerate(lines))


def _folded(line: str, width: int, used: int) -> str:
    if used + len(line) <= width:
        return line
    begins = line[: len(line) - len(line.lstrip())]
    lines: list[str] = []
    now = begins
    for word in _WORD.findall(line):
        room = width - (0 if lines else used)
        if now.strip() and len(now) + 1 + len(word) > room:
            lines.append(now)
            now = f"{begins}  {word}"
        else:
            now = f"{now} {word}" if now.strip() else f"{now}{word}"
    return "\n".join([*lines, now])
