"""`correct`: a drafter's folder beside the original, with another config.json and the same weights."""

from typing import Literal

from remote_payload.schema.record import Record, require


class CorrectRequest(Record):
    """What to write where. Paths are on the host; `~` is its home."""

    nonce: str
    draft: str
    """Folder of the drafter; it is never written to."""
    into: str | None = None
    """The new folder; None = beside the drafter, with `-for-sglang` behind its name."""
    patch_json: str
    """What changes in config.json: a JSON merge patch (RFC 7396), where null deletes a key."""
    config_json: str
    """The config.json that was judged; one that says anything else is refused."""

    def __post_init__(self) -> None:
        require(bool(self.draft.strip()) and "\0" not in self.draft, "`draft` must name a folder")
        require(self.into is None or (bool(self.into.strip()) and "\0" not in self.into), "`into` must name a folder")


class CorrectFrame(Record):
    """Answer of `correct`."""

    kind: Literal["correct"] = "correct"
    path: str
    """The new folder, absolute."""
    config_sha256: str
    """Of the config.json in it."""
    linked: tuple[str, ...]
    """Names that lead to the drafter's own files."""
    existed: bool = False
    """True where this very folder had been written before: nothing was changed."""
