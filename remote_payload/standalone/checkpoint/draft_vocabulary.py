"""The drafter's own vocabulary: which target token each of its ids means, under every way to read d2t.

Every dialect means an offset: target id = draft id + d2t[draft id]. Exports that hold target ids instead, or garbage,
are found by what the readings lead to. Shapes: D draft ids, V target tokens.
"""

from dataclasses import dataclass

import torch

from remote_payload.failure import checkpoint_failure
from remote_payload.schema.standalone import GraphFlag, MapReading, Vocabulary, VocabularyFacts
from remote_payload.standalone.checkpoint.config import DrafterConfig
from remote_payload.standalone.checkpoint.weight_files import StoredTensor

MASKS = ("BOOL", "U8", "I8", "I16", "I32", "I64")
SENSIBLE_SHARE = 0.5
"""A reading that leads fewer ids than this share to tokens of their own is no reading of a vocabulary."""
MAP_NAME = "d2t"
"""SGLang takes any tensor with this in its name for the map, and no other."""


@dataclass(frozen=True, kw_only=True)
class DraftVocabulary:
    """The map as it was read."""

    readings: dict[Vocabulary, torch.Tensor]
    """Target token of each draft token (D,) int64, -1 where it leads nowhere: the chosen reading, SGLang's, and every
    sensible one that means something else."""
    flag: GraphFlag
    facts: VocabularyFacts
    offsets: torch.Tensor | None = None
    """d2t as it is stored, (D,) int64."""
    marked: torch.Tensor | None = None
    """The target tokens that t2d marks, ascending; None = there is no usable t2d."""
    warnings: tuple[str, ...] = ()

    @property
    def target_ids(self) -> torch.Tensor:
        """By the chosen reading, (D,)."""
        return self.readings[self.chosen]

    @property
    def chosen(self) -> Vocabulary:
        """Which reading is the checkpoint's own."""
        return "absolute" if self.flag.value == "absolute" else "offset"


def read_vocabulary(
    offsets: torch.Tensor | None, stored: StoredTensor | None, mask: StoredTensor | None, config: DrafterConfig
) -> DraftVocabulary:
    """Read d2t (D,), `stored` in the file, in every way; `mask` is t2d.

    Raises JobFailure(checkpoint) where no reading leads half of the ids to tokens of their own.
    """
    size, vocab = config.draft_vocab_size, config.vocab_size
    own = torch.arange(size)
    if size > vocab:
        raise checkpoint_failure(
            f"`draft_vocab_size` must be at most `vocab_size` = {vocab}, found: {size}",
            hint="is config.json that of these weights?",
        )
    if offsets is None:
        flag = GraphFlag(name="vocabulary", value="offset", source="tensors", evidence="no d2t: ids are the target's")
        facts = VocabularyFacts(draft_vocab_size=size, vocab_size=vocab, d2t=False, t2d_marked=_count(marked(mask)))
        return DraftVocabulary(readings={"offset": own}, flag=flag, facts=facts)
    values = offsets.to(torch.int64)
    ids = _every_way(values, vocab)
    tokens = marked(mask)
    facts = VocabularyFacts(
        draft_vocab_size=size,
        vocab_size=vocab,
        d2t=True,
        all_zero=bool((values == 0).all()),
        t2d_marked=_count(tokens),
        readings=tuple(_facts(kind, found, tokens) for kind, found in ids.items()),
    )
    chosen = _choose(ids, values, vocab)
    flag = _flag(chosen, ids, None if stored is None else stored.name)
    others = {
        kind: found
        for kind, found in ids.items()
        if (_sensible(found) or kind == flag.served) and not torch.equal(found, ids[chosen])
    }
    return DraftVocabulary(
        readings={chosen: ids[chosen]} | others,
        flag=flag,
        facts=facts,
        offsets=values,
        marked=tokens,
        warnings=_warnings(chosen, ids, tokens, masked=mask is not None),
    )


def marked(mask: StoredTensor | None) -> torch.Tensor | None:
    """The target tokens that a stored t2d (V,) marks, ascending; None where there is no usable one."""
    if mask is None or mask.dtype not in MASKS or len(mask.shape) != 1:
        return None
    return mask.read().ne(0).nonzero()[:, 0]


def every_reading(vocabulary: DraftVocabulary) -> dict[Vocabulary, torch.Tensor]:
    """Target token of each draft token (D,) under every reading, sensible or not; empty without a d2t."""
    return {} if vocabulary.offsets is None else _every_way(vocabulary.offsets, vocabulary.facts.vocab_size)


def _every_way(values: torch.Tensor, vocab: int) -> dict[Vocabulary, torch.Tensor]:
    own = torch.arange(len(values))
    return {"offset": _in_range(own + values, vocab), "absolute": _in_range(values, vocab), "identity": own}


def _in_range(ids: torch.Tensor, vocab: int) -> torch.Tensor:
    return torch.where((ids >= 0) & (ids < vocab), ids, -1)


def _distinct(ids: torch.Tensor) -> int:
    return len(torch.unique(ids[ids >= 0]))


def _sensible(ids: torch.Tensor) -> bool:
    return _distinct(ids) >= SENSIBLE_SHARE * len(ids)


def _whole(ids: torch.Tensor) -> bool:
    return _distinct(ids) == len(ids)


def _choose(ids: dict[Vocabulary, torch.Tensor], values: torch.Tensor, vocab: int) -> Vocabulary:
    """Offset, unless it is impossible and target ids are not."""
    if not _whole(ids["offset"]) and _whole(ids["absolute"]):
        return "absolute"
    if _sensible(ids["offset"]):
        return "offset"
    offset = torch.arange(len(values)) + values
    raise checkpoint_failure(
        f"`d2t` must lead to {len(values)} different target tokens of 0..{vocab - 1}; as an offset it leads to "
        f"{_distinct(ids['offset'])}, as target ids to: {_distinct(ids['absolute'])}",
        hint="d2t[i] is an offset: target id = i + d2t[i]; export the drafter again",
        details=(
            f"as an offset: {int(offset.min())}..{int(offset.max())}",
            f"as target ids: {int(values.min())}..{int(values.max())}",
        ),
    )


def _flag(chosen: Vocabulary, ids: dict[Vocabulary, torch.Tensor], stored_name: str | None) -> GraphFlag:
    evidence = "every engine and trainer reads d2t as an offset"
    contradicted = served = why = None
    if chosen == "absolute":
        evidence = f"d2t as an offset leads {_lost(ids['offset'])}, as target ids every id to a token of its own"
        contradicted = "every engine and trainer reads d2t as an offset"
        served, why = "offset", "SGLang adds each draft id to d2t; ids past the vocabulary end the server"
    if stored_name is not None and MAP_NAME not in stored_name and not torch.equal(ids["identity"], ids[chosen]):
        served, why = "identity", f"SGLang does not know a map named `{stored_name}` and skips it"
    return GraphFlag(
        name="vocabulary",
        value=chosen,
        source="dialect" if chosen == "offset" else "tensors",
        evidence=evidence,
        contradicted_by=contradicted,
        served=served,
        served_why=why,
    )


def _warnings(
    chosen: Vocabulary, ids: dict[Vocabulary, torch.Tensor], tokens: torch.Tensor | None, *, masked: bool
) -> tuple[str, ...]:
    told = []
    if chosen == "absolute":
        told.append(
            "d2t holds target ids, not offsets; the test reads it so, but every engine would add each draft id to it: "
            "subtract arange"
        )
    elif not _whole(ids["offset"]):
        told.append(f"d2t leads {_lost(ids['offset'])}; these ids can never be right")
    if masked and (tokens is None or not torch.equal(tokens, torch.unique(ids[chosen][ids[chosen] >= 0]))):
        told.append(
            "t2d names other target tokens than d2t leads to; the test used d2t, as engines do, but a trainer that "
            "masked by t2d trained on other tokens"
        )
    return tuple(told)


def _lost(ids: torch.Tensor) -> str:
    outside = int((ids < 0).sum())
    twice = len(ids) - outside - _distinct(ids)
    return f"{outside} of {len(ids)} ids outside the vocabulary and {twice} to a token that another leads to already"


def _facts(kind: Vocabulary, ids: torch.Tensor, tokens: torch.Tensor | None) -> MapReading:
    inside = ids[ids >= 0]
    return MapReading(
        reading=kind,
        in_range=len(inside),
        distinct=_distinct(ids),
        increasing=len(inside) == len(ids) and bool((ids[1:] > ids[:-1]).all()),
        agrees_with_t2d=None if tokens is None else torch.equal(tokens, torch.unique(inside)),
    )


def _count(tokens: torch.Tensor | None) -> int | None:
    return None if tokens is None else len(tokens)
