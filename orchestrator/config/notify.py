"""`[notify]`: who is told when this laptop sees a run or a sweep end."""

import re

from remote_payload.schema.record import Record, require

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class NotifyConfig(Record):
    """`[notify]`; nothing in it, nobody is told. Addresses are secrets: they are named here and stand elsewhere."""

    desktop: bool = False
    """A note on this desktop: notify-send, on macOS osascript."""
    command: tuple[str, ...] = ()
    """A program of this laptop with its arguments, the ending as JSON on its standard input."""
    webhook: str | None = None
    """Name of an environment variable with an http(s) address that takes the ending as JSON (POST)."""
    apprise: str | None = None
    """Name of an environment variable with addresses of apprise, blanks between them; needs eagle3-remote[apprise]."""

    def __post_init__(self) -> None:
        for key, name in (("webhook", self.webhook), ("apprise", self.apprise)):
            words = (
                f"`{key}` must be the name of an environment variable that holds the address, which is a secret, "
                f"found: {_hidden(name)}"
            )
            require(name is None or _VARIABLE.fullmatch(name) is not None, words)
        for word in self.command:
            require(bool(word) and "\0" not in word, f"`command` must hold words, none empty, found: {word!r}")

    @property
    def is_empty(self) -> bool:
        """Whether nobody is told."""
        return not (self.desktop or self.command or self.webhook or self.apprise)


def _hidden(name: str | None) -> str:
    """An address that was put there by mistake is not shown."""
    return "an address" if name and "://" in name else repr(name)
