"""One prompt, and how it is read from a line of JSONL: a training row, a conversation or a text."""

import json
from dataclasses import dataclass
from typing import Any, Literal

from remote_payload.failure import JobFailure, rows_failure

Form = Literal["token_ids", "text", "messages", "random"]
SHAREGPT_ROLES = {"human": "user", "gpt": "assistant"}
LARGEST_ID = 2**31 - 1
KEYS_SHOWN = 10
CONVERSATION = ("conversation_id", "session_id")
"""What names the conversation that a prompt is a turn of; the first that a line has counts."""
KEYS = "`input_ids`, `messages`, `conversations`, `text` or `prompt`"


@dataclass(frozen=True, kw_only=True)
class Prompt:
    """One prompt, as ids or as text; `messages` until the served template has turned them into ids."""

    index: int
    input_ids: tuple[int, ...] | None = None
    text: str | None = None
    messages: tuple[dict[str, Any], ...] | None = None
    trained: "TrainedRow | None" = None
    """The training row that it is of, where that holds ids and messages both."""
    line: int | None = None
    """In the file that it was read from, from 1 on; None = of no file."""
    conversation: str | None = None
    """What it belongs to together with other prompts, e.g. the turns of one conversation; None = not told."""


@dataclass(frozen=True, kw_only=True)
class TrainedRow:
    """A training row's tokens, and the messages that they were made of."""

    ids: tuple[int, ...]
    """Prompt and answer."""
    prompt_tokens: int
    """Where its last answer begins."""
    messages: tuple[dict[str, Any], ...]
    """Up to the last question."""


def read_row(line: bytes, where: str) -> tuple[Form, Prompt]:
    """The prompt of one line; `where` names it in a message. Its index is set later. Raises JobFailure(rows).

    Lines of one `conversation_id` (or `session_id`) belong together.
    """
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise rows_failure(f"{where}: expected JSON, found: {error}") from None
    if not isinstance(row, dict):
        raise rows_failure(f"{where}: expected an object, found: {type(row).__name__}")
    belongs = _conversation(row, where)
    if row.get("input_ids") is not None:
        ids = _prompt_ids(row, where)
        return "token_ids", Prompt(index=0, input_ids=ids, conversation=belongs, trained=_trained(row, len(ids)))
    messages = _messages(row)
    if messages is not None:
        return "messages", Prompt(index=0, messages=_asked(messages, where), conversation=belongs)
    text = row.get("text", row.get("prompt"))
    if isinstance(text, str) and text:
        return "text", Prompt(index=0, text=text, conversation=belongs)
    raise rows_failure(f"{where}: expected {KEYS}, found: {_keys(row)}")


def _conversation(row: dict[str, Any], where: str) -> str | None:
    key = next((name for name in CONVERSATION if row.get(name) is not None), None)
    if key is None:
        return None
    told = row[key]
    if type(told) is not int and not (isinstance(told, str) and told):
        raise rows_failure(f"{where}: `{key}` must be a text or a whole number, found: {_short(told)}")
    return str(told)


def _prompt_ids(row: dict[str, Any], where: str) -> tuple[int, ...]:
    """The first `n_prompt_tokens`, else those before the first token that the loss mask counts, else all."""
    ids = row["input_ids"]
    if not isinstance(ids, list) or not all(type(token) is int and 0 <= token <= LARGEST_ID for token in ids):
        raise rows_failure(f"{where}: `input_ids` must be a list of token ids, found: {_short(ids)}")
    length, mask = row.get("n_prompt_tokens"), row.get("loss_mask")
    if length is None and mask is not None:
        if not isinstance(mask, list) or len(mask) != len(ids):
            raise rows_failure(
                f"{where}: `loss_mask` must be as long as `input_ids` ({len(ids)}), found: {_short(mask)}"
            )
        length = next((index for index, counts in enumerate(mask) if counts), len(ids))
    if length is None:
        length = len(ids)
    if type(length) is not int or not 1 <= length <= len(ids):
        raise rows_failure(f"{where}: the prompt must be 1..{len(ids)} tokens long, found: {_short(length)}")
    return tuple(ids[:length])


def _trained(row: dict[str, Any], prompt_tokens: int) -> TrainedRow | None:
    """None where it holds no messages that can be asked: its ids are a prompt all the same."""
    try:
        messages = _asked(_messages(row), "")
    except JobFailure:
        return None
    mask = row.get("loss_mask")
    if isinstance(mask, list) and 1 in mask and len(mask) == len(row["input_ids"]):
        end = len(mask) - mask[::-1].index(1)  # of the last answer
        prompt_tokens = next((at for at in range(end, 0, -1) if mask[at - 1] != 1), prompt_tokens)
    return TrainedRow(ids=tuple(row["input_ids"]), prompt_tokens=prompt_tokens, messages=messages)


def _messages(row: dict[str, Any]) -> object:
    return row.get("messages", row.get("conversations"))


def _asked(messages: object, where: str) -> tuple[dict[str, Any], ...]:
    """The conversation up to its last question: the answer it ends with is what the server is asked for."""
    if not isinstance(messages, list) or not all(isinstance(turn, dict) for turn in messages):
        raise _turns_failure(messages, where)
    turns = [_turn(turn) for turn in messages]
    if not all(isinstance(turn.get("role"), str) for turn in turns):
        raise _turns_failure(messages, where)
    while turns and turns[-1]["role"] == "assistant":
        turns.pop()
    if not turns:
        raise _turns_failure(messages, where)
    return tuple(turns)


def _turn(turn: dict[str, Any]) -> dict[str, Any]:
    """ShareGPT's `from` and `value` in the chat endpoint's words; other turns as they are."""
    if "role" in turn or "from" not in turn:
        return turn
    said = turn["from"]
    role = SHAREGPT_ROLES.get(said, said) if isinstance(said, str) else said
    return {"role": role, "content": turn.get("value")}


def _turns_failure(messages: object, where: str) -> JobFailure:
    return rows_failure(
        f"{where}: messages must be turns with `role` and `content`, a question last: {_short(messages)}"
    )


def _keys(row: dict[str, Any]) -> str:
    shown = [key if len(key) <= 40 else f"{key[:40]}..." for key in list(row)[:KEYS_SHOWN]]
    more = f" and {len(row) - KEYS_SHOWN} more" if len(row) > KEYS_SHOWN else ""
    return ", ".join(shown) + more or "nothing"


def _short(value: object) -> str:
    shown = repr(value)
    return shown if len(shown) <= 80 else f"{shown[:80]}..."
