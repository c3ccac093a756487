"""The embedding output of rows that lack it: HF `hidden_states[0]` of a token is its row of the target's embed_tokens.

So it needs no capture, only the target's table. Not covered: targets that scale or norm that row before their first
layer (Gemma, Granite, MiniCPM and their like); of these nothing is computed, and it is said.
"""

import torch

from remote_payload.schema.job import StandaloneJob
from remote_payload.standalone.checkpoint.load import Checkpoint
from remote_payload.standalone.checkpoint.target_files import TargetFiles
from remote_payload.standalone.journal import Journal

SCALES = ("embedding_multiplier", "embedding_multiplier_scale", "scale_emb", "embedding_scale", "scale_embedding",
          "mup_enabled", "embed_scale")  # fmt: skip
"""Keys of a target's config.json that scale its embedding output, unless they are 1, false or absent."""
SCALED = ("Gemma", "Bloom")
"""Beginnings of classes that scale or norm it without a key."""


def added_embedding(job: StandaloneJob, checkpoint: Checkpoint, journal: Journal | None) -> torch.Tensor | None:
    """The table (V, Ht) that `add_embedding` asks for; None where it is not asked for, or, told, does not give it."""
    if not job.add_embedding:
        return None
    why = scaled_by(checkpoint.target)
    table = checkpoint.target.embedding(checkpoint.config)
    if why is None and table is not None:
        return table
    if journal is not None:
        why = why or "the target has no embed_tokens of plain floats and the states' width"
        journal.warn("add_embedding", f"the embedding output is not added to the rows: {why}")
    return None


def scaled_by(target: TargetFiles) -> str | None:
    """Why the table's rows are not the embedding output, e.g. `` `scale_emb` of its config.json is 12 ``."""
    for key in SCALES:
        value = target.value.get(key)
        if value is not None and value is not False and value != 1:
            return f"`{key}` of its config.json is {value!s:.40}"
    if target.architecture is not None and target.architecture.startswith(SCALED):
        return f"a {target.architecture} does not hand its table's rows to its first layer as they are"
    return None
