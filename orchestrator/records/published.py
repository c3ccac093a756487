"""A number that somebody else published, with its source: to hold one's own against, never a measurement of ours."""

from remote_payload.schema.record import Record, require, require_finite


class PublishedPoint(Record):
    """One dataset at one setting of the drafter; None = the source does not tell."""

    name: str
    """`published:NAME` means it."""
    target: str
    draft: str
    dataset: str | None
    num_steps: str | None
    eagle_topk: str | None
    num_draft_tokens: str | None
    concurrency: int | None
    accept_length: float | None
    counted: str
    """`pooled` (1 + accepted / verify steps), `per_verify` (tokens / verify steps), or `unknown`."""
    output_tok_s: float | None
    plain_output_tok_s: float | None
    """Without speculation, on the same machine."""
    n: int | None
    """Prompts behind it."""
    tool: str
    source: str
    note: str

    def __post_init__(self) -> None:
        for name in ("accept_length", "output_tok_s", "plain_output_tok_s"):
            value = getattr(self, name)
            require_finite(**{name: value})
            require(value is None or value > 0, f"`{name}` must be above 0, found: {value}")

    @property
    def speedup(self) -> float | None:
        """Output throughput over that of plain decoding; None where the source does not tell both."""
        if self.output_tok_s is None or self.plain_output_tok_s is None:
            return None
        return self.output_tok_s / self.plain_output_tok_s

    @property
    def is_suspicious(self) -> bool:
        """Whether a speculative step would be cheaper than a plain one (r < 1), so that the plain side must be off."""
        speedup = self.speedup
        return speedup is not None and self.accept_length is not None and self.accept_length < speedup
