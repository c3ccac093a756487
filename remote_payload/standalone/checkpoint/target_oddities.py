"""Where the target's config.json contradicts its own tensors: told, as what is read from it may be wrong then."""

import json
import re
from collections.abc import Iterator
from typing import Any

from remote_payload.standalone.checkpoint.config_values import told
from remote_payload.standalone.checkpoint.target_files import TargetFiles
from remote_payload.standalone.checkpoint.weight_files import INDEX

LAYER = re.compile(r"(?:^|\.)layers\.(\d{1,6})\.")
OTHER_PARTS = ("visual", "vision", "audio", "encoder")


def target_oddities(target: TargetFiles) -> tuple[str, ...]:
    """What is odd about the target's config.json, a sentence each."""
    return tuple(f"the target's config.json: {text}" for text in _oddities(target))


def _oddities(target: TargetFiles) -> Iterator[str]:
    value = target.value
    if not target.has_class:
        yield "`architectures` must be a list of class names; which layers SGLang captures cannot be told"
    for key in ("vocab_size", "num_hidden_layers"):
        if value.get(key) is not None and not _is_count(value[key]):
            yield f"`{key}` must be a positive whole number, found: {told(value[key])}"
    head, vocab = target.find("lm_head.weight"), value.get("vocab_size")
    if head is not None and _is_count(vocab) and head.shape[:1] != (vocab,):
        yield f"`vocab_size` is {vocab}, its {head.name} has another number of rows: {head.shape[0]}"
    listed, layers = _listed_layers(target), value.get("num_hidden_layers")
    if listed and isinstance(layers, int) and layers > listed:
        yield f"`num_hidden_layers` is {layers}, its {INDEX} lists fewer layers: {listed}"
    if listed and isinstance(layers, int) and 0 < layers < listed and not value.get("num_nextn_predict_layers"):
        yield f"`num_hidden_layers` is {layers}, its {INDEX} lists more layers: {listed}"


def _is_count(found: Any) -> bool:
    return isinstance(found, int) and not isinstance(found, bool) and found > 0


def _listed_layers(target: TargetFiles) -> int:
    """How many layers of the text model the index counts up to; 0 = there is no index, which alone names them all."""
    try:
        names = json.loads((target.folder / INDEX).read_text(encoding="utf-8"))["weight_map"]
    except FileNotFoundError:
        return 0  # a broken one was refused when the tensors were listed
    numbers = [
        int(match[1])
        for name in names
        if not any(part.startswith(OTHER_PARTS) for part in name.split(".")) and (match := LAYER.search(name))
    ]
    return max(numbers, default=-1) + 1
