"""SGLang's `one_batch_server` (`--result-filename`): a line a batch size and pair of lengths, appended.

It flushes the prefix cache before each batch and sends one batch of random tokens at once. Its throughput counts from
the first token of the batch's last request on, with every token in it, or, where answers may end early, those of that
time alone: its figures tell which. It does not tell model, server or how many requests failed.

Source: `run_one_case` in `python/sglang/benchmark/one_batch_server.py`, SGLang 0.5.23; 0.5.18 counts every token.
"""

from orchestrator.compare import definitions as ours
from orchestrator.importers import definitions as words
from orchestrator.importers.identities import Claim, quotient
from orchestrator.importers.kind import Kind
from orchestrator.importers.point import Figure, Point
from orchestrator.importers.row import Row

_KEYS = {"batch_size", "input_len", "output_len", "last_ttft", "overall_throughput", "acc_length"}
_FIGURES = (
    ("total_throughput_tok_s", "tok/s", words.BATCH_TOTAL, "overall_throughput"),
    ("e2e_s", "s", words.BATCH_E2E, "latency"),
    ("ttft_s", "s", words.BATCH_TTFT, "last_ttft"),
)
_SECONDS_OFF, _RATE_OFF = 1e-4, 0.005
"""The most by which its rounding moves the difference of two times, and a throughput."""


def _fits(row: Row) -> bool:
    return set(row.value) >= _KEYS


def _points(row: Row) -> tuple[Point]:
    output, invalid = _output(row)
    figures = [
        *output,
        *(Figure(metric=metric, unit=unit, definition=definition, value=value)
          for metric, unit, definition, key in _FIGURES
          if (value := row.positive(key)) is not None),
    ]  # fmt: skip
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
    soft = {"run_name": row.word("run_name")}
    if any(figure.definition == words.BATCH_WINDOW for figure in output):
        soft["throughput_of"] = "tokens after the last request's first"  # rows of the other kind are no repeats
    asked, told = _asked(row), row.count("total_output_tokens")
    warnings: tuple[str, ...] = ()
    if asked is not None and told is not None and told != asked and not row.count("num_early_stopped"):
        warnings = (f"{told} output tokens came where {asked} were asked for ({row.place.where})",)
    if not output and row.positive("output_throughput") is not None:
        warnings += (f"its output throughput has no time to divide by: left out ({row.place.where})",)
    case = {"side": "spec" if accept is not None else None, "concurrency": row.word("batch_size"),
            "input_len": row.word("input_len"), "output_len": row.word("output_len")}  # fmt: skip
    hard = {"max_new_tokens": row.word("output_len"), "prompts": row.word("batch_size")}
    return (
        Point(place=row.place, case=case, figures=figures, hard=hard, soft=soft,
              counts={"output_tokens": row.word("total_output_tokens")}, invalid=invalid, warnings=warnings,
              claims=_total(row), counted={name: row.number_of(name) for name in ("batch_size", "latency")}),
    )  # fmt: skip


def _output(row: Row) -> tuple[list[Figure], tuple[str, ...]]:
    """Its throughput under the definition that its times and tokens bear out, and why it can be none; () = it can."""
    value, latency, first = (row.positive(key) for key in ("output_throughput", "latency", "last_ttft"))
    tokens = row.count("total_output_tokens") or _asked(row)
    if value is None or latency is None or first is None or not tokens or latency <= first:
        return [], ()
    seconds = latency - first
    unsure = value * _SECONDS_OFF + seconds * _RATE_OFF
    definition = words.BATCH_OUTPUT if value * seconds > tokens - unsure else words.BATCH_WINDOW
    figure = Figure(metric="output_throughput_tok_s", unit="tok/s", definition=definition, value=value)
    if value * seconds <= tokens + unsure:
        return [figure], ()
    told = f"{value:g} tok/s over {seconds:.4g} s are more than the {tokens} tokens of the batch ({row.place.where})"
    return [figure], (told,)


def _total(row: Row) -> tuple[Claim, ...]:
    """That its overall throughput is its tokens over its time."""
    size, prompt = row.count("batch_size"), row.count("input_len")
    output = row.count("total_output_tokens") or _asked(row)
    tokens = None if size is None or prompt is None or output is None else size * prompt + output
    latency = row.number_of("latency")
    told = row.positive("overall_throughput")
    return quotient("overall_throughput", told, (tokens, "prompt and output tokens"), (latency, "s"))


def _asked(row: Row) -> int | None:
    """Output tokens that were asked for."""
    size, length = row.count("batch_size"), row.count("output_len")
    return None if size is None or length is None else size * length


KIND = Kind(
    name="sglang-batch",
    words="sglang one_batch_server",
    fits=_fits,
    points=_points,
    unknown=("whether a side without an accept length was served with a drafter",),
)
