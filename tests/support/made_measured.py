"""Whole standalone tests made by hand, every fact in them sound unless said otherwise, ready to be diagnosed."""

import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from orchestrator.diagnosis.measured import Measured, gather
from remote_payload.schema import ReadingFacts, ReadingHits, RowFacts, StandaloneResult
from remote_payload.schema.standalone import (
    CaptureCheck,
    CaptureSlot,
    CheckpointFacts,
    DialectFacts,
    GraphFlag,
    MapReading,
    MaskEdge,
    RowsFacts,
    RowsLint,
    SelfFed,
    SharedTensorFacts,
    SkippedReading,
    SlotFacts,
    TeacherFacts,
    TensorFact,
    TensorStatistics,
    VocabularyFacts,
    WeightFile,
    Zone,
)
from tests.support.made_results import made_checkpoint, made_declared, made_hits, made_result, made_row

STATES = (0, 2, 4, 5)
EMBED, LATER = (0, 1, 2), (1, 2, 3)


@dataclass(frozen=True)
class Made:
    """A reading measured on all rows: its share of hits step by step (independent of each other)."""

    shares: tuple[float, ...] = (0.75, 0.72, 0.70, 0.70)
    slots: tuple[int, ...] = EMBED
    offset: int = 1
    changes: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return " ".join((f"slots {','.join(map(str, self.slots))} offset {self.offset:+d}", *self.changes))


BEST = Made()
WORSE = Made((0.45, 0.4, 0.4, 0.4), LATER)
SHIFTED = Made((0.2, 0.2, 0.2, 0.2), EMBED, 0)
FACTORS = ("residual=normed", "feedback=normed", "rope=theta 1e+06")
"""Single changes that a sweep screened on few rows, all of them worse."""


@dataclass(frozen=True)
class Rows:
    """Rows with a prompt and a response each; `lift` is added to every share (a split's own level)."""

    count: int = 12
    prompt: int = 10
    response: int = 50
    lift: float = 0.0
    greedy: Sequence[float] = (1.0, 0.6)
    """Agreement of the rows with the teacher, taken in turn."""
    sources: Sequence[str | None] = (None,)
    seed: str = "train"
    steps: int = field(default=4)

    def mask(self) -> list[int]:
        return [0] * self.prompt + [1] * self.response

    def facts(self) -> tuple[RowFacts, ...]:
        return tuple(self._row(row) for row in range(self.count))

    def _row(self, row: int) -> RowFacts:
        draw, tokens = random.Random(f"{self.seed} greedy {row}"), len(self.mask())
        agreement = self.greedy[row % len(self.greedy)]
        agrees = [draw.random() < agreement for _ in range(tokens - 1)] + [False]
        made = made_row(row, self.mask(), greedy=agrees, tokens_sha256=f"{self.seed} {row}")
        return replace(made, source=self.sources[row % len(self.sources)])

    def hits(self, reading: Made) -> list[ReadingHits]:
        """The same draws for every reading: what is hard for one is hard for all."""
        return [self._hits(reading, row) for row in range(self.count)]

    def _hits(self, reading: Made, row: int) -> ReadingHits:
        draw = random.Random(f"{self.seed} {row}")
        table = [[draw.random() for _ in range(self.steps)] for _ in self.mask()]
        level = self.lift + 0.05 * ((row % 3) - 1)
        shares = reading.shares

        def hit(j: int, s: int) -> bool:
            return table[j][s] < shares[s] + level

        return made_hits(reading.name, row, self.mask(), len(shares), hit)


def full_facts(reading: Made, rows: Rows) -> ReadingFacts:
    return ReadingFacts(
        name=reading.name,
        slots=reading.slots,
        states=tuple(STATES[slot] for slot in reading.slots),
        token_offset=reading.offset,
        stage="full",
        rows=rows.count,
        positions=rows.count * rows.response,
        first_step_hits=round(reading.shares[0] * rows.count * rows.response),
        leading_hits=0,
        seconds=1.0,
        changes=reading.changes,
    )


def factor_facts(change: str, beside: str, *, leading: int = 180, paired: int = 240) -> ReadingFacts:
    """A change that was held against another reading on 200 positions of the search rows."""
    return ReadingFacts(
        name=f"{beside} {change}",
        slots=EMBED,
        states=(0, 2, 4),
        token_offset=1,
        stage="factor",
        rows=4,
        positions=200,
        first_step_hits=100,
        leading_hits=leading,
        seconds=0.1,
        changes=(change,),
        paired_with=beside,
        paired_first_step_hits=150,
        paired_leading_hits=paired,
        paired_error=0.04,
    )


def sound_checkpoint(**changes: Any) -> CheckpointFacts:
    names = ("fc.weight", "layers.0.self_attn.q_proj.weight", "lm_head.weight")
    facts = replace(
        made_checkpoint(),
        tensors=tuple(
            TensorFact(name=name, stored_name=name, shape=(128, 384), dtype="BF16", source="draft") for name in names
        ),
        dialect=DialectFacts(name="specforge", evidence=("midlayer.* names",)),
        graph=(
            GraphFlag(name="residual", value="raw", source="dialect", evidence="SpecForge's forward"),
            GraphFlag(name="feedback", value="raw", source="default", evidence="`norm_output` is absent"),
            GraphFlag(name="rope", value="theta 10000", source="config", evidence="`rope_theta` in config.json"),
        ),
        statistics=(
            *(
                TensorStatistics(name=name, mean=0.0, std=0.02, spectral_excess=1.8, row_norm_spread=2.5)
                for name in names
            ),
            TensorStatistics(name="norm.weight", mean=1.0, std=0.0, constant=1.0),
        ),
        vocabulary=sound_vocabulary(),
        shared=(
            SharedTensorFacts(name="embed_tokens", stored=False, used="target", served="target"),
            SharedTensorFacts(name="lm_head", stored=True, used="draft", served="draft", mean_cosine=0.03),
        ),
        files=(WeightFile(name="model.safetensors", size_bytes=1_000_000, tensors=14, used=True, role="weights"),),
    )
    return replace(facts, **changes)


def sound_vocabulary(**changes: Any) -> VocabularyFacts:
    facts = VocabularyFacts(
        draft_vocab_size=640,
        vocab_size=1280,
        d2t=True,
        t2d_marked=640,
        readings=(
            MapReading(reading="offset", in_range=640, distinct=640, increasing=True, agrees_with_t2d=True),
            MapReading(reading="absolute", in_range=640, distinct=300, increasing=False, agrees_with_t2d=False),
            MapReading(reading="identity", in_range=640, distinct=640, increasing=True, agrees_with_t2d=False),
        ),
    )
    return replace(facts, **changes)


def sound_slots() -> tuple[SlotFacts, ...]:
    """Embedding output and three layers, deeper ones larger and nearer to the answer."""
    common: dict[str, Any] = {"tokens": 1000, "repeats": 700, "lens_positions": 700}
    return (
        SlotFacts(slot=0, rms=0.07, embedding_share=1.0, repeats_equal=700, lens_normed_hits=20, **common),
        SlotFacts(slot=1, rms=2.2, embedding_share=0.0, repeats_equal=18, lens_normed_hits=200, **common),
        SlotFacts(slot=2, rms=2.7, embedding_share=0.0, repeats_equal=18, lens_normed_hits=280, **common),
        SlotFacts(slot=3, rms=2.9, embedding_share=0.0, repeats_equal=18, lens_normed_hits=350, **common),
    )


def sound_lint(**changes: Any) -> RowsLint:
    edges = {"two_before": 12, "before": 12, "first": 5, "second": 5, "last": 12}
    facts = RowsLint(
        longest=60,
        at_longest=2,
        cut_at_longest=0,
        distinct_response_tokens=300,
        edges=tuple(MaskEdge(place=place, responses=12, most_common=n, token=7) for place, n in edges.items()),  # type: ignore[arg-type]
    )
    return replace(facts, **changes)


def sound_teacher(**changes: Any) -> TeacherFacts:
    facts = TeacherFacts(positions=588, agrees=470, rows_agreeing=(1.0, 0.6) * 6, shifted_agrees=(20, 25), norm_rms=1.0)
    return replace(facts, **changes)


def sound_rows(facts: RowsFacts, **changes: Any) -> RowsFacts:
    return replace(facts, slots=sound_slots(), teacher=sound_teacher(), lint=sound_lint(), **changes)


def sound_capture(**changes: Any) -> CaptureCheck:
    slots = tuple(
        CaptureSlot(slot=slot, nearest=state, error=0.01, next_error=0.3, labelled_error=0.01)
        for slot, state in enumerate(STATES)
    )
    final = CaptureSlot(slot=None, nearest=8, error=0.01, next_error=0.4)
    facts = CaptureCheck(ran=True, rows=2, tokens=200, slots=slots, final=final, same_answers=199, answers=200)
    return replace(facts, **changes)


def sound_self_fed() -> SelfFed:
    return SelfFed(
        reading=BEST.name,
        rows=4,
        positions=(200, 190, 180, 170),
        self_fed_hits=(150, 120, 100, 85),
        teacher_fed_hits=(150, 137, 126, 119),
        fresh_hits=(150, 143, 135, 128),
    )


def sound_result(readings: Sequence[Made], rows: Rows, heldout: Rows | None) -> StandaloneResult:
    declared = made_declared((0, 2, 4), EMBED, config_ids=(-1, 1, 3))
    full = [full_facts(reading, rows) for reading in readings]
    factors = [factor_facts(change, BEST.name) for change in FACTORS]
    control = replace(factor_facts("states=zeroed", BEST.name, leading=30), first_step_hits=40)
    result = made_result([*full, *factors, control], declared, states=STATES, rows=rows.count, steps=rows.steps)
    facts = sound_rows(result.rows)
    return replace(
        result,
        checkpoint=sound_checkpoint(),
        rows=facts,
        heldout=None if heldout is None else replace(facts, lint=sound_lint(also_in_train=0, prompts_in_train=0)),
        heldout_readings=() if heldout is None else tuple(full_facts(reading, heldout) for reading in readings),
        skipped_readings=(SkippedReading(name="position_start=1", reason="rotary angles are relative"),),
        self_fed=sound_self_fed(),
        zones=(Zone(place="inside", positions=180, hits=135), Zone(place="first_token", positions=4, hits=2)),
        capture=sound_capture(),
    )


def made_measured(
    readings: Sequence[Made] = (BEST, WORSE, SHIFTED),
    *,
    rows: Rows | None = None,
    heldout: Rows | None = None,
    **changes: Any,
) -> Measured:
    """A sound test, `changes` made to its result: keys of StandaloneResult, or `checkpoint_x`, `rows_x`, `declared_x`
    for one key of that part.
    """
    rows = rows or Rows()
    result = sound_result(readings, rows, heldout)
    parts: dict[str, Any] = {}
    for key, value in changes.items():
        part, _, name = key.partition("_")
        if part in ("checkpoint", "rows", "declared") and name:
            base = parts.get(part, getattr(result, part))
            parts[part] = replace(base, **{name: value})
        else:
            parts[key] = value
    result = replace(result, **parts)
    return gather(result, _split(readings, rows), None if heldout is None else _split(readings, heldout))


def _split(readings: Sequence[Made], rows: Rows) -> tuple[tuple[RowFacts, ...], list[ReadingHits]]:
    return rows.facts(), [hits for reading in readings for hits in rows.hits(reading)]
