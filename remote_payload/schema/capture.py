"""What a capture brings home: `result/capture.json`. The states themselves stay on the host, as rows."""

from typing import Literal

from remote_payload.schema.bench import ServerFacts
from remote_payload.schema.capture_rule import CaptureRule
from remote_payload.schema.folder import FolderFacts
from remote_payload.schema.record import SCHEMA_VERSION, Record
from remote_payload.schema.state_change import StateChange


class StateMatch(Record):
    """One served state against one that is known, over all compared tokens."""

    against: Literal["captured", "final", "embedding"]
    """A captured state of the training rows, their final state, or the target's own embedding."""
    slot: int | None = None
    """Which captured state."""
    state: int | None = None
    """Its HF `hidden_states` index; None = unlabelled."""
    token_offset: int = 0
    """The known state is that of the token so many further on."""
    tokens: int
    exact: int
    """Tokens whose two vectors are equal, number by number, in the coarser of the two formats."""
    error: float
    """|served - known| / |known|, the median over tokens."""
    cosine: float
    """Median over tokens."""
    scale: float
    """|served| / |known|, the median over tokens."""
    r2: float | None = None
    """Share of the served state's variance that a linear function of the known one explains on rows it was not fitted
    on (ridge, half of the rows each way); None = not fitted, or fewer than two rows."""
    r2_tokens: int | None = None
    change: StateChange | None = None
    """The served state as the known one in other numbers; None = of another token, or an older record."""


class ServedState(Record):
    """One state as SGLang joined it for the drafter: what it is."""

    slot: int
    tokens: int
    rms: float
    """Root mean square of its numbers, the median over tokens."""
    matches: tuple[StateMatch, ...]
    """The nearest first, by error; every captured state of the same token is among them."""


class CapturedAnswer(Record):
    """The answer of a row that was made of a prompt."""

    prompt_sha256: str
    """The prompt's digest, as the workload of a benchmark tells it."""
    output_ids: tuple[int, ...]
    """Token ids as the row holds them, which may end before the answer did."""


class CapturedRows(Record):
    """Rows that were made, in the dialect `served` of the standalone test."""

    split: Literal["train", "answered", "heldout"]
    """Training rows themselves; the server's answers to training prompts; its answers to held-out prompts."""
    folder: str
    """On the host."""
    rows: int
    tokens: int
    asked: int
    skipped: tuple[str, ...] = ()
    """Reasons, one a row that could not be had."""
    answers: tuple[CapturedAnswer, ...] = ()
    """One a row of a prompt; none of training rows, nor in records of earlier versions."""


class CaptureResult(Record):
    """Everything a capture found."""

    schema_version: int = SCHEMA_VERSION
    method: Literal["speculating", "aux_flag", "none"]
    """`speculating`: a server with the drafter, asked for hidden states; `aux_flag`: SGLang's capture without a
    drafter; `none`: this SGLang returns no states."""
    why_not: str | None = None
    """Why no state came, in words; None = they came."""
    sglang_version: str | None = None
    rule: CaptureRule | None = None
    """What the installed SGLang's source says it will capture; None = there was no source to read."""
    draft_config: str | None = None
    """The drafter's config.json."""
    target_config: str | None = None
    server: ServerFacts | None = None
    draft: FolderFacts | None = None
    """The drafter's folder as served; of a server that was up the one that it names, as it lies on this host now."""
    asked_draft: FolderFacts | None = None
    """The drafter that a server that was up was asked about; None = a server of ours, or an older record."""
    hidden_size: int | None = None
    """Width of one state."""
    width: int | None = None
    """Numbers a token that the server returned."""
    served: tuple[ServedState, ...] = ()
    compared_rows: int = 0
    compared_tokens: int = 0
    captured_states: int | None = None
    """How many states a training row holds."""
    made: tuple[CapturedRows, ...] = ()
    seconds: float
    warnings: tuple[str, ...] = ()
