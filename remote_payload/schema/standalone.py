"""What the standalone drafter test measured: raw, with units; figures and verdicts are made on the laptop.

`result/standalone.json` holds one `StandaloneResult`. `result/hits.jsonl.gz` holds, one JSON a line, first every
`RowFacts` in row order, then every `ReadingHits`.

Positions. Row tokens are x_0..x_{T-1}; the state of token j is h_j; the teacher's greedy choice at j is
y_j = argmax(lm_head(final_state_j)), a prediction of x_{j+1}. Draft position j reads h_j and the embedding of
x_{j+offset}; at step s (0-based) it proposes a token that is a hit when it equals y_{j+1+s}. The hit exists only
where j+1+s <= T-1.
"""

from typing import Literal

from remote_payload.schema.record import SCHEMA_VERSION, Record


class TensorFact(Record):
    """One tensor that the test used, under its canonical name, and where it came from."""

    name: str
    stored_name: str
    shape: tuple[int, ...]
    dtype: str
    source: Literal["draft", "target"]


class TensorProblem(Record):
    """A tensor that is missing, unexpected, misshapen or not finite."""

    problem: Literal["missing", "unexpected", "misshapen", "not_finite"]
    name: str
    expected: str
    found: str


class CheckpointFacts(Record):
    """The drafter as it was read."""

    draft: str
    target: str | None
    architecture: str | None
    hidden_size: int
    target_hidden_size: int
    slots: int
    """n of the fc's n * target_hidden_size input columns."""
    vocab_size: int
    draft_vocab_size: int
    tensors: tuple[TensorFact, ...]
    problems: tuple[TensorProblem, ...] = ()
    """Unexpected tensors; a missing, misshapen or NaN tensor ends the job instead."""
    weights_sha256: str | None = None
    config_json: str
    """The drafter's config.json as it stood."""


class DeclaredWiring(Record):
    """What the config declares and what SGLang would feed for it."""

    config_ids: tuple[int, ...] | None
    """`eagle_config.eagle_aux_hidden_state_layer_ids`; None = absent, SGLang's defaults hold."""
    ignored_top_level_ids: tuple[int, ...] | None = None
    """Ids at the top level of config.json, which SGLang never reads for capture."""
    target_class: str | None
    target_layers: int | None
    rule: str
    """Name of SGLang's rule in words, e.g. `id + 1 (llama)`."""
    valid_for: str
    """SGLang versions the rule holds for."""
    captured: tuple[int, ...] | None
    """HF hidden_states indices SGLang would capture, ascending; None = cannot tell, see `problem`."""
    problem: str | None = None
    """Why nothing (or not enough) would be captured, or why it cannot be told."""
    slots: tuple[int, ...] | None = None
    """`captured` as positions in the rows' captured states; None = unlabelled or not among them."""


class ReadingFacts(Record):
    """One reading of the checkpoint (an ordered choice of slots and a token offset) and how far it was measured."""

    name: str
    """e.g. `slots 0,1,2 offset +1`; unique within the result."""
    slots: tuple[int, ...]
    """Positions in the captured states, in fc order."""
    states: tuple[int, ...] | None
    """The same as HF hidden_states indices; None = unlabelled."""
    token_offset: int
    stage: Literal["screen", "search", "full"]
    """`screen`: first step on few rows; `search`: survivors; `full`: all rows and steps (hits in hits.jsonl.gz)."""
    rows: int
    positions: int
    """Positions judged at step 0 in that stage (response positions: the state's successor is a response token)."""
    first_step_hits: int
    seconds: float


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


class ReadingHits(Record):
    """Hits of one reading on one row.

    `starts`/`stops` are half-open runs of positions j, ascending; `hits` is base64 of `steps <= 8 ? 1 : 2` bytes
    (little-endian) per position in that order: bit s = hit at step s. Judged positions: every j for which any of
    loss_mask[j .. j+steps] is set, so that each trainer's mask rule can be applied later.
    """

    kind: Literal["hits"] = "hits"
    reading: str
    row: int
    steps: int
    starts: tuple[int, ...]
    stops: tuple[int, ...]
    hits: str


class SkippedRow(Record):
    """A row that was not used, and why."""

    name: str
    reason: str


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
    final_state: Literal["post_norm", "pre_norm"]
    """Whether the stored final state already went through the target's final norm."""
    dtype: str
    embedding_slots: tuple[int, ...] | None = None
    """Slots that are the target's embedding output, whatever their labels; None = the target's embedding is unknown."""


class Phase(Record):
    """One phase of the job and what it took."""

    name: str
    seconds: float
    tokens: int | None = None


class StandaloneResult(Record):
    """`result/standalone.json`."""

    schema_version: int = SCHEMA_VERSION
    kind: Literal["standalone"] = "standalone"
    checkpoint: CheckpointFacts
    declared: DeclaredWiring
    rows: RowsFacts
    readings: tuple[ReadingFacts, ...]
    steps: int
    dtype: str
    device: str
    device_name: str
    torch: str
    python: str
    threads: int
    phases: tuple[Phase, ...]
    peak_memory_bytes: int | None
    peak_gpu_memory_bytes: int | None = None
    warnings: tuple[str, ...] = ()
