"""SGLang's `scripts/playground/bench_speculative.py`: a line a batch size, steps, topk and draft tokens.

Its `speed` is no measured throughput: the server's average accept length over the 20th percentile of its step time. An
accept length of exactly 1.0 also stands where the server told none, so with a drafter it is left out.
"""

from orchestrator.importers import definitions as words
from orchestrator.importers.identities import quotient
from orchestrator.importers.kind import Kind
from orchestrator.importers.point import Figure, Point
from orchestrator.importers.row import Row

_KEYS = {"batch_size", "steps", "topk", "num_draft_tokens", "acc_length", "step_time", "speed"}
_DRAFT = {"num_steps": "steps", "eagle_topk": "topk", "num_draft_tokens": "num_draft_tokens"}


def _fits(row: Row) -> bool:
    return set(row.value) >= _KEYS


def _points(row: Row) -> tuple[Point]:
    is_plain = row.count("steps") == 0
    figures: list[Figure] = []
    warnings: tuple[str, ...] = ()
    speed, accept = row.positive("speed"), row.positive("acc_length")
    if accept == 1.0 and not is_plain:
        warnings = (f"an accept length of 1.0 also stands there where the server told none: left out ({row.where})",)
        accept = None
    if speed is not None and not warnings:
        figures.append(Figure(metric="user_tok_s", unit="tok/s", definition=words.GRID_SPEED, value=speed))
    if accept is not None and not is_plain:
        figures.append(
            Figure(metric="accept_length_pooled", unit="tokens", definition=words.SERVER_AVERAGE, value=accept,
                   is_last=True)
        )  # fmt: skip
    draft = {name: "none" if is_plain else row.word(key) for name, key in _DRAFT.items()}
    if is_plain:
        draft |= {"draft": "none", "algorithm": "none", "draft_quantization": "none"}
    return (
        Point(place=row.place, case={"side": "plain" if is_plain else "spec", "concurrency": row.word("batch_size")},
              figures=figures, hard={**draft, "max_new_tokens": "512", "temperature": "0", "ignore_eos": "true"},
              counts={"step_time_s": row.word("step_time"), "output_tokens_a_request": row.word("completion_tokens")},
              warnings=warnings, counted={name: row.number_of(name) for name in ("batch_size", "step_time")},
              claims=quotient("speed", speed, (row.positive("acc_length"), "tokens a step"),
                              (row.number_of("step_time"), "s"))),
    )  # fmt: skip


KIND = Kind(
    name="sglang-grid",
    words="sglang bench_speculative",
    fits=_fits,
    points=_points,
    unknown=(
        "a throughput: its speed is an accept length over a step time",
        "the accept length of the benchmark alone: its warm-up is in the server's average",
    ),
)
