"""SGLang's `one_batch_server` (`--result-filename`): a line a batch size and pair of lengths, appended.

It flushes the prefix cache before each batch and sends one batch of random tokens at once. Its throughput counts from
the first token of the batch's last request on. It does not tell model, server or how many requests failed.
"""

from orchestrator.compare import definitions as ours
from orchestrator.importers import definitions as words
from orchestrator.importers.assembly import Figure, Point
from orchestrator.importers.kind import Kind
from orchestrator.importers.row import Row

_KEYS = {"batch_size", "input_len", "output_len", "last_ttft", "overall_throughput", "acc_length"}
_FIGURES = (
    ("output_throughput_tok_s", "tok/s", words.BATCH_OUTPUT, "output_throughput"),
    ("total_throughput_tok_s", "tok/s", words.BATCH_TOTAL, "overall_throughput"),
    ("e2e_s", "s", words.BATCH_E2E, "latency"),
    ("ttft_s", "s", words.BATCH_TTFT, "last_ttft"),
)


def _fits(row: Row) -> bool:
    return set(row.value) >= _KEYS


def _points(row: Row) -> tuple[Point]:
    figures = [
        Figure(metric=metric, unit=unit, definition=definition, value=value)
        for metric, unit, definition, key in _FIGURES
        if (value := row.positive(key)) is not None
    ]
    accept = row.number_of("acc_length")
    accept = None if accept is None or accept <= 0 else accept  # it writes -1 for what it does not know
    if accept is not None:
        figures.append(
            Figure(metric="accept_length_pooled", unit="tokens", definition=words.SERVER_AVERAGE, value=accept,
                   is_last=True)
        )  # fmt: skip
    if (cached := row.number_of("cache_hit_rate")) is not None:
        if not 0 <= cached <= 1:
            row.fail("cache_hit_rate", "a share")
        figures.append(Figure(metric="cached_share", unit="share", definition=ours.CACHED_SHARE, value=cached))
    size, output = row.count("batch_size"), row.count("output_len")
    asked = None if size is None or output is None else size * output
    told = row.count("total_output_tokens")
    warnings: tuple[str, ...] = ()
    if asked is not None and told is not None and told != asked and not row.count("num_early_stopped"):
        warnings = (f"{told} output tokens came where {asked} were asked for ({row.place.where})",)
    case = {"side": "spec" if accept is not None else None, "concurrency": row.word("batch_size"),
            "input_len": row.word("input_len"), "output_len": row.word("output_len")}  # fmt: skip
    hard = {"max_new_tokens": row.word("output_len"), "prompts": row.word("batch_size")}
    return (
        Point(place=row.place, case=case, figures=figures, hard=hard, soft={"run_name": row.word("run_name")},
              counts={"output_tokens": row.word("total_output_tokens")}, warnings=warnings),
    )  # fmt: skip


KIND = Kind(
    name="sglang-batch",
    words="sglang one_batch_server",
    fits=_fits,
    points=_points,
    unknown=("whether a side without an accept length was served with a drafter",),
)
