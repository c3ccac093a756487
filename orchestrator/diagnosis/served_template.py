"""K16: whether the served chat template makes of messages the very tokens that the drafter was trained on.

The benchmark asks rows by their ids, so its own figures are free of the template; a chat client's are not.
"""

import re
from collections.abc import Iterator, Sequence

from orchestrator.diagnosis.finding import CheckResult, Evidence, Subject, count, share
from remote_payload.schema.workload import TemplateCheck, TemplateRow, TokenEdit, WorkloadFacts

TEMPLATE = Subject(check="K16", title="served template")
SHOWN = 12
"""Tokens of a difference that are shown."""
_BOTH = "rows that hold `messages` beside `input_ids` (--merged, --prompts)"
_NEEDS_IDS = f"{_BOTH}: they are asked of the served template; or prompts as token ids"
_THINKING = re.compile(
    r"</?(?:think|thinking|reasoning)>|<\|/?(?:think|thinking|reasoning)\|>|\[/?think\]|/(?:no_)?think\b"
    r"|\bdetailed thinking (?:on|off)\b|\breasoning(?:[ _]effort)?: ?(?:low|medium|high|none)\b",
    re.IGNORECASE,
)
"""Marks that templates set: tags, `/no_think`, Nemotron's and gpt-oss's lines; not a text that speaks of thinking."""

_REMEDIES = {
    "bos": "let the prompt begin as training's `input_ids` do: the BOS comes from the chat template, from the "
    "tokenizer's own additions (`add_bos_token`), from both or from neither",
    "front": "send the system prompt that training has (none, where it has none), or serve its template: "
    "`--chat-template FILE`",
    "thinking": "send what training has: `chat_template_kwargs` with `enable_thinking` (or this model's switch), or "
    "serve training's template: `--chat-template FILE`",
    "end": "serve a template whose generation prompt is training's: `--chat-template FILE`",
    "cut": "serve the tokenizer files that the rows were made with (`--tokenizer-path`): the text is equal",
    "other": "serve the template that the rows were made with (`--chat-template FILE`), or train on rows of this one",
}


def template(workload: WorkloadFacts) -> CheckResult:
    """What rows of messages and ids tell; without them, what stood between the prompts and the server."""
    if workload.retokenised is not None:
        return _judged(workload.retokenised)
    if workload.form == "token_ids":
        return TEMPLATE.cannot_tell(
            "prompts were sent as token ids: no template came between rows and server; what it makes of a chat "
            "client's messages is not known",
            needs=_BOTH,
        )
    if workload.form == "random":
        return TEMPLATE.cannot_tell("the prompts are random tokens", needs="prompts of real text")
    how = "through the served chat template" if workload.form == "messages" else "as text, without any template"
    return TEMPLATE.cannot_tell(
        f"prompts were sent {how}; whether that gives the ids that the drafter was trained on is not known",
        needs=_NEEDS_IDS,
    )


def _judged(told: TemplateCheck) -> CheckResult:
    if not told.rows:
        return TEMPLATE.cannot_tell(
            f"rows hold messages and ids, and no template rendered them: {told.why_not or 'not told'}", needs=_NEEDS_IDS
        )
    unlike = [row for row in told.rows if row.edits]
    equal = share("rows whose messages become their own ids", len(told.rows) - len(unlike), len(told.rows))
    asked = sum(row.served_tokens for row in told.rows)
    if not unlike:
        return TEMPLATE.passed(
            f"the served template gives the messages of {len(told.rows)} rows their own ids: {asked} tokens",
            (equal,),
        )
    first = unlike[0]
    kinds = tuple(dict.fromkeys(kind_of(edit, row) for row in unlike for edit in row.edits))
    edit = first.edits[0]
    return TEMPLATE.finding(
        f"messages become other tokens than the drafter was trained on, in {len(unlike)} of {len(told.rows)} rows: "
        f"from token {edit.position} on, {in_words(edit, first)}",
        severity="minor",
        cause="data",
        evidence=(equal, count("first differing token, least over rows", min(row.equal_tokens for row in unlike)),
                  *_evidence(unlike)),
        remedy=tuple(_REMEDIES[kind] for kind in kinds),
        refuted_by="the same accept length for these rows asked as messages as for their ids",
    )  # fmt: skip


def kind_of(edit: TokenEdit, row: TemplateRow) -> str:
    """What a difference is: `bos`, `front`, `thinking`, `end`, `cut` (into other tokens) or `other`."""
    trained, served = "".join(edit.trained_text or ()), "".join(edit.served_text or ())
    if trained and trained == served:
        return "cut"
    if any(_THINKING.search(text) for text in (trained, served)):
        return "thinking"
    if _is_bos(edit, row):
        return "bos"
    one_sided = not edit.trained or not edit.served
    if one_sided and edit.position + edit.trained_tokens >= row.trained_tokens:
        return "end"
    return "front" if one_sided and edit.position <= 1 else "other"


def _is_bos(edit: TokenEdit, row: TemplateRow) -> bool:
    """One token more or less where the sequence begins."""
    if edit.position == 0:
        return {edit.trained_tokens, edit.served_tokens} in ({0, 1}, {1})
    doubled = (edit.trained, edit.served) in (((), (row.first_token,)), ((row.first_token,), ()))
    return edit.position == 1 and doubled


def in_words(edit: TokenEdit, row: TemplateRow) -> str:
    """A difference as a sentence tells it."""
    kind = kind_of(edit, row)
    ours, theirs = (
        shown(edit.trained, edit.trained_text, edit.trained_tokens),
        shown(edit.served, edit.served_text, edit.served_tokens),
    )
    if kind == "bos" and edit.position == 1:
        return f"the first token is doubled: {theirs}" if edit.served else f"a doubled first token is single: {ours}"
    names = {"bos": "the first token", "front": "a system prompt", "end": "a generation prompt",
             "thinking": "a thinking switch", "cut": "the same text in other tokens", "other": "tokens"}  # fmt: skip
    if edit.trained and edit.served:
        return f"{names[kind]}: {theirs} where training has {ours}"
    if edit.served:
        return f"{names[kind]} that training has not: {theirs}"
    return f"{names[kind]} of training is missing: {ours}"


def shown(ids: Sequence[int], texts: Sequence[str] | None, tokens: int) -> str:
    """`<|bos|>` (1 token: 0); ids alone where the server tells no texts."""
    cut = " ..." if tokens > SHOWN else ""
    numbers = f"{tokens} token{'' if tokens == 1 else 's'}: {', '.join(map(str, ids[:SHOWN]))}{cut}"
    return numbers if texts is None else f"{''.join(texts[:SHOWN])!r}{cut} ({numbers})"


def _evidence(unlike: Sequence[TemplateRow]) -> Iterator[Evidence]:
    """Every difference once, with how many rows have it."""
    rows: dict[str, list[int]] = {}
    for row in unlike:
        for edit in row.edits:
            rows.setdefault(in_words(edit, row), []).append(row.prompt)
    for words, prompts in list(rows.items())[:SHOWN]:
        yield Evidence(name=f"difference in {len(set(prompts))} of the rows", value=words)
