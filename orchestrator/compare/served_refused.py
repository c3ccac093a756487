"""Requests that a server refused because they are too long for it: which lines of which file, and what it takes.

Such a request never began: of speed its load is no measurement, for less was asked than was meant; what the others say
of acceptance stands, each answer by its own counters.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from remote_payload.schema.bench import RequestSample
from remote_payload.schema.workload import WorkloadFacts

MOST_LINES = 3
"""Named one by one; the others are counted."""
_TAKES = re.compile(
    r"(?:longer than|exceeds) the (?:model's )?(?:maximum )?(?:context|allowed) length (?:of )?\(?(\d{1,9}) tokens"
)
_INPUT = re.compile(r"[Ii]nput (?:length )?\((\d{1,9}) tokens\)|(\d{1,9}) tokens from the input")
_ANSWER = re.compile(r"(\d{1,9}) tokens for the completion")


@dataclass(frozen=True, kw_only=True)
class Refused:
    """One prompt that is too long."""

    prompt: int
    """Its index in the workload."""
    file: str | None
    """On the host; None = it is of no file, or an older record."""
    line: int | None
    """In its file, from 1 on."""
    tokens: int | None
    """Its length; None = neither record nor server tells."""
    answer: int | None
    """Tokens of an answer that were asked for with it, where both together are too long."""
    counted: int | None
    """Its length as the server counts, with the tokens that it keeps free; None = not told."""
    takes: int
    """Tokens that the server takes, as it says itself."""

    @property
    def place(self) -> str:
        """Where it stands."""
        return f"prompt {self.prompt}" if self.file is None else f"line {self.line} of {self.file}"

    @property
    def words(self) -> str:
        """The same with its length."""
        length = "length not told" if self.tokens is None else f"{self.tokens} tokens"
        if self.tokens is not None and self.counted is not None and self.tokens < self.takes <= self.counted:
            length += f", {self.counted} with those that the server keeps free"
        return f"{self.place} ({length}{'' if self.answer is None else f' and {self.answer} of an answer'})"


def refused_of(workload: WorkloadFacts, requests: Sequence[RequestSample]) -> tuple[Refused, ...]:
    """Each such prompt once, in the workload's order."""
    found = {item.prompt: item for item in requests if is_too_long(item)}
    return tuple(_refused(workload, found[prompt]) for prompt in sorted(found))


def is_too_long(item: RequestSample) -> bool:
    """Whether the server said that it does not take so many tokens, before it made any."""
    return item.error is not None and not item.chunk_s and _TAKES.search(item.error) is not None


def too_long(refused: Sequence[Refused]) -> str:
    """e.g. `line 3 of /p.jsonl (1200 tokens) is too long for the 1024 tokens that the server takes`."""
    takes = " or ".join(str(size) for size in sorted({one.takes for one in refused}))
    verb = "is" if len(refused) == 1 else "are"
    return f"{_listed([one.words for one in refused])} {verb} too long for the {takes} tokens that the server takes"


def without(refused: Sequence[Refused]) -> str:
    """What to do about the prompts, e.g. `name a copy of /p.jsonl without line 3`."""
    files: dict[str, list[str]] = {}
    for one in refused:
        if one.file is not None:
            files.setdefault(one.file, []).append(str(one.line))
    if not files:
        return "leave the prompts out that are too long"
    copies = [
        f"a copy of {file} without line{'' if len(lines) == 1 else 's'} {_listed(lines)}"
        for file, lines in files.items()
    ]
    return f"name {' and '.join(copies)}"


def _listed(words: Sequence[str]) -> str:
    if len(words) > MOST_LINES:
        words = [*words[:MOST_LINES], f"{len(words) - MOST_LINES} more"]
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def _refused(workload: WorkloadFacts, item: RequestSample) -> Refused:
    told = item.error or ""
    takes, length, answer = _TAKES.search(told), _INPUT.search(told), _ANSWER.search(told)
    assert takes is not None
    said = None if length is None else int(length.group(1) or length.group(2))
    has_line = item.prompt < len(workload.lines) and bool(workload.files)
    is_second = workload.heldout_from is not None and item.prompt >= workload.heldout_from
    return Refused(
        prompt=item.prompt,
        file=workload.files[-1 if is_second else 0] if has_line else None,
        line=workload.lines[item.prompt] if has_line else None,
        tokens=said if item.prompt_tokens is None else item.prompt_tokens,
        answer=None if answer is None else int(answer.group(1)),
        counted=said,
        takes=int(takes.group(1)),
    )
