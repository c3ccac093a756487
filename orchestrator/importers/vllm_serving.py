"""vLLM: `vllm bench serve --save-result` (one object, or one a line), and the runs of `vllm bench sweep serve`.

Its acceptance comes from the server's counters before and after; its rates by position are joint, so the conditional
ones are made of neighbours. Keys that are not its own (`--metadata`, the parameters of a sweep) are circumstances.
"""

import datetime
import re

from orchestrator.compare import definitions as ours
from orchestrator.importers import definitions as words
from orchestrator.importers.depths import by_depth
from orchestrator.importers.identities import Claim, quotient
from orchestrator.importers.kind import Kind, stamp_in
from orchestrator.importers.point import Figure, Point
from orchestrator.importers.row import Row, in_words
from orchestrator.importers.sglang_serving import identities, load_of, paced, rates, summaries

_RATES = (
    ("output_throughput_tok_s", "tok/s", words.VLLM_OUTPUT, ("output_throughput",)),
    ("total_throughput_tok_s", "tok/s", words.VLLM_TOTAL, ("total_token_throughput",)),
    ("request_throughput_req_s", "req/s", words.VLLM_REQUESTS, ("request_throughput",)),
)
_LATENCIES = (
    ("ttft_s", ours.TTFT, "ttft_ms"),
    ("tpot_s", words.SGLANG_TPOT, "tpot_ms"),
    ("itl_s", words.VLLM_ITL, "itl_ms"),
    ("e2e_s", ours.E2E, "e2el_ms"),
)
_SOFT = ("backend", "endpoint_type", "tokenizer_id", "burstiness", "label")
_OWN = {
    *("date", "model_id", "num_prompts", "request_rate", "max_concurrency", "duration", "completed", "failed"),
    *("total_input_tokens", "total_output_tokens", "request_goodput", "max_output_tokens_per_s", "run_number"),
    *("max_concurrent_requests", "dataset_name", "ramp_up_strategy", "ramp_up_start_rps", "ramp_up_end_rps"),
    *("total_cached_tokens", "rtfx", "total_audio_duration", *_SOFT, *(key for row in _RATES for key in row[3])),
}
_STATISTIC = re.compile(
    r"(?:mean|median|std|p\d{1,2}(?:\.\d+)?)_\w+|spec_decode_\w+|\w+_per_s|(?:steady_state|probe|diffusion)_\w+|\w+_ms"
)
_SECRET = re.compile(r"key|secret|password|token$|auth", re.IGNORECASE)


def _fits(row: Row) -> bool:
    return {"model_id", "request_throughput"} <= set(row.value) or _failure(row)


def _failure(row: Row) -> bool:
    return {"run_number", "error_type", "bench_overrides"} <= set(row.value)


def _passed_over(row: Row) -> str | None:
    return f"a run of the sweep failed and is not in it: {row.place.where}" if _failure(row) else None


def _when(row: Row) -> datetime.datetime | None:
    date = row.word("date")
    moment = stamp_in(date or "")
    if date is not None and moment is None:
        row.fail("date", "a date such as 20260131-235959")
    return moment


def _points(row: Row) -> tuple[Point]:
    side = "spec" if row.positive("spec_decode_num_drafts") else None
    hard = {"target": row.word("model_id"), "prompts": row.word("num_prompts"), "dataset": row.word("dataset_name")}
    more = {name: in_words(value) for name, value in row.value.items()
            if name not in _OWN and not _STATISTIC.fullmatch(name) and not _SECRET.search(name)
            and not isinstance(value, list | dict) and value is not None}  # fmt: skip
    asked, answered, warnings = _requests(row)
    held = identities(row, _RATES)
    return (
        Point(place=row.place, case={"side": side, **load_of(row)},
              figures=[*rates(row, _RATES), *summaries(row, _LATENCIES), *_acceptance(row)],
              hard={**hard, **paced(row), **more}, soft={name: row.word(name) for name in _SOFT},
              counts={name: row.word(f"total_{name}") for name in ("input_tokens", "output_tokens")},
              asked=asked, answered=answered, warnings=warnings,
              claims=(*held["claims"], *_of_drafts(row)),
              counted={**held["counted"], "num_prompts": row.count("num_prompts")}),
    )  # fmt: skip


def _requests(row: Row) -> tuple[int | None, int | None, tuple[str, ...]]:
    """How many requests were sent and how many answered, and what is to be said of that.

    `num_prompts` is what was asked for: of a small data set fewer are sent, so what it counts itself goes before it.
    """
    wanted, answered, failed = (row.count(name) for name in ("num_prompts", "completed", "failed"))
    errors = row.value.get("errors")
    told = sum(map(bool, errors)) if isinstance(errors, list) else 0
    if answered is None or (failed is None and not told):
        return wanted, answered, ()
    sent = answered + (failed or 0)
    if told > (failed or 0):  # an error of a request that it counts as answered
        return max(sent, len(errors or ())), min(answered, max(len(errors or ()) - told, 0)), ()
    if wanted is None or wanted == sent:
        return sent, answered, ()
    text = f"{wanted} prompts were asked for, {sent} were answered or failed by its own counts ({row.where})"
    return sent, answered, (text,)


def _of_drafts(row: Row) -> tuple[Claim, ...]:
    """That its acceptance is what its counters of the server make."""
    steps, drafts, accepted = (
        row.number_of(f"spec_decode_{name}") for name in ("num_drafts", "draft_tokens", "accepted_tokens")
    )
    rate, length = (row.number_of(f"spec_decode_acceptance_{name}") for name in ("rate", "length"))
    found = [
        *quotient("spec_decode_acceptance_rate", None if rate is None else rate / 100, (accepted, "accepted"),
                  (drafts, "draft tokens")),
    ]  # fmt: skip
    if accepted is not None and drafts is not None and accepted > drafts:
        words = f"of {drafts:g} that were drafted"
        found.append(Claim(name="spec_decode_accepted_tokens", told=accepted, made=drafts, words=words))
    if accepted is None or not steps:
        return tuple(found)
    a_draft = accepted / steps
    if length is not None:
        words = f"1 + {accepted:g} accepted / {steps:g} drafts make {1 + a_draft:.4g}"
        found.append(Claim(name="spec_decode_acceptance_length", told=length, made=1 + a_draft, words=words))
    if joint := row.numbers("spec_decode_per_position_acceptance_rates"):
        words = f"in sum; {accepted:g} accepted / {steps:g} drafts make {a_draft:.4g}"
        name = "spec_decode_per_position_acceptance_rates"
        found.append(Claim(name=name, told=sum(joint), made=a_draft, words=words))
    return tuple(found)


def _acceptance(row: Row) -> list[Figure]:
    steps, drafts, accepted = (
        row.number_of(f"spec_decode_{name}") for name in ("num_drafts", "draft_tokens", "accepted_tokens")
    )
    found = []
    length = row.positive("spec_decode_acceptance_length")
    if length is not None:
        found.append(_figure("accept_length_pooled", "tokens", words.SERVER_COUNTERS, length))
    if steps and drafts and accepted is not None and drafts % steps == 0:
        definition = ours.ACCEPT_RATE.format(drafts=int(drafts / steps))
        found.append(_figure("accept_rate", "share", definition, accepted / drafts))
    joint = row.numbers("spec_decode_per_position_acceptance_rates") or []
    if not all(0 <= share <= 1 for share in joint):
        row.fail("spec_decode_per_position_acceptance_rates", "a list of shares")
    return [*found, *by_depth(joint)]


def _figure(metric: str, unit: str, definition: str, value: float) -> Figure:
    return Figure(metric=metric, unit=unit, definition=definition, value=value)


KIND = Kind(
    name="vllm-serve",
    words="vllm bench serve",
    fits=_fits,
    points=_points,
    unknown=("which requests were warm-up, and which seed was used",),
    passed_over=_passed_over,
    when=_when,
)
