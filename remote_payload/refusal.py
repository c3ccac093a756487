"""A verb's refusal: what it answers instead of doing what was asked."""

import errno
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from remote_payload.schema import ErrorFrame
    from remote_payload.schema.frames import RefusalCode

MAKE_ROOM = "make room on the host, e.g. by `eagle3-remote gc --host NAME`, then try again"


class Refusal(Exception):  # noqa: N818 - an answer, not a bug
    """Carries the error frame to the one place that sends it (`verbs.answer`)."""

    def __init__(self, code: "RefusalCode", message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.code, self.message, self.hint = code, message, hint

    @property
    def frame(self) -> "ErrorFrame":
        """What the laptop is told."""
        from remote_payload.schema import ErrorFrame  # noqa: PLC0415 - the worker imports this module, and no frames

        return ErrorFrame(code=self.code, message=self.message, hint=self.hint)


def disk_refusal(error: OSError, what: str) -> Refusal:
    """Turn a failed write into a refusal; `what` says what was being written, e.g. `create the run directory`."""
    if is_disk_full(error):
        return Refusal("disk_full", f"cannot {what}, the disk or quota is full: {error}", MAKE_ROOM)
    return Refusal(
        "root_not_writable",
        f"cannot {what}: {error}",
        "set `root` for this host in eagle3.toml to a folder that this user can write",
    )


def is_disk_full(error: BaseException) -> bool:
    """Whether an error says that no space is left, on the disk or in the user's quota."""
    return isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)
