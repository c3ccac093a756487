"""Whether what lies under a drafter's path is still what a drafter test read: by every byte of its weights. Pure.

Of the target the path alone is held against the sweep's: a test reads two of its tensors and tells no digest of them.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from orchestrator.errors import InvalidRunError
from remote_payload.schema import CheckpointFacts, StandaloneJob


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

    @property
    def whole(self) -> tuple[tuple[str, ...], ...]:
        """The paths whose digests tell it: those of the weights, then that of the config."""
        return tuple(f"{self.draft}/{name}" for name in self.files), (f"{self.draft}/config.json",)


def tested(job: StandaloneJob, facts: CheckpointFacts) -> DrafterRead:
    """What the test of this job read."""
    return DrafterRead(
        draft=job.draft,
        target=job.target,
        weights_sha256=facts.weights_sha256,
        files=tuple(file.name for file in facts.files if file.used),
        config_json=facts.config_json,
    )


def replaced(then: DrafterRead, now: Sequence[str | None]) -> str | None:
    """What of the drafter is another now, by the digests of `DrafterRead.whole`; None = nothing.

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
    return " and ".join(found) or None
