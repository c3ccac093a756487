r"""An argv as the one string SSH carries, such that every login shell hands exactly that argv to the program.

sshd gives the string to the account's login shell with `-c`: sh, bash, zsh, fish, tcsh. They agree on bare words of a
few characters, and on single quotes around text that holds no quote, backslash, `!` or control character (fish reads
`\'` and `\\` there, tcsh expands `!` and ends at a newline). So plain words go as they are; anything else is quoted for
POSIX sh (`shlex.join`), its awkward bytes are written as octal escapes, and a fixed `sh -c` undoes those and runs it.
"""

import re
import shlex
from collections.abc import Sequence

from orchestrator.errors import UsageError

_PLAIN_WORD = re.compile(r"[A-Za-z0-9_@+:,./-][A-Za-z0-9_@%+=:,./-]*")
_SAME_IN_EVERY_QUOTE = frozenset(range(0x20, 0x7F)) - frozenset(b"'\\!")
_RUN_ESCAPED = """exec sh -c 'eval "$(printf %b "$1")"' sh"""


def command_line(argv: Sequence[str]) -> str:
    """The line to give to SSH's exec request; raises UsageError for an empty argv or a NUL, which no argv can hold."""
    if not argv or any("\0" in word for word in argv):
        raise UsageError(f"a command needs at least one word and no NUL character: {list(argv)!r}")
    if all(_PLAIN_WORD.fullmatch(word) for word in argv):
        return "exec " + " ".join(argv)
    posix = ("exec " + shlex.join(argv)).encode("utf-8", errors="surrogateescape")
    # `\0` and three octal digits: printf's %b takes at most three after the zero, so a digit that follows is safe.
    escaped = "".join(chr(byte) if byte in _SAME_IN_EVERY_QUOTE else f"\\0{byte:03o}" for byte in posix)
    return f"{_RUN_ESCAPED} '{escaped}'"
