"""One row as its file holds it: tokens, mask and padding settled, states not looked at yet. One function a form."""

from dataclasses import dataclass, replace
from typing import Any

import torch

from remote_payload.schema.standalone import DataDialectFacts
from remote_payload.standalone.rows.dialects import parts
from remote_payload.standalone.rows.files import RowFile, RowFolder
from remote_payload.standalone.rows.hidden_files import ANSWERS, DIALECT, SERVED, load_tensors
from remote_payload.standalone.rows.load import load_dict
from remote_payload.standalone.rows.masks import NAME, ORDINARY, MaskSigns, contradiction, read_mask
from remote_payload.standalone.rows.shards import read_sample, real_part
from remote_payload.standalone.rows.values import RowError, first_of, integers

PADDING_RUN = 8
"""From so many equal, unmasked tokens at a row's end on they are padding: no chat template repeats one so often."""


@dataclass(frozen=True, kw_only=True)
class RawRow:
    """What a file says about a row; positions `start:stop` of what is `stored` are the row, the others padding."""

    tokens: torch.Tensor  # (stop - start,) int64
    loss_mask: torch.Tensor  # (stop - start,) bool
    states: object
    final: object | None
    answers: torch.Tensor | None
    dialect: DataDialectFacts
    stored: int
    start: int
    stop: int
    mask_signs: MaskSigns = ORDINARY
    prompt_tokens: int | None = None
    source: str | None = None


def read_raw(file: RowFile, folder: RowFolder) -> RawRow:
    """Read one row's file and its line. Raises RowError, or what damaged files raise."""
    if file.form == "shard":
        return _from_shard(file, folder)
    if file.form == "hidden":
        return _from_hidden(file, folder)
    return _from_dict(file, folder)


def _from_shard(file: RowFile, folder: RowFolder) -> RawRow:
    if folder.manifest is None:
        raise RowError("its folder has no manifest.json of Automodel")
    sample = read_sample(file.path, file.index, folder.manifest)
    length = len(sample.tokens)
    return RawRow(
        tokens=sample.tokens, loss_mask=sample.loss_mask, states=sample.states, final=None, answers=sample.answers,
        dialect=folder.manifest.dialect, stored=length, start=0, stop=length,
    )  # fmt: skip


def _from_hidden(file: RowFile, folder: RowFolder) -> RawRow:
    value = load_tensors(file.path)
    tokens, states = integers(value, "token_ids"), first_of(value, ("hidden_states",))
    if folder.lines is None:
        raise RowError("there is neither a prepared dataset nor a merged JSONL with its loss mask")
    line = folder.lines.like(tokens, file.number)
    mask, signs = read_mask({NAME: first_of(line, (NAME,))}, {}, len(tokens))
    answers = integers(value, ANSWERS) if ANSWERS in value else None
    if answers is not None and len(answers) != len(tokens):
        raise RowError(f"its teacher's choices must be as many as its tokens, {len(tokens)}, found: {len(answers)}")
    return RawRow(
        tokens=tokens,
        loss_mask=mask,
        mask_signs=signs,
        states=states,
        final=None,
        answers=answers,
        dialect=DIALECT if answers is None else SERVED,
        stored=len(tokens),
        start=0,
        stop=len(tokens),
        **_told(line),
    )


def _from_dict(file: RowFile, folder: RowFolder) -> RawRow:
    value = load_dict(file.path)
    line = _line(file, folder, value)
    own = integers(value, "input_ids") if "input_ids" in value else None
    listed = integers(line, "input_ids") if "input_ids" in line else None
    tokens = own if own is not None else integers(line, "input_ids")
    mask, signs = read_mask(value, line, len(tokens))
    stored, start, stop = len(tokens), 0, len(tokens)
    if "attention_mask" in value:
        attention = integers(value, "attention_mask")
        if len(attention) != stored:
            raise RowError(f"its attention mask must have {stored} entries as its tokens, found: {len(attention)}")
        start, stop = real_part(attention)
    elif listed is None:
        stop = _without_run(tokens, mask)
    if own is not None and listed is not None:
        start, stop = _as_listed(own, listed, start, stop)
    found, part = parts(value, suffix(file)), slice(start, stop)
    mask = mask[part] if len(mask) == stored else mask
    return RawRow(
        tokens=tokens[part],
        loss_mask=mask,
        mask_signs=replace(signs, contradicts=contradiction(value, line, mask, part)),
        states=found.states,
        final=found.final,
        answers=None,
        dialect=found.dialect,
        stored=stored,
        start=start,
        stop=stop,
        **_told(line),
    )


def suffix(file: RowFile) -> str:
    """`.pt` or `.ckpt`, also of a gzip file."""
    return ".pt" if ".pt" in file.path.suffixes[-2:] else ".ckpt"


def _line(file: RowFile, folder: RowFolder, value: dict[str, Any]) -> dict[str, Any]:
    """The row's line of the merged JSONL: by its number, or by its tokens where its name has none."""
    if folder.lines is None:
        return {}
    if file.number is not None:
        return folder.lines.of(file.number)
    return folder.lines.like(integers(value, "input_ids"), None)


def _as_listed(own: torch.Tensor, listed: torch.Tensor, start: int, stop: int) -> tuple[int, int]:
    """The part of a row's own tokens that is its line; what follows may only be padding, one token again and again."""
    if torch.equal(own[start:stop], listed):
        return start, stop
    rest = own[len(listed) :]
    if start == 0 and torch.equal(own[: len(listed)], listed) and bool((rest == rest[:1]).all()):
        return 0, len(listed)
    raise RowError("its input_ids differ from its line of the merged JSONL")


def _without_run(tokens: torch.Tensor, mask: torch.Tensor) -> int:
    """Where padding begins: behind the first of many equal, unmasked tokens at the end."""
    length = len(tokens)
    if length < PADDING_RUN or len(mask) != length:
        return length
    other = (tokens.ne(tokens[-1]) | mask).nonzero()[:, 0]
    first = int(other[-1]) + 1 if len(other) else length
    return first + 1 if length - first >= PADDING_RUN else length


def _told(line: dict[str, Any]) -> dict[str, Any]:
    """What a merged line says about its row besides tokens and mask."""
    prompt, source = line.get("n_prompt_tokens"), line.get("source")
    return {
        "prompt_tokens": prompt if isinstance(prompt, int) else None,
        "source": source if isinstance(source, str) else None,
    }
