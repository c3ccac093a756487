"""What a served benchmark asked, and whether the served chat template makes of it what the drafter was trained on."""

from typing import Literal

from remote_payload.schema.record import Record


class TokenEdit(Record):
    """One place where a training row's prompt and the same messages, served, hold different tokens."""

    position: int
    """Of its first token in the trained prompt, 0-based; its length where something is added behind it."""
    trained: tuple[int, ...]
    """Ids of the training row, at most `MOST_IDS`; empty = the server added tokens."""
    served: tuple[int, ...]
    """The same of the server; empty = it left tokens out."""
    trained_tokens: int
    """How many there are."""
    served_tokens: int
    trained_text: tuple[str, ...] | None = None
    """Token by token; None = this server tells no texts of ids."""
    served_text: tuple[str, ...] | None = None


MOST_IDS = 48


class TemplateRow(Record):
    """One training row: its prompt's ids, and what the server makes of its messages."""

    prompt: int
    """Its index in the workload."""
    trained_tokens: int
    """Of the row's prompt."""
    served_tokens: int
    equal_tokens: int
    """Equal ones from the first on."""
    first_token: int
    """The trained prompt's: where there is a BOS, that."""
    edits: tuple[TokenEdit, ...] = ()
    """In order, at most `MOST_EDITS`; none = the row begins with what is served."""


MOST_EDITS = 8


class TemplateCheck(Record):
    """Training rows that hold messages as well as ids, asked of the served chat template."""

    rows: tuple[TemplateRow, ...] = ()
    with_messages: int
    """Prompts that hold both; the first of them were asked."""
    method: Literal["served", "tokenizer"] | None = None
    """`served`: the chat endpoint told the ids; `tokenizer`: the tokenizer of the server's Python rendered them, and
    the endpoint the number alone; None = nothing was rendered."""
    why_not: str | None = None
    """Why there are no rows."""


class WorkloadFacts(Record):
    """What was asked."""

    source: str
    form: Literal["token_ids", "text", "messages", "random"]
    prompts: int
    prompt_tokens: int | None
    sha256: str
    """Over the rendered prompts and their order: equal workloads have equal ones."""
    prompt_sha256: tuple[str, ...] = ()
    """The beginning of each prompt's own, in their order: equal prompts have equal ones. Empty = an older record."""
    files: tuple[str, ...] = ()
    """Where the prompts were read: one file, or that of the training prompts and the held-out one; empty = of none."""
    lines: tuple[int, ...] = ()
    """The line of each prompt in its file, from 1 on; empty = of no file, or an older record."""
    conversations: tuple[str, ...] = ()
    """What names each prompt's conversation, in their order, where any tells one; empty = none does."""
    heldout_from: int | None = None
    """Index of the first prompt the drafter was not trained on, those before are training prompts; None = not told."""
    max_new_tokens: int
    ignore_eos: bool
    temperature: float
    top_p: float | None = None
    top_k: int | None = None
    seed: int
    template: str | None = None
    """`served` where messages went through the served chat template."""
    retokenised: TemplateCheck | None = None
    """Training rows' messages through the served template, beside their ids; None = no prompt holds both, or an older
    record."""
