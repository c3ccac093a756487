"""Standalone results made by hand: rows and hits written as plain lists, packed as the wire wants them."""

import base64
import functools
import random
from collections.abc import Callable, Sequence

from remote_payload.schema import (
    CheckpointFacts,
    DeclaredWiring,
    Phase,
    ReadingFacts,
    ReadingHits,
    RowFacts,
    RowsFacts,
    SkippedRow,
    StandaloneResult,
)


def bitmap(bits: Sequence[int | bool]) -> str:
    """Base64 of the bits, LSB first."""
    packed = bytearray((len(bits) + 7) // 8)
    for index, bit in enumerate(bits):
        packed[index // 8] |= bool(bit) << (index % 8)
    return base64.b64encode(bytes(packed)).decode()


def made_row(
    row: int,
    loss_mask: Sequence[int],
    *,
    in_vocab: Sequence[int] | None = None,
    greedy: Sequence[int] | None = None,
    name: str | None = None,
    tokens_sha256: str | None = None,
) -> RowFacts:
    """A row whose teacher is always in the vocabulary and whose tokens are greedy, unless said otherwise."""
    tokens = len(loss_mask)
    return RowFacts(
        row=row,
        name=name or f"data_{row}.ckpt",
        tokens=tokens,
        loss_mask=bitmap(loss_mask),
        teacher_in_draft_vocab=bitmap(in_vocab if in_vocab is not None else [1] * tokens),
        teacher_is_next_token=bitmap(greedy if greedy is not None else [1] * (tokens - 1) + [0]),
        prompt_tokens=list(loss_mask).index(1) if 1 in loss_mask else tokens,
        tokens_sha256=tokens_sha256,
    )


def judged_positions(loss_mask: Sequence[int], steps: int) -> list[int]:
    """Every j for which any of loss_mask[j .. j+steps] is set."""
    return [j for j in range(len(loss_mask)) if any(loss_mask[j : j + steps + 1])]


def made_hits(
    reading: str,
    row: int,
    loss_mask: Sequence[int],
    steps: int,
    hit: Callable[[int, int], bool],
    *,
    in_vocab: Callable[[int, int], bool] | None = None,
) -> ReadingHits:
    """Hits of one reading on one row: `hit(j, s)` says whether step s of position j hits.

    `in_vocab` says the same against the teacher's choice within the draft vocabulary; without it that is unknown.
    """
    positions = judged_positions(loss_mask, steps)
    starts = [j for j in positions if j - 1 not in positions]
    stops = [j + 1 for j in positions if j + 1 not in positions]

    def packed(one: Callable[[int, int], bool]) -> str:
        width = 1 if steps <= 8 else 2
        words = [
            sum(1 << s for s in range(steps) if j + 1 + s < len(loss_mask) and one(j, s)).to_bytes(width, "little")
            for j in positions
        ]
        return base64.b64encode(b"".join(words)).decode()

    return ReadingHits(
        reading=reading,
        row=row,
        steps=steps,
        starts=tuple(starts),
        stops=tuple(stops),
        hits=packed(hit),
        hits_in_vocab=None if in_vocab is None else packed(in_vocab),
    )


def leading(lengths: dict[int, int]) -> Callable[[int, int], bool]:
    """A `hit` from leading hits by position: `lengths[j]` steps hit, then none."""
    return lambda j, s: s < lengths.get(j, 0)


def made_readings(
    shares: dict[tuple[tuple[int, ...], int], float], *, rows: int = 12, tokens: int = 60, steps: int = 3
) -> tuple[tuple[RowFacts, ...], tuple[ReadingHits, ...], tuple[ReadingFacts, ...]]:
    """Rows and hits of several readings `{(slots, offset): share of hits}`, as if by chance, rows a little unlike."""
    mask = [0] * 10 + [1] * (tokens - 10)
    all_rows = tuple(made_row(row, mask) for row in range(rows))
    hits: list[ReadingHits] = []
    facts: list[ReadingFacts] = []
    for (slots, offset), share in shares.items():
        name = f"slots {','.join(map(str, slots))} offset {offset:+d}"

        draws = random.Random(name)  # the same on every machine
        table = [[[draws.random() for _ in range(steps)] for _ in range(tokens)] for _ in range(rows)]

        def hit(row: int, j: int, s: int, table: list[list[list[float]]] = table, share: float = share) -> bool:
            return table[row][j][s] < share + 0.05 * ((row % 3) - 1)

        hits += [made_hits(name, row, mask, steps, functools.partial(hit, row)) for row in range(rows)]
        first = sum(hit(row, j, 0) for row in range(rows) for j in range(tokens - 1) if mask[j + 1])
        facts.append(
            ReadingFacts(
                name=name,
                slots=slots,
                states=None,
                token_offset=offset,
                stage="full",
                rows=rows,
                positions=rows * (tokens - 10),
                first_step_hits=first,
                seconds=0.5,
            )
        )
    return all_rows, tuple(hits), tuple(facts)


def made_checkpoint(slots: int = 3) -> CheckpointFacts:
    return CheckpointFacts(
        draft="/srv/drafter",
        target="/srv/target",
        architecture="LlamaForCausalLMEagle3",
        hidden_size=128,
        target_hidden_size=128,
        slots=slots,
        vocab_size=1280,
        draft_vocab_size=640,
        tensors=(),
        config_json="{}",
    )


def made_declared(
    captured: tuple[int, ...] | None,
    slots: tuple[int, ...] | None,
    *,
    config_ids: tuple[int, ...] | None = None,
    target_class: str | None = "LlamaForCausalLM",
    layers: int | None = 8,
    problem: str | None = None,
) -> DeclaredWiring:
    return DeclaredWiring(
        config_ids=config_ids,
        target_class=target_class,
        target_layers=layers,
        rule="id + 1 (llama)",
        valid_for="sglang 0.4.10 .. 0.5.23",
        captured=captured,
        slots=slots,
        problem=problem,
    )


def made_result(
    readings: Sequence[ReadingFacts],
    declared: DeclaredWiring,
    *,
    states: tuple[int, ...] | None = (0, 2, 4, 5),
    rows: int = 12,
    steps: int = 3,
    skipped: tuple[SkippedRow, ...] = (),
    warnings: tuple[str, ...] = (),
) -> StandaloneResult:
    """A whole result around the readings; the readings' states are filled in from the label."""
    labelled = tuple(
        ReadingFacts(**{**vars(fact), "states": None if states is None else tuple(states[slot] for slot in fact.slots)})
        for fact in readings
    )
    return StandaloneResult(
        checkpoint=made_checkpoint(),
        declared=declared,
        rows=RowsFacts(
            folder="/srv/rows",
            layout="specforge offline",
            found=rows + len(skipped),
            used=rows,
            skipped=skipped,
            tokens=rows * 60,
            response_tokens=rows * 50,
            captured_states=4,
            states=states,
            final_state="post_norm",
            dtype="bfloat16",
        ),
        readings=labelled,
        steps=steps,
        dtype="float32",
        device="cpu",
        device_name="made CPU",
        torch="2.13.0",
        python="3.12.1",
        threads=2,
        phases=(
            Phase(name="load", seconds=0.25),
            Phase(name="search", seconds=1.5, tokens=4800),
            Phase(name="full", seconds=2.0, tokens=2160),
        ),
        peak_memory_bytes=512 * 2**20,
        warnings=warnings,
    )
