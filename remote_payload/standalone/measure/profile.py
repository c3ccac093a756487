"""The best reading looked at more closely on the search rows: step by step when fed by itself, and zone by zone."""

from collections.abc import Iterable
from dataclasses import replace
from typing import get_args

import torch

from remote_payload.schema.standalone import SelfFed, Zone
from remote_payload.schema.standalone.readings import Place
from remote_payload.standalone.graph import Reading
from remote_payload.standalone.measure.acceptance import JudgedRow, aims, measure, prepared
from remote_payload.standalone.measure.sample import Sample
from remote_payload.standalone.measure.tally import Measurer

NEAR = 4
"""Predictions of so many tokens before a response, and after it, are zones of their own."""


def self_fed(sample: Sample, measurer: Measurer, reading: Reading, steps: int) -> SelfFed:
    """Steps fed by the row's tokens, by the drafter's own, and chains that start where each step stands."""
    counts = torch.zeros(4, steps, dtype=torch.int64)  # positions, self-fed, teacher-fed, fresh
    rows = 0
    for row in sample.rows("steps fed by their own tokens"):
        counts += _step_counts(row.judged, measurer, reading, steps)
        rows += 1
    positions, own, teacher, fresh = (tuple(line) for line in counts.tolist())
    return SelfFed(
        reading=reading.name,
        rows=rows,
        positions=positions,
        self_fed_hits=own,
        teacher_fed_hits=teacher,
        fresh_hits=fresh,
    )


def _step_counts(judged: JudgedRow, measurer: Measurer, reading: Reading, steps: int) -> torch.Tensor:
    taught = measure(measurer.drafter, measurer.teacher, judged, [reading], steps)[0]  # (P, K)
    tokens = measurer.teacher.tokens_of(reading.graph)
    drafted = measurer.drafter.draft(judged.inputs, [reading], steps, self_fed=True)[0]
    alone = (tokens[drafted] == judged.wanted[:, :steps]).cpu()
    length = len(judged.row.tokens)
    first = torch.zeros(length + steps, dtype=torch.bool)  # step-0 hit of the chain that starts at each token
    first[judged.positions] = taught[:, 0]
    masked = torch.zeros(length + steps + 1, dtype=torch.bool)
    masked[:length] = judged.row.loss_mask
    counted = torch.ones(len(judged.positions), dtype=torch.bool)
    lines = []
    for step in range(steps):
        counted = counted & masked[judged.positions + 1 + step]
        fresh = first[judged.positions + step]
        lines.append(
            [int(counted.sum()), *(int(hits[counted].sum()) for hits in (alone[:, step], taught[:, step], fresh))]
        )
    return torch.tensor(lines).T


def zones(sample: Sample, measurer: Measurer, reading: Reading) -> tuple[Zone, ...]:
    """Step-1 hits by where the predicted token x_{j+2} stands; prompts, too."""
    hits: dict[str, int] = dict.fromkeys(get_args(Place), 0)
    positions = dict(hits)
    for row in sample.rows("zones"):
        for place, hit in _placed(row.judged, measurer, reading):
            positions[place] += 1
            hits[place] += hit
    return tuple(
        Zone(place=place, positions=positions[place], hits=hits[place]) for place in get_args(Place) if positions[place]
    )


def _placed(judged: JudgedRow, measurer: Measurer, reading: Reading) -> Iterable[tuple[Place, bool]]:
    row = judged.row
    everywhere = torch.arange(len(row.tokens) - 2)
    wanted = aims(judged.answers.to(judged.wanted.device), everywhere, 1)
    inputs = prepared(measurer.drafter, measurer.teacher, row, everywhere)
    judged = replace(judged, positions=everywhere, wanted=wanted, inputs=inputs)
    hits = measure(measurer.drafter, measurer.teacher, judged, [reading], 1)[0, :, 0].tolist()
    return zip(places(row.loss_mask)[2:], hits, strict=True)


def places(mask: torch.Tensor) -> list[Place]:
    """The zone of each token by the loss mask (T,)."""
    bits = mask.tolist()
    found: list[Place] = []
    for at, bit in enumerate(bits):
        before, after = at > 0 and bits[at - 1], at + 1 < len(bits) and bits[at + 1]
        if bit:
            found.append(
                "first_token" if not before else "last_token" if not after and at + 1 < len(bits) else "inside"
            )
        elif any(bits[at + 1 : at + 1 + NEAR]):
            found.append("before_response")
        else:
            found.append("after_response" if any(bits[max(0, at - NEAR) : at]) else "prompt")
    return found
