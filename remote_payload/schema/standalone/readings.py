"""Readings of the checkpoint: which were tried, how far each was measured, and its hits."""

from typing import Literal

from remote_payload.schema.record import Record

Stage = Literal["screen", "factor", "search", "full"]

Place = Literal["prompt", "before_response", "first_token", "inside", "last_token", "after_response"]
"""`before_response`, `after_response`: the 4 tokens just before and just after a response; `first_token`: its first."""


class ReadingFacts(Record):
    """One reading of the checkpoint (slots, a token offset, a computation) and how far it was measured."""

    name: str
    """e.g. `slots 0,1,2 offset +1 feedback=normed`; unique within the result."""
    slots: tuple[int, ...]
    """Positions in the captured states, in fc order."""
    states: tuple[int, ...] | None
    """The same as HF hidden_states indices; None = unlabelled."""
    token_offset: int
    stage: Stage
    """`screen`: first step on few rows; `factor`: one change of the computation, all steps on few rows; `search`: the
    survivors of both, all steps on few rows; `full`: all rows and steps (hits in hits.jsonl.gz)."""
    rows: int
    positions: int
    """Positions judged at step 0 in that stage (response positions: the state's successor is a response token)."""
    first_step_hits: int
    leading_hits: int | None = None
    """Hits before the first miss, summed over positions; None = only the first step was measured."""
    seconds: float
    changes: tuple[str, ...] = ()
    """How its computation differs from the checkpoint's own (`CheckpointFacts.graph`), sorted, e.g. `residual=normed`.

    Names and values: residual=raw|normed, feedback=raw|normed, input_norm=none|joint|per_slot, final_norm=applied|none,
    embedding=target|draft, vocabulary=offset|absolute|identity, rope=WORDS (e.g. `theta 1e+06`, `unscaled`,
    `target's`, `interleaved`), position_start=0|1, states=zeroed|shuffled|earlier|later (controls: what the drafter
    does without its states, or with those of the token before or behind)."""
    paired_with: str | None = None
    """The reading it was held against on the very same positions of stage `factor` or `search`; None = none."""
    paired_first_step_hits: int | None = None
    """That reading's first-step hits on those positions."""
    paired_leading_hits: int | None = None
    """That reading's leading hits on those positions."""
    paired_error: float | None = None
    """Standard error of the two's difference of leading hits a position, by runs of 16 positions."""


class SkippedReading(Record):
    """A reading, or a whole factor, that was not tried, and why."""

    name: str
    reason: str


class SelfFed(Record):
    """The best reading on the search rows, fed with its own tokens instead of the row's (tuples: an entry a step)."""

    reading: str
    rows: int
    positions: tuple[int, ...]
    """Positions j with loss_mask[j+1 .. j+1+s] all set."""
    self_fed_hits: tuple[int, ...]
    """Step s hits when each step's input token is the drafter's own proposal."""
    teacher_fed_hits: tuple[int, ...]
    """Step s hits when the input token is the row's."""
    fresh_hits: tuple[int, ...]
    """Step-0 hits of a chain that starts at j+s instead, from the target's state: what step s could reach at best."""


class Zone(Record):
    """Step-1 accuracy of the best reading in one part of the search rows."""

    place: Place
    """Where the token that is predicted (x_{j+2}) stands."""
    positions: int
    hits: int


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
    hits_in_vocab: str | None = None
    """The same against the teacher's choice among the draft vocabulary's tokens alone, as speculators and SafeAILab
    judge; None in results older than this field."""
