"""Whether the drafter's lm_head and its vocabulary map belong together, by how its tokens are alike.

Whatever a head was trained from, tokens that follow the same texts get similar rows. So the cosines among the drafter's
rows correlate with the cosines among the target's rows of the same tokens (representational similarity; Kriegeskorte,
Mur & Bandettini 2008), and with those of other tokens they do not. Shapes: N sampled draft ids, D draft tokens, V
target tokens, H and Ht the heads' widths.
"""

import math

import torch

from remote_payload.schema.standalone import HeadRelation, HeadShift
from remote_payload.standalone.checkpoint.tensor_statistics import spread

SAMPLE = 1024
"""Draft ids looked at: a matrix of N * N cosines a head."""
FEWEST = 256
"""Fewer tell too little."""
WINDOW = 64
"""Consecutive sampled ids that are shifted together: chance correlations of their means stay below 0.1."""
SHIFTS = (-2, -1, 1, 2)
CHANCE = 5.0
"""Standard deviations of chance, each 1 / sqrt N."""
CLEAR = 0.25
"""By so much another place must fit better to be told: a third of what sound heads show, eight times chance."""


def head_relation(
    head: torch.Tensor, theirs: torch.Tensor, ids: torch.Tensor, marked: torch.Tensor | None
) -> HeadRelation | None:
    """The relation of the drafter's `head` (D, H) to the target's `theirs` (V, Ht) under the map `ids` (D,), -1 = none.

    `marked` are the target tokens that t2d marks, ascending; None = no t2d. None where there are too few ids.
    """
    at = spread(len(head), SAMPLE)
    at = at[ids[at] >= 0]
    if len(at) < FEWEST:
        return None
    own, other = cosines(head[at]), cosines(theirs[ids[at]])
    found = row_correlations(own, other)
    related = _related(own, other, found)
    shifts, row_shift = _shifts(head, theirs, ids, at), None
    rolled, fit = _row_shift(head, other, at)
    if fit > max(float(found.median()), _mean_fit(shifts, len(at))) + CLEAR:
        shifts, row_shift = (), rolled
    marks = marked if marked is not None and len(marked) == len(head) and not torch.equal(marked, ids) else None
    by_marks = None if marks is None else cosines(theirs[marks[at]])
    told = None if by_marks is None else row_correlations(own, by_marks)
    return HeadRelation(
        sampled=len(at),
        related=int(related.sum()),
        correlation=float(found.median()),
        elsewhere=_elsewhere(own, other, related),
        shifts=shifts,
        row_shift=row_shift,
        t2d_related=None if by_marks is None or told is None else int(_related(own, by_marks, told).sum()),
        t2d_correlation=None if told is None else float(told.median()),
    )


def cosines(rows: torch.Tensor) -> torch.Tensor:
    """Cosines (N, N) among rows (N, H), each less their mean: what all rows share tells none apart."""
    rows = rows.float()
    rows = rows / rows.abs().max().clamp(min=torch.finfo(torch.float32).tiny)  # squares stay finite
    rows = torch.nn.functional.normalize(rows - rows.mean(dim=0), dim=1)
    return rows @ rows.T


def row_correlations(own: torch.Tensor, other: torch.Tensor, columns: torch.Tensor | None = None) -> torch.Tensor:
    """Correlation (N,) of the rows of two matrices of cosines (N, N), over `columns` (N,) bool but the diagonal."""
    mine, theirs = (_centred(matrix, columns) for matrix in (own, other))
    return (mine * theirs).sum(dim=1)


def _centred(matrix: torch.Tensor, columns: torch.Tensor | None) -> torch.Tensor:
    """Each row (N,) less its mean and of length 1, over `columns` but the diagonal; 0 elsewhere."""
    used = ~torch.eye(len(matrix), dtype=torch.bool)
    used = (used if columns is None else used & columns).float()
    mean = (matrix * used).sum(dim=1, keepdim=True) / used.sum(dim=1, keepdim=True).clamp(min=1)
    return torch.nn.functional.normalize((matrix - mean) * used, dim=1)


def _related(own: torch.Tensor, other: torch.Tensor, found: torch.Tensor) -> torch.Tensor:
    """Which ids (N,) stand clear of chance, judged once more by those that do: wrong ones blur the others."""
    first = found > CHANCE / math.sqrt(len(found))
    if int(first.sum()) < WINDOW:
        return first
    clear = float(found[first].median()) / 2
    columns = found > clear
    if int(columns.sum()) < WINDOW:
        return first
    again = row_correlations(own, other, columns)
    return again > max(CHANCE / math.sqrt(int(columns.sum())), float(again[columns].median()) / 4)


def _elsewhere(own: torch.Tensor, other: torch.Tensor, related: torch.Tensor) -> int:
    """Unrelated ids whose row is another unrelated id's, by their cosines with the related ones."""
    lost = (~related).nonzero()[:, 0]
    if len(lost) < 2 or int(related.sum()) < FEWEST // 2:
        return 0
    mine, theirs = (
        torch.nn.functional.normalize(_less_mean(matrix[lost][:, related]), dim=1) for matrix in (own, other)
    )
    fit = mine @ theirs.T  # (lost, lost)
    return int((fit.max(dim=1).values > fit.diagonal() + CLEAR).sum())


def _less_mean(rows: torch.Tensor) -> torch.Tensor:
    return rows - rows.mean(dim=1, keepdim=True)


def _shifts(head: torch.Tensor, theirs: torch.Tensor, ids: torch.Tensor, at: torch.Tensor) -> tuple[HeadShift, ...]:
    """Windows of consecutive sampled ids that another constant fits clearly better, neighbours joined."""
    runs: list[HeadShift] = []
    for start in range(0, len(at) - WINDOW + 1, WINDOW):
        few = at[start : start + WINDOW if start + 2 * WINDOW <= len(at) else len(at)]
        own = cosines(head[few])
        fits = {
            shift: float(row_correlations(own, cosines(theirs[(ids[few] + shift).clamp(0, len(theirs) - 1)])).mean())
            for shift in (0, *SHIFTS)
        }
        best = max(fits, key=lambda shift: fits[shift])
        if best == 0 or fits[best] < fits[0] + CLEAR:
            continue
        found = HeadShift(
            first=int(few[0]), last=int(few[-1]), ids=len(few), shift=best, correlation=fits[best], as_mapped=fits[0]
        )
        joins = runs and runs[-1].shift == best and runs[-1].last == int(at[start - 1])
        runs = [*runs[:-1], _joined(runs[-1], found)] if joins else [*runs, found]
    return tuple(runs)


def _joined(run: HeadShift, more: HeadShift) -> HeadShift:
    ids = run.ids + more.ids
    return HeadShift(
        first=run.first,
        last=more.last,
        ids=ids,
        shift=run.shift,
        correlation=(run.correlation * run.ids + more.correlation * more.ids) / ids,
        as_mapped=(run.as_mapped * run.ids + more.as_mapped * more.ids) / ids,
    )


def _mean_fit(shifts: tuple[HeadShift, ...], sampled: int) -> float:
    """How well the shifted runs fit, as a mean over all sampled ids: those outside count nothing."""
    return sum(run.correlation * run.ids for run in shifts) / sampled


def _row_shift(head: torch.Tensor, other: torch.Tensor, at: torch.Tensor) -> tuple[int, float]:
    """By how many rows the head would have to be rolled, and how well it fits then; `other` are the map's cosines."""
    fits = {shift: float(row_correlations(cosines(head[(at + shift) % len(head)]), other).median()) for shift in SHIFTS}
    best = max(fits, key=lambda shift: fits[shift])
    return best, fits[best]
