"""Pairs of a drafter and a server whose acceptance is real: hits and histograms of a real server's own requests.

The drafter was trained on [embed, layer 2, layer 4]. `embed_right`: served so; `embed_story_wrong`: fed [layer 2, layer
4, layer 5]; `embed_override_1_16`: the same, asked for 1 step and 16 draft tokens. Times are made.
"""

import functools
import gzip
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from orchestrator.compare.served import served_figures
from orchestrator.compare.served_acceptance import acceptance
from orchestrator.diagnosis.decision.foretelling import Asked, foretell
from orchestrator.diagnosis.decision.inputs import Fed, Known, Offline, Predicted, Served, ServedSplit, SplitName
from orchestrator.diagnosis.diagnose import diagnose
from orchestrator.diagnosis.measured import Measured, gather
from orchestrator.diagnosis.served import diagnose_served
from orchestrator.diagnosis.wiring import judge
from remote_payload.schema import ReadingHits, RowFacts
from remote_payload.schema.bench import BenchResult, LogLine, RequestSample
from remote_payload.schema.record import from_value
from tests.support.made_bench import SHAPE, made_bench, made_point, made_request, made_server
from tests.support.made_measured import BEST, WORSE, Rows, sound_result
from tests.support.made_results import made_declared

GOLDEN = Path(__file__).parents[2] / "golden" / "walk"
TRAINED, FED_WRONG = (0, 2, 4), (2, 4, 5)
RIGHT: dict[str, Any] = {"declared": made_declared(TRAINED, (0, 1, 2), config_ids=(-1, 1, 3))}
WRONG: dict[str, Any] = {"declared": made_declared(FED_WRONG, (1, 2, 3), config_ids=(1, 3, 4))}
FASTER, SLOWER = (119.0, 120.0, 121.0), (46.7, 49.0, 51.2, 53.8, 56.8)
FILES: Mapping[SplitName, str] = {"train": "train", "held-out": "heldout"}
EACH = 12
"""Rows, and so prompts, of each split."""


@functools.cache
def golden(label: str, split: SplitName) -> tuple[dict[str, Any], ...]:
    """A configuration's rows, hits and what the server counted."""
    return tuple(json.loads(gzip.decompress((GOLDEN / f"{label}_{FILES[split]}.json.gz").read_bytes()))["cases"])


@functools.cache
def rows_and_hits(split: SplitName) -> tuple[tuple[RowFacts, ...], tuple[ReadingHits, ...]]:
    """Both readings of the drafter on one split's rows."""
    rows = tuple(from_value(RowFacts, case["row"]) for case in golden("embed_right", split))
    named = [replace(row, tokens_sha256=f"{split} {row.row}") for row in rows]
    hits = [
        from_value(ReadingHits, case["hits"])
        for label in ("embed_right", "embed_story_wrong")
        for case in golden(label, split)
    ]
    return tuple(named), tuple(hits)


@functools.cache
def _offline(declared: str, heldout: bool) -> Offline:
    made = Rows(count=EACH, steps=3)
    result = sound_result((BEST, WORSE), made, made if heldout else None)
    changes = {"right": RIGHT, "wrong": WRONG}[declared]
    return offline_of(
        gather(
            replace(result, **changes), rows_and_hits("train"), rows_and_hits("held-out") if heldout else None,
            max_new_tokens=64,
        )
    )  # fmt: skip


def offline(declared: str = "right", *, heldout: bool = True) -> Offline:
    """The standalone test on real hits; `declared`: whether config.json names the trained states."""
    return _offline(declared, heldout)


def offline_of(measured: Measured) -> Offline:
    """Any test, judged."""
    wiring = judge(measured)
    return Offline(run_id="standalone-1", measured=measured, wiring=wiring, diagnosis=diagnose(measured, wiring))


def answers(label: str, point: int, tok_s: float, *, plain: bool = False) -> tuple[RequestSample, ...]:
    """What the server answered to 24 prompts, train first; held-out ones from prompt 12 on."""
    found, clock = [], 0.0
    for split in ("train", "held-out"):
        for case in golden(label, "train" if split == "train" else "held-out"):
            served, tokens = case["served"], case["served"]["completion_tokens"]
            histogram = None if plain else served["spec_correct_drafts_histogram"]
            place = len(found)
            made = made_request(point, place, tokens=tokens, sent_s=clock, seconds=tokens / tok_s,
                                histogram=histogram, index=place)  # fmt: skip
            found.append(made)
            clock = made.chunk_s[-1]
    return tuple(found)


def served(
    label: str = "embed_right",
    *,
    steps: int = 3,
    asked: Sequence[int] | None = None,
    spec: Sequence[float] = FASTER,
    plain: Sequence[float] = (90.0, 90.2, 89.8, 90.1, 89.9),
    dtype: str = "float32",
    change: Any = None,
    both: bool = False,
    **workload: Any,
) -> Served:
    """Both sides in turn, a repeat a speed; `change` is applied to the speculating side's requests, or to both."""
    runs = dict(zip(SHAPE, (steps, 1, steps + 1), strict=True)) | {"dtype": dtype}
    wanted = runs if asked is None else dict(zip(SHAPE, asked, strict=True))
    line = LogLine(rule="draft_tokens_adjusted", line="speculative_num_draft_tokens is adjusted to steps + 1")
    points, requests, servers = [], [], []
    for repeat, speed in enumerate(spec):
        sides = ["spec"] if not plain else ["spec", "plain"]
        for side in sides:
            number = len(points)
            some = answers(label, number, speed if side == "spec" else plain[repeat], plain=side == "plain")
            some = change(some) if change is not None and (both or side == "spec") else some
            name = "spec" if side == "spec" else "plain"
            points.append(made_point(number, some, name, repeat=repeat, start=number))
            more = {"asked": wanted, "runs": runs, "lines": (line,) if asked else ()} if side == "spec" else {}
            servers.append(made_server(name, start=number, **more))
            requests += some
    result = made_bench(servers, points)
    result = replace(result, workload=replace(result.workload, prompts=2 * EACH, **workload))
    return served_of(result, tuple(requests))


def served_of(result: BenchResult, requests: tuple[RequestSample, ...]) -> Served:
    """Any benchmark, judged; its prompts split in the middle."""
    figures = served_figures(result, requests)
    loads = [load for load in figures.loads if load.side == "spec"]
    own = loads[0].requests if loads else ()
    splits = []
    for split in ("train", "held-out"):
        some = tuple(item for item in own if (item.prompt < EACH) == (split == "train"))
        name: SplitName = "train" if split == "train" else "held-out"
        splits.append(ServedSplit(split=name, run_id="bench-1", requests=some, acceptance=acceptance(some)))
    return Served(
        run_id="bench-1",
        result=result,
        figures=figures,
        diagnosis=diagnose_served(result, requests, figures),
        splits=tuple(splits),
    )


def predicted(declared: str = "right", steps: int = 3, dtype: str = "float32") -> tuple[Predicted, ...]:
    """Both splits, as served and as the drafter reads best."""
    found, test = [], offline(declared)
    for split, first in (("train", 0), ("held-out", EACH)):
        name: SplitName = "train" if split == "train" else "held-out"
        rows = test.measured.train if split == "train" else test.measured.heldout
        assert rows is not None
        asked = Asked(
            split=name,
            prompts={row.name: first + place for place, row in enumerate(rows.rows)},
            steps=steps,
            max_new_tokens=64,
        )
        parts = [("best", test.wiring.best), ("as served", test.wiring.declared)]
        for part, reading in parts:
            assert reading is not None
            found.append(
                foretell(reading.facts, rows, asked, part="best" if part == "best" else "as served",
                         run_id="standalone-1", dtype=dtype)
            )  # fmt: skip
    return tuple(found)


def fed(states: Sequence[int | None] = TRAINED, trained: Sequence[int] | None = TRAINED) -> Fed:
    """What a capture says."""
    return Fed(
        run_id="capture-1",
        sglang_version="0.5.23",
        states=tuple(states),
        trained=None if trained is None else tuple(trained),
        tokens=640,
        exact=True,
        worst_error=3e-8,
    )


def sound(**changes: Any) -> Known:
    """A sound pair, everything known."""
    whole: dict[str, Any] = {"offline": offline(), "served": served(), "predicted": predicted(), "fed": fed()}
    return Known(**{**whole, **changes})


def story(**changes: Any) -> Known:
    """The story: fed the last three states, 16 draft tokens made 2, and slower than plain decoding."""
    whole: dict[str, Any] = {
        "offline": offline("wrong"),
        "served": served("embed_override_1_16", steps=1, asked=(1, 1, 16), spec=SLOWER),
        "predicted": predicted("wrong", 1),
        "fed": fed(FED_WRONG),
    }
    return Known(**{**whole, **changes})


def published_story() -> Known:
    """The story in the numbers it was told in: accept length 1.9, 46.7 to 56.8 against 90 tok/s, no rows at hand."""

    def told(requests: tuple[RequestSample, ...]) -> tuple[RequestSample, ...]:
        found, clock = [], 0.0
        for item in requests:
            deep = 28 - item.index % 2 * 2  # 28 and 26 of 30 drafts: 1.90 on the whole
            seconds = (item.chunk_s[-1] - item.sent_s) * (31 + deep) / (item.completion_tokens or 1)
            histogram = None if item.histogram is None else (30 - deep, deep)
            made = made_request(item.point, item.prompt, tokens=31 + deep, sent_s=clock, index=item.index,
                                seconds=seconds, histogram=histogram)  # fmt: skip
            found.append(made)
            clock = made.chunk_s[-1]
        return tuple(found)

    kimi = "KimiK25ForConditionalGeneration"
    capture = replace(fed((3, 31, 59), (0, 3, 31)), target_class=kimi, target_layers=61)
    slow = served(
        "embed_override_1_16", steps=1, asked=(1, 1, 16), spec=SLOWER, dtype="bfloat16", change=told, both=True
    )
    return Known(served=slow, fed=capture)
