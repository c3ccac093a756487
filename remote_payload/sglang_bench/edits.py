"""Where a training row's prompt and the same messages, served, differ token by token."""

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher

from remote_payload.schema.workload import MOST_EDITS, MOST_IDS, TemplateRow, TokenEdit

LONGEST = 1000
"""Tokens between the first and the last difference up to which they are aligned one by one; beyond, they are one."""
LONGEST_HEADER = 16
"""Tokens by which a served prompt may reach into what a row counts as answer: the answer's own header."""


def compared(prompt: int, row: Sequence[int], prompt_tokens: int, served: Sequence[int]) -> TemplateRow:
    """`row`: prompt and answer, of which the prompt is `prompt_tokens` long; `served`: ids of the same messages.

    Equal where the row goes on as it is served, wherever its answer is counted from: many masks count its header in.
    """
    trained = row[: _end(row, prompt_tokens, served)]
    equal = next((at for at, (ours, theirs) in enumerate(zip(row, served, strict=False)) if ours != theirs), None)
    same = min(len(row), len(served)) if equal is None else equal
    return TemplateRow(
        prompt=prompt,
        trained_tokens=len(trained),
        served_tokens=len(served),
        equal_tokens=same,
        first_token=row[0],
        edits=tuple(_edits(trained, served))[:MOST_EDITS],
    )


def _end(row: Sequence[int], prompt_tokens: int, served: Sequence[int]) -> int:
    """Where the row's prompt ends: with what is served, where that ends within the header of the row's answer."""
    if len(served) >= prompt_tokens and tuple(row[: len(served)]) == tuple(served):
        return len(served)
    for more in range(LONGEST_HEADER, 0, -1):
        header = tuple(row[prompt_tokens - 1 : prompt_tokens + more])
        if len(header) == more + 1 and tuple(served[-more - 1 :]) == header:
            return prompt_tokens + more
    return prompt_tokens


def _edits(trained: Sequence[int], served: Sequence[int]) -> Iterator[TokenEdit]:
    first = 0
    while first < min(len(trained), len(served)) and trained[first] == served[first]:
        first += 1
    behind = 0
    while behind < min(len(trained), len(served)) - first and trained[-1 - behind] == served[-1 - behind]:
        behind += 1
    ours, theirs = trained[first : len(trained) - behind], served[first : len(served) - behind]
    if not ours and not theirs:
        return
    if max(len(ours), len(theirs)) > LONGEST:
        yield _edit(first, ours, theirs)
        return
    for tag, a, b, c, d in SequenceMatcher(None, ours, theirs, autojunk=False).get_opcodes():
        if tag != "equal":
            yield _edit(first + a, ours[a:b], theirs[c:d])


def _edit(position: int, trained: Sequence[int], served: Sequence[int]) -> TokenEdit:
    return TokenEdit(
        position=position,
        trained=tuple(trained[:MOST_IDS]),
        served=tuple(served[:MOST_IDS]),
        trained_tokens=len(trained),
        served_tokens=len(served),
    )
