"""All figures of one reading of a standalone test, counted row by row so that readings can be paired."""

from collections.abc import Sequence
from dataclasses import dataclass

from orchestrator.compare.acceptance import RowCounts, conditional_acceptance, count_row, step_accuracy
from orchestrator.compare.chains import Row, chains_of, masked, unpack_row
from orchestrator.compare.stats import Estimate, Proportion, bounded, paired_difference, paired_ratio, pooled_ratio
from orchestrator.compare.walk import Walk, serving_walks, total
from remote_payload.schema import ReadingHits, RowFacts


@dataclass(frozen=True, kw_only=True)
class ReadingFigures:
    """One reading over all its rows; `counts` and `requests` have one entry a row, in the run's row order."""

    reading: str
    steps: int
    counts: tuple[RowCounts, ...]
    requests: tuple[tuple[Walk, ...], ...]
    """The serving walks of a row's responses, each a request of its own."""
    max_new_tokens: int | None = None
    """Tokens after which a request was stopped, the prefill's included; None = at the end of its response."""

    @property
    def walks(self) -> tuple[Walk, ...]:
        """A row's walks added up, a row each."""
        return tuple(total(walks, self.steps) for walks in self.requests)

    @property
    def first_step(self) -> Proportion:
        """Step-1 accuracy over response positions, each counted once, with the Wilson interval."""
        return step_accuracy(self.counts)[0]

    @property
    def conditional(self) -> tuple[Proportion, ...]:
        """Acceptance of each step given that all earlier steps hit."""
        return conditional_acceptance(self.counts)

    @property
    def accept_length_mean(self) -> Estimate:
        """1 + leading hits, mean over the response positions whose chain is whole; interval over rows."""
        return bounded(pooled_ratio(*mean_sums(self)), 1, self.steps + 1)

    @property
    def accept_length_walk(self) -> Estimate:
        """1 + accepted / verify steps of the serving walk, pooled over requests; interval over rows."""
        return bounded(pooled_ratio(*walk_sums(self)), 1, self.steps + 1)

    @property
    def walk(self) -> Walk:
        """The serving walks of all rows added up."""
        return total(self.walks, self.steps)


@dataclass(frozen=True, kw_only=True)
class Coverage:
    """Shares over the response tokens t (t >= 1) of all rows."""

    response_tokens: int
    out_of_vocabulary: int
    """Teacher's choices y_t that the drafter cannot propose."""
    greedy_rows: int
    """Rows whose response is the target's own greedy choice throughout: on these the walk is exact."""
    rows: int


def reading_figures(
    reading: str, rows: Sequence[RowFacts], hits: Sequence[ReadingHits], *, max_new_tokens: int | None = None
) -> ReadingFigures:
    """Figures of one reading; `max_new_tokens` as a server's, for the walk.

    Raises InvalidRunError where its hits are missing or do not fit the rows.
    """
    chains = chains_of(reading, rows, hits)
    return ReadingFigures(
        reading=reading,
        steps=chains[0].steps,
        counts=tuple(count_row(item) for item in chains),
        requests=tuple(serving_walks(item, max_new_tokens=max_new_tokens) for item in chains),
        max_new_tokens=max_new_tokens,
    )


def coverage(rows: Sequence[RowFacts]) -> Coverage:
    """Vocabulary coverage and how many rows are greedy."""
    tokens = outside = greedy = 0
    for facts in rows:
        row = unpack_row(facts)
        response = row.loss_mask.copy()
        response[0] = False  # x_0 follows nothing
        tokens += int(response.sum())
        outside += int((response & ~row.in_vocab).sum())
        greedy += _is_greedy(row)
    return Coverage(response_tokens=tokens, out_of_vocabulary=outside, greedy_rows=greedy, rows=len(rows))


def first_step_sums(figures: ReadingFigures) -> tuple[list[int], list[int]]:
    """A row's (hits, positions) at step 1."""
    return [row.hits[0] for row in figures.counts], [row.n[0] for row in figures.counts]


def mean_sums(figures: ReadingFigures) -> tuple[list[int], list[int]]:
    """A row's (whole chains + their leading hits, whole chains)."""
    return [row.whole + row.whole_leading for row in figures.counts], [row.whole for row in figures.counts]


def walk_sums(figures: ReadingFigures) -> tuple[list[int], list[int]]:
    """A row's (verify steps + accepted, verify steps)."""
    return [walk.verifies + walk.accepted for walk in figures.walks], [walk.verifies for walk in figures.walks]


def same_rows(a: ReadingFigures, b: ReadingFigures) -> bool:
    """Whether both were measured on the same rows (by name) with the same counted positions, in the same order."""
    return [(row.row, row.n[0]) for row in a.counts] == [(row.row, row.n[0]) for row in b.counts]


def first_step_difference(a: ReadingFigures, b: ReadingFigures, confidence: float) -> Estimate:
    """Step-1 accuracy of a minus that of b, paired by row."""
    return paired_difference(first_step_sums(a), first_step_sums(b), confidence)


def walk_ratio(a: ReadingFigures, b: ReadingFigures, confidence: float) -> Estimate:
    """Accept length (walk) of a over that of b, minus 1, paired by row."""
    return paired_ratio(walk_sums(a), walk_sums(b), confidence)


def _is_greedy(row: Row) -> bool:
    import numpy as np  # noqa: PLC0415

    at = np.arange(row.tokens)
    return bool(row.greedy[masked(row.loss_mask, at + 1)].all())
