"""What is odd about rows as data: duplicates, train rows among the held-out ones, truncation, where masks begin.

Only hashes and small counts are kept, whatever the number of rows.
"""

from collections import Counter
from collections.abc import Iterable
from typing import Literal, get_args

import torch

from remote_payload.schema.standalone import MaskEdge, RowsLint, SkippedRow
from remote_payload.standalone.rows.row import Row
from remote_payload.standalone.rows.values import LENGTHS_DIFFER, NOT_FINITE, sha256_of

Place = Literal["two_before", "before", "first", "second", "last", "after"]
PLACES: tuple[Place, ...] = get_args(Place)
EDGE_TOKENS = 4096
"""Different tokens counted at one place at most: templates have few, and answers need not all be kept."""


def tokens_sha256(row: Row) -> str:
    """Hash of a row's token ids as little-endian int64: the same text has the same one, whatever file it is in."""
    return sha256_of(row.tokens)


class Lint:
    """Looks at the usable rows of one split, one by one; `train` is that of the train rows, complete."""

    def __init__(self, train: "Lint | None" = None) -> None:
        self._train = train
        self.rows: set[str] = set()
        self.prompts: set[str] = set()
        self._duplicates = self._also_in_train = self._prompts_in_train = 0
        self._lengths: Counter[int] = Counter()
        self._cut: Counter[int] = Counter()
        self._masks: Counter[str] = Counter()
        self._responded: set[int] = set()
        self._responses: Counter[Place] = Counter()
        self._edges: dict[Place, Counter[int]] = {place: Counter() for place in PLACES}

    def add(self, row: Row) -> None:
        """Take one row in."""
        length, mask = len(row.tokens), row.loss_mask
        self._lengths[length] += 1
        self._cut[length] += bool(mask[-1])
        self._responded.update(row.tokens[mask].tolist())
        self._add_mask(row)
        self._add_hashes(row)
        for start, stop in _runs(mask):
            self._add_edges(row.tokens, start, stop)

    def facts(self, skipped: Iterable[SkippedRow] = ()) -> RowsLint:
        """What was found; `skipped` are the rows that could not be used. At least one row must have been added."""
        reasons = [row.reason for row in skipped]
        longest = max(self._lengths)
        train = self._train
        return RowsLint(
            with_nan=sum(reason.startswith(NOT_FINITE) for reason in reasons),
            lengths_differ=sum(reason.startswith(LENGTHS_DIFFER) for reason in reasons),
            longest=longest,
            at_longest=self._lengths[longest],
            cut_at_longest=self._cut[longest],
            distinct_response_tokens=len(self._responded),
            duplicates=self._duplicates,
            also_in_train=None if train is None else self._also_in_train,
            prompts_in_train=None if train is None else self._prompts_in_train,
            edges=tuple(self._edge(place) for place in PLACES if self._responses[place]),
            mask_at_first_token=self._masks["first"],
            unmarked_at_last_token=self._masks["last"],
            without_mask=self._masks["none"],
            masks_contradict=self._masks["other"] + self._masks["inverse"],
            masks_inverse=self._masks["inverse"],
            odd_mask_values=self._masks["odd"],
            prompts_stated=self._masks["stated"],
        )

    def warnings(self) -> list[str]:
        """What was odd about masks and changes what is judged."""
        told, rows = self._masks, sum(self._lengths.values())
        warnings = []
        if 0 < told["none"] < rows:
            warnings.append(f"{told['none']} of {rows} rows hold no loss mask; all their tokens were judged")
        if told["other"] or told["inverse"]:
            warnings.append(
                f"the loss mask of {told['other'] + told['inverse']} of {rows} rows differs from that of the merged "
                f"JSONL, which was used; it is the very inverse in {told['inverse']}"
            )
        if told["odd"]:
            warnings.append(
                f"the loss mask of {told['odd']} of {rows} rows holds numbers other than 0 and 1; all but 0 were taken "
                "as marked"
            )
        return warnings

    def _add_mask(self, row: Row) -> None:
        mask, signs = row.loss_mask, row.mask_signs
        self._masks["first"] += bool(mask[0])
        self._masks["last"] += not bool(mask[-1])
        self._masks["none"] += not signs.stored
        self._masks["odd"] += signs.odd_values
        self._masks["stated"] += row.prompt_stated
        if signs.contradicts is not None:
            self._masks[signs.contradicts] += 1

    def _add_hashes(self, row: Row) -> None:
        first = int(row.loss_mask.to(torch.int64).argmax())
        tokens, prompt = sha256_of(row.tokens), sha256_of(row.tokens[:first]) if first else None
        self._duplicates += tokens in self.rows
        self.rows.add(tokens)
        if prompt is not None:
            self.prompts.add(prompt)
        if self._train is not None:
            self._also_in_train += tokens in self._train.rows
            self._prompts_in_train += prompt in self._train.prompts

    def _add_edges(self, tokens: torch.Tensor, start: int, stop: int) -> None:
        """A response of one token has no second one, and its last one is its first."""
        places: dict[Place, int] = {"two_before": start - 2, "before": start - 1, "first": start, "after": stop}
        if stop - start > 1:
            places |= {"second": start + 1, "last": stop - 1}
        for place, at in places.items():
            if 0 <= at < len(tokens):
                self._responses[place] += 1
                token, counts = int(tokens[at]), self._edges[place]
                if token in counts or len(counts) < EDGE_TOKENS:
                    counts[token] += 1

    def _edge(self, place: Place) -> MaskEdge:
        token, count = self._edges[place].most_common(1)[0]
        return MaskEdge(place=place, responses=self._responses[place], most_common=count, token=token)


def _runs(mask: torch.Tensor) -> list[tuple[int, int]]:
    """The responses of a row: runs of set mask (T,), as half-open ranges."""
    padded = torch.nn.functional.pad(mask.to(torch.int8), (1, 1))
    edges = (padded[1:] - padded[:-1]).nonzero()[:, 0].tolist()
    return list(zip(edges[::2], edges[1::2], strict=True))
