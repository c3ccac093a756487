"""The captured rows as they were read, and what they say about themselves without running the target."""

from typing import Literal

from remote_payload.schema.record import Record
from remote_payload.schema.state_change import StateChange


class SkippedRow(Record):
    """A row that was not used, and why."""

    name: str
    reason: str


class DataDialectFacts(Record):
    """Whose row format this is, and what says so."""

    name: Literal[
        "specforge", "torchspec", "speculators", "speculators_old_v1", "speculators_old_v0", "modelopt", "automodel",
        "jsonl_states", "baldeagle", "angelslim", "served",
    ]  # fmt: skip
    evidence: tuple[str, ...]


class SlotFacts(Record):
    """One captured state over sampled tokens: what it says about where it was captured."""

    slot: int
    tokens: int
    rms: float
    """Median over tokens of the root mean square: the residual stream grows with depth."""
    embedding_share: float | None = None
    """Share of tokens whose state points along the token's row of the target's embedding; None = embedding unknown."""
    embedding_share_beside: tuple[float, ...] = ()
    """The same against the embedding of the token before and of the token after: high = states and tokens are shifted
    against each other."""
    repeats: int = 0
    """Tokens whose id occurred before."""
    repeats_equal: int = 0
    """Of these, how many have the very vector that the id had before: all, for a pure function of the token id."""
    lens_positions: int = 0
    """Response positions at which the logit lens was held against the next token."""
    lens_normed_hits: int = 0
    """argmax(lm_head(norm(state))) is the next token."""
    lens_raw_hits: int = 0
    """argmax(lm_head(state)) is the next token."""
    equals_slot: int | None = None
    """An earlier slot that holds the same numbers."""
    constant: bool | None = None
    """Whether all tokens looked at have the very same vector; None = not looked at (earlier versions)."""


class TeacherFacts(Record):
    """The stored final state as a teacher, on response positions whose next token is a response token as well."""

    positions: int
    agrees: int
    """Positions where the teacher's greedy choice is the next token."""
    rows_agreeing: tuple[float, ...] = ()
    """That share, row by row: greedy rows stand near 1, sampled ones lower."""
    shifted_agrees: tuple[int, ...] = ()
    """The same count with the choice held against the token at offsets 0 and +2, not +1: high = states are shifted."""
    norm_rms: float | None = None
    """Median RMS of final state / norm weight: 1 for a state after the target's final norm; None = norm unknown."""


class MaskEdge(Record):
    """How uniform the tokens around the mask's edges are: templates are constant, answers are not."""

    place: Literal["two_before", "before", "first", "second", "last", "after"]
    """Relative to a response: the second token before it ... its last token, the token after it."""
    responses: int
    most_common: int
    """How many responses have the most common token there."""
    token: int


class RowsLint(Record):
    """What is odd about the rows as data."""

    with_nan: int = 0
    """Rows left out because of NaN or infinity."""
    longest: int
    """Tokens of the longest row."""
    at_longest: int
    """Rows exactly as long as the longest."""
    cut_at_longest: int
    """Of these, rows whose response runs to their very last token: truncated, if they are many."""
    distinct_response_tokens: int
    duplicates: int = 0
    """Rows whose tokens equal an earlier row's."""
    also_in_train: int | None = None
    """Held-out rows whose tokens equal a train row's; None = these are the train rows."""
    prompts_in_train: int | None = None
    """Held-out rows whose prompt (tokens before the first response token) is a train row's."""
    edges: tuple[MaskEdge, ...] = ()
    lengths_differ: int = 0
    """Rows left out because tokens, mask and states had different lengths."""
    mask_at_first_token: int = 0
    """Used rows whose mask marks token 0, which no response can be: nearly all = the mask is inverted or absent."""
    unmarked_at_last_token: int = 0
    """Used rows whose very last token is unmarked: with nearly all `mask_at_first_token` as well, it is inverted."""
    without_mask: int = 0
    """Used rows with no loss mask anywhere: every token was taken as a response token."""
    masks_contradict: int = 0
    """Used rows whose file and merged JSONL both hold a mask, and different ones; the merged one was used."""
    masks_inverse: int = 0
    """Of these, rows where one is exactly the other's inverse."""
    prompts_stated: int = 0
    """Used rows whose merged line says where the prompt ends."""
    odd_mask_values: int = 0
    """Used rows whose mask holds numbers other than 0 and 1; whatever is not 0 was taken as marked."""


class RowsFacts(Record):
    """The captured rows as they were read."""

    folder: str
    layout: str
    found: int
    used: int
    skipped: tuple[SkippedRow, ...]
    tokens: int
    response_tokens: int
    captured_states: int
    states: tuple[int, ...] | None
    computed: tuple[int, ...] = ()
    """Of `states`, what the rows do not hold: the embedding output (0), computed from the target's own table."""
    final_state: Literal["post_norm", "pre_norm", "answers"]
    """Whether the stored final state already went through the target's final norm; `answers`: none is stored, but the
    teacher's own choices (or probabilities) are."""
    dtype: str
    embedding_slots: tuple[int, ...] | None = None
    """Slots that are the target's embedding output, whatever their labels; None = the target's embedding is unknown."""
    dialect: DataDialectFacts | None = None
    slots: tuple[SlotFacts, ...] = ()
    teacher: TeacherFacts | None = None
    lint: RowsLint | None = None


class RowFacts(Record):
    """One row that was read. Bitmaps: base64 of bytes, bit j%8 (LSB first) of byte j//8 is token j."""

    kind: Literal["row"] = "row"
    row: int
    """0-based index among the rows that were read."""
    name: str
    """File name relative to the rows folder."""
    tokens: int
    loss_mask: str
    teacher_in_draft_vocab: str
    """Whether y_j can be proposed at all."""
    teacher_is_next_token: str
    """Whether y_j == x_{j+1}: all ones where the response was generated greedily. Bit T-1 is 0."""
    prompt_tokens: int
    """Tokens before the first response token (n_prompt_tokens where the merged JSONL says so)."""
    source: str | None = None
    tokens_sha256: str | None = None
    """Of the int64 little-endian token ids: the same text has the same one, whatever file it is in."""


class CaptureSlot(Record):
    """One captured state against a fresh forward of the target."""

    slot: int | None
    """None = the stored final state."""
    nearest: int
    """HF hidden_states index that the stored state is closest to; for the final state layers = post-norm output."""
    error: float
    """Median over tokens of |stored - fresh| / |fresh| at `nearest`."""
    next_error: float
    """The same for the second closest index."""
    labelled_error: float | None = None
    """The same for the index the job's labels give; None = unlabelled."""
    changes: tuple[StateChange, ...] = ()
    """The stored state as each fresh one in other numbers, by HF index; none in older records."""


class CaptureCheck(Record):
    """Captured rows against a fresh forward of the target on this host."""

    ran: bool
    why_not: str | None = None
    transformers: str | None = None
    rows: int = 0
    tokens: int = 0
    slots: tuple[CaptureSlot, ...] = ()
    final: CaptureSlot | None = None
    same_answers: int = 0
    """Tokens at which the teacher's choice from the stored final state is that of the fresh forward."""
    answers: int = 0
    seconds: float = 0.0
