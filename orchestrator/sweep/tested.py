"""Whether what lies under a pair's paths is still what a drafter test read. Pure.

The drafter by every byte of its weights; the target, of which a test reads two tensors alone, by samples of all.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from orchestrator.errors import InvalidRunError
from remote_payload.schema import StandaloneJob
from remote_payload.schema.folder import FolderFacts
from remote_payload.schema.standalone import StandaloneResult


@dataclass(frozen=True, kw_only=True)
class DrafterRead:
    """What a drafter test was given and read."""

    draft: str
    """As the job names it, on its host."""
    target: str | None
    """As the job names it; None = the test read no target."""
    weights_sha256: str | None
    """Over the bytes of `files`, one after the other; None = an old result, which does not tell it."""
    files: tuple[str, ...]
    config_json: str
    target_folder: FolderFacts | None = None
    """What the target was; None = an old result, which does not tell it."""

    @property
    def whole(self) -> tuple[tuple[str, ...], ...]:
        """The paths whose digests tell it: those of the weights, then that of the config."""
        return tuple(f"{self.draft}/{name}" for name in self.files), (f"{self.draft}/config.json",)


def tested(job: StandaloneJob, result: StandaloneResult) -> DrafterRead:
    """What the test of this job read."""
    facts = result.checkpoint
    return DrafterRead(
        draft=job.draft,
        target=job.target,
        weights_sha256=facts.weights_sha256,
        files=tuple(file.name for file in facts.files if file.used),
        config_json=facts.config_json,
        target_folder=result.target,
    )


def replaced(then: DrafterRead, now: Sequence[str | None]) -> tuple[str, str] | None:
    """The drafter and what of it is another now, by the digests of `DrafterRead.whole`; None = nothing.

    Raises InvalidRunError where the result does not tell what it read.
    """
    if then.weights_sha256 is None or not then.files:
        raise InvalidRunError(
            f"--prune: the run does not tell which weights it read under {then.draft}, so nobody can say whether they "
            "still lie there",
            hint="test the drafter again, or go without --prune",
        )
    weights, config = now
    found = [] if weights == then.weights_sha256 else ["its weights"]
    # It was read as text: lines may have ended otherwise in the file.
    texts = (then.config_json, then.config_json.replace("\n", "\r\n"))
    found += [] if config in {hashlib.sha256(text.encode()).hexdigest() for text in texts} else ["its config.json"]
    return (then.draft, " and ".join(found)) if found else None


def replaced_target(then: DrafterRead, now: FolderFacts) -> tuple[str, str] | None:
    """The target and what of it is another now; None = nothing.

    Raises InvalidRunError where the result does not tell what it was, or nobody can read it now.
    """
    told = then.target_folder
    if then.target is None or told is None or None in (told.weights_sha256, now.weights_sha256):
        raise InvalidRunError(
            f"--prune: nobody can tell whether what lies under {then.target} is still the target of the test",
            hint="test the drafter again with --target, a folder, or go without --prune",
        )
    found = [] if now.weights_sha256 == told.weights_sha256 else ["its weights"]
    found += [] if now.config_sha256 == told.config_sha256 else ["its config.json"]
    return (then.target, " and ".join(found)) if found else None
