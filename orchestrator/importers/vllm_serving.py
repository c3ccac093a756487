"""vLLM: `vllm bench serve --save-result` (one object, or one a line), and `summary.json` of `vllm bench sweep serve`.

Its acceptance comes from the server's counters before and after; its rates by position are joint, so the conditional
ones are made of neighbours.
"""

import datetime
import re

from orchestrator.compare import definitions as ours
from orchestrator.importers import definitions as words
from orchestrator.importers.assembly import Figure, Origin, Point, assembled
from orchestrator.importers.sglang_serving import failures, load_of, rates, summaries
from orchestrator.importers.source import Row, Source, without_copies
from orchestrator.records.measurement import MeasurementSet

KIND = "vllm-serve"
_DATE = re.compile(r"(\d{8})-(\d{6})")
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


def fits(row: Row) -> bool:
    """Whether a row is one of its results."""
    return {"model_id", "request_throughput"} <= set(row.value)


def measured(source: Source) -> MeasurementSet:
    """The measurements of a file. Raises InvalidRunError naming file, place and key."""
    rows, copies = without_copies(source.rows)
    date = _DATE.fullmatch(rows[0].word("date") or "") if rows else None
    unknown: tuple[str, ...] = ("the time zone of its date: taken as UTC",) if date else ()
    if copies:
        unknown += (f"{copies} results stand there twice; a copy is no repeat and was left out",)
    created = None
    if date:
        try:
            moment = datetime.datetime.strptime("".join(date.groups()), "%Y%m%d%H%M%S")
            created = moment.replace(tzinfo=datetime.UTC).timestamp()
        except ValueError:
            rows[0].fail("date", "a date such as 20260131-235959")
    origin = Origin(kind=KIND, tool="vllm bench serve", created_unix_s=created, unknown=unknown,
                    date=date.group(1) if date else "")  # fmt: skip
    return assembled(source, origin, [_point(row) for row in rows])


def _point(row: Row) -> Point:
    figures = [*rates(row, _RATES), *summaries(row, _LATENCIES), *_acceptance(row)]
    side = "spec" if row.positive("spec_decode_num_drafts") else None
    hard = {"target": row.word("model_id"), "prompts": row.word("num_prompts"), "dataset": row.word("dataset_name")}
    if (load := load_of(row)).get("concurrency") is not None and row.word("request_rate") not in (None, "inf"):
        hard["request_rate"] = row.word("request_rate")
    names = ("backend", "endpoint_type", "tokenizer_id", "burstiness", "label")
    soft = {name: row.word(name) for name in names} | {"answered_requests": row.word("completed")}
    return Point(row=row, case={"side": side, **load}, figures=figures, hard=hard, soft=soft, invalid=failures(row))


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
    joint = row.value.get("spec_decode_per_position_acceptance_rates") or []
    if not isinstance(joint, list) or not all(isinstance(p, int | float) and 0 <= p <= 1 for p in joint):
        row.fail("spec_decode_per_position_acceptance_rates", "a list of shares")
    before = 1.0
    for depth, share in enumerate(joint[:16], 1):
        if before <= 0 or share > before:
            break
        words_of = ours.FIRST_STEP_ACCEPTANCE if depth == 1 else ours.STEP_ACCEPTANCE.format(before=depth - 1)
        found.append(_figure(f"step{depth}_acceptance", "share", words_of, share / before))
        before = share
    return found


def _figure(metric: str, unit: str, definition: str, value: float) -> Figure:
    return Figure(metric=metric, unit=unit, definition=definition, value=value)
