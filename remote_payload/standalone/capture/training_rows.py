"""The training rows that served states are held against, and what of the target's folder is needed to read them."""

import contextlib
import json
import os
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import torch

from remote_payload.failure import JobFailure, checkpoint_failure, job_failure, rows_failure
from remote_payload.schema.capture_job import CaptureJob
from remote_payload.schema.target_states import HINT, beyond_layers, other_width
from remote_payload.served_capture.fc_shape import fc_shape
from remote_payload.standalone.checkpoint.target_files import read_target
from remote_payload.standalone.checkpoint.weight_files import FLOATS
from remote_payload.standalone.rows.files import find_rows
from remote_payload.standalone.rows.row import Row, RowReader


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """What the models' configs say."""

    hidden_size: int
    vocab_size: int
    layers: int | None = None
    """Of the target; None = its config does not tell."""


def sizes_of(target_config: str | None, draft_config: str | None) -> Sizes:
    """Width of a state and vocabulary, by the target's config, else by the drafter's. Raises JobFailure(checkpoint)."""
    target, draft = _object(target_config), _object(draft_config)
    text = target.get("text_config") if isinstance(target.get("text_config"), dict) else target
    assert isinstance(text, dict)
    hidden = text.get("hidden_size") or draft.get("target_hidden_size") or draft.get("hidden_size")
    vocabulary = text.get("vocab_size") or draft.get("vocab_size")
    if not isinstance(hidden, int) or not isinstance(vocabulary, int) or hidden < 1 or vocabulary < 1:
        raise checkpoint_failure(
            "neither the target's config.json nor the drafter's says `hidden_size` and `vocab_size`",
            hint="give the target's folder on this host as --model",
        )
    layers = text.get("num_hidden_layers")
    known = type(layers) is int and layers > 0
    return Sizes(hidden_size=hidden, vocab_size=vocabulary, layers=layers if known else None)


def require_possible(job: CaptureJob, sizes: Sizes) -> None:
    """Raise JobFailure(job) for states that a target of so many layers, or the drafter's fc, cannot mean."""
    columns = None if job.draft is None else fc_shape(job.draft)
    takes, rest = (0, 1) if columns is None else divmod(columns[1], sizes.hidden_size)
    wrong = beyond_layers("`states`", job.states or (), sizes.layers)
    if job.trained is not None:
        wrong = wrong or beyond_layers("`trained`", job.trained, sizes.layers)
        wrong = wrong or other_width("`trained`", job.trained, None if rest else takes)
    if wrong is not None:
        raise job_failure(wrong, hint=HINT)


def _object(text: str | None) -> dict[str, Any]:
    with contextlib.suppress(ValueError, RecursionError):
        value = json.loads(text or "{}")
        return value if isinstance(value, dict) else {}
    return {}


def embedding_of(model: str | None, sizes: Sizes) -> torch.Tensor | None:
    """The target's embedding (V, Ht); None where its folder is not here or has none of plain floats."""
    if model is None or not Path(os.path.expanduser(model), "config.json").is_file():
        return None
    try:
        stored = read_target(Path(os.path.expanduser(model))).find("embed_tokens.weight")
    except JobFailure:  # SGLang serves weights of more kinds than are read here
        return None
    if stored is None or stored.dtype not in FLOATS or stored.shape[-1] != sizes.hidden_size:
        return None
    return stored.read()


def training_rows(job: CaptureJob, sizes: Sizes) -> tuple[tuple[Row, ...], tuple[str, ...]]:
    """The first usable rows, and why others before them were skipped. Raises JobFailure(rows)."""
    if job.rows is None:
        return (), ()
    merged = None if job.merged is None else Path(os.path.expanduser(job.merged))
    folder = find_rows(Path(os.path.expanduser(job.rows)), merged, None)
    reader = RowReader(folder=folder, target_hidden_size=sizes.hidden_size, vocab_size=sizes.vocab_size, steps=1)
    skipped: list[str] = []

    def usable() -> Any:
        for row in reader.rows(None if job.states is None else len(job.states)):
            if isinstance(row, Row):
                yield row
            else:
                skipped.append(f"{row.name}: {row.reason}")

    rows = tuple(islice(usable(), job.max_rows))
    if not rows:
        raise rows_failure(f"no row can be used: {job.rows}", details=tuple(skipped[:5]))
    if len({row.states.shape[1] for row in rows}) > 1:
        raise rows_failure(
            f"rows must hold equally many captured states: {job.rows}",
            hint="`states` names them, and rows of another number are skipped",
        )
    return rows, tuple(skipped)
