"""Facts of single tensors for the result: where they came from, their numbers, the map they make of the vocabulary."""

from dataclasses import replace
from typing import Literal

import torch

from remote_payload.schema.standalone import TensorFact, TensorStatistics, VocabularyFacts
from remote_payload.standalone.checkpoint.draft_vocabulary import DraftVocabulary, every_reading
from remote_payload.standalone.checkpoint.head_relation import head_relation
from remote_payload.standalone.checkpoint.shared_tensors import mean_cosine
from remote_payload.standalone.checkpoint.tensor_statistics import statistics_of
from remote_payload.standalone.checkpoint.weight_files import StoredTensor

HEAD = "lm_head.weight"


def fact_of(name: str, stored: StoredTensor, source: Literal["draft", "target"]) -> TensorFact:
    """What the result says of one tensor."""
    return TensorFact(name=name, stored_name=stored.name, shape=stored.shape, dtype=stored.dtype, source=source)


def statistics(weights: dict[str, torch.Tensor]) -> tuple[TensorStatistics, ...]:
    """Statistics of the drafter's own tensors; equal rows are looked for in lm_head alone."""
    return tuple(
        statistics_of(name, tensor, duplicates=name == HEAD)
        for name, tensor in weights.items()
        if tensor.is_floating_point() and name != "d2t"
    )


def vocabulary_facts(
    vocabulary: DraftVocabulary, head: torch.Tensor | None, teacher_head: torch.Tensor
) -> VocabularyFacts:
    """The map's facts, with how alike the drafter's head (D, H) and the teacher's (V, Ht) are under each reading."""
    facts = vocabulary.facts
    if head is not None:
        relation = head_relation(head, teacher_head, vocabulary.target_ids, vocabulary.marked)
        facts = replace(facts, head=relation)
    if head is None or head.shape[1] != teacher_head.shape[1] or not facts.readings:
        return facts
    ids = every_reading(vocabulary)
    return replace(
        facts,
        readings=tuple(
            replace(reading, head_cosine=mean_cosine(head, teacher_head, ids[reading.reading]))
            for reading in facts.readings
        ),
    )
