"""The vocabulary map that lm_head's own rows tell, where they say that d2t is wrong: what it leads to, mended.

Only with such a map can be read which states a drafter was trained on while d2t leads elsewhere: no reading predicts
anything before. Shapes: D draft ids.
"""

import torch

from remote_payload.schema.standalone import HeadRelation, VocabularyFacts
from remote_payload.standalone.checkpoint.draft_vocabulary import DraftVocabulary

RIGHT = 0.9
"""Share of the rows looked at that must be related to their tokens before a map is right, and another one wrong."""


def every_map(vocabulary: DraftVocabulary, facts: VocabularyFacts) -> dict[str, torch.Tensor]:
    """Target token of each draft id (D,) int64, -1 = none: by every reading of d2t, and `mended` where there is one."""
    found = {str(kind): ids for kind, ids in vocabulary.readings.items()}
    mended = mended_map(vocabulary.target_ids, vocabulary.marked, facts.head, facts.vocab_size)
    return found if mended is None else found | {"mended": mended}


def mended_map(
    ids: torch.Tensor, marked: torch.Tensor | None, head: HeadRelation | None, vocab: int
) -> torch.Tensor | None:
    """Target token of each draft id (D,) int64; `ids` as d2t is read, `marked` as t2d tells it.

    None where the head speaks for d2t, for no other map, or for none that leads every id to a token of its own.
    """
    if head is None or not head.sampled or head.related >= RIGHT * head.sampled:
        return None
    found = None
    if marked is not None and (head.t2d_related or 0) >= RIGHT * head.sampled:
        found = marked.to(torch.int64)
    elif head.shifts:
        found = _shifted(ids, head)
    elif head.row_shift is not None:
        found = ids.roll(head.row_shift)  # row i + k belongs to the token that d2t gives draft id i
    if found is None or len(found) != len(ids):
        return None
    whole = bool(((found >= 0) & (found < vocab)).all()) and len(torch.unique(found)) == len(found)
    return found if whole and not torch.equal(found, ids) else None


def _shifted(ids: torch.Tensor, head: HeadRelation) -> torch.Tensor:
    found = ids.clone()
    for run in head.shifts:
        found[run.first : run.last + 1] += run.shift
    return found
