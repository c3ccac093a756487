"""K14 and K17: which accept length was measured, and the number formats of all parts; K16 beside them."""

import json
from collections.abc import Iterator

from orchestrator.compare.served import effective
from orchestrator.diagnosis.decision.inputs import Known, Offline, Served
from orchestrator.diagnosis.decision.served_template import template
from orchestrator.diagnosis.finding import CheckResult, Evidence, Subject, figure
from remote_payload.schema.bench import ServerFacts

METRIC = Subject(check="K14", title="metric definitions")
FORMATS = Subject(check="K17", title="number formats")
LENGTHS_APART = 0.1
"""Accept length by which the two definitions may differ before a comparison must say which one it takes."""
COARSE = ("fp8", "int8", "int4", "fp4", "w4", "w8", "awq", "gptq", "e4m3", "e5m2", "nvfp4", "mxfp4")


def serving_checks(known: Known) -> Iterator[CheckResult]:
    """What the served run holds of the three; cannot_tell with what is needed where it does not."""
    if known.served is None:
        return
    yield metric(known.served)
    yield template(known.served.result.workload)
    yield from formats(known.served, known.offline)


def metric(served: Served) -> CheckResult:
    """K14: 1 + accepted / verify steps against tokens / verify steps, and which of them this version tells."""
    loads = [load for load in served.figures.loads if load.side == "spec" and load.acceptance is not None]
    found = loads[0].acceptance if loads else None
    if found is None:
        return METRIC.cannot_tell("no answer tells of verify steps", needs="answers of `/generate` with spec_verify_ct")
    both = (
        figure("accept length: 1 + accepted drafts / verify steps", found.accept_length, "tokens"),
        figure("tokens per verify: output tokens / verify steps", found.tokens_per_verify, "tokens"),
    )
    ours, theirs = found.accept_length.value, found.tokens_per_verify.value
    if ours is None:
        return METRIC.cannot_tell(
            f"this version tells no accepted drafts: {theirs or 0:.2f} are output tokens per verify step, which the "
            "prefill's token raises on short outputs",
            needs="SGLang 0.5.6 or newer, whose answers tell accepted drafts",
            evidence=both,
        )
    if theirs is not None and abs(theirs - ours) > LENGTHS_APART:
        return METRIC.finding(
            f"two definitions differ by {theirs - ours:+.2f}: accept length {ours:.2f}, tokens per verify {theirs:.2f}",
            severity="note",
            cause="parameters",
            evidence=both,
            remedy=("compare only like with like; SGLang's own `spec_accept_length` is tokens per verify step",),
            refuted_by="longer outputs, on which the two agree",
        )
    return METRIC.passed(f"accept length {ours:.2f} counts the bonus token; SGLang's own ratio agrees", both)


def formats(served: Served, offline: Offline | None) -> Iterator[CheckResult]:
    """K17: dtype, quantization and KV cache of target and drafter as served, beside those of the captured rows."""
    server = next((item for item in served.result.servers if item.side == "spec"), None)
    if server is None:
        return
    manifest = tuple(_manifest(server, offline))
    if all(item.value in (None, "not told") for item in manifest):
        yield FORMATS.cannot_tell("the server tells no formats", needs="/server_info", evidence=manifest)
        return
    faults = tuple(_coarse(server, manifest))
    yield from faults
    if not faults:
        yield FORMATS.passed("no part is served in a coarser format than 16 bits, as far as it is told", manifest)


def _manifest(server: ServerFacts, offline: Offline | None) -> Iterator[Evidence]:
    names = ("dtype", "quantization", "kv_cache_dtype", "speculative_draft_model_quantization")
    told = {fact.name for fact in server.arguments if fact.effective is not None}
    for name in names:
        value = effective(server, name)
        word = "not told" if name not in told else "none" if value is None else str(value)
        yield Evidence(name=f"{name} as served", value=word)
    if offline is None:
        return
    yield Evidence(name="captured states", value=offline.measured.result.rows.dtype)
    kinds = sorted({item.dtype for item in offline.measured.result.checkpoint.tensors if item.source == "draft"})
    yield Evidence(name="drafter's tensors", value=", ".join(kinds) or "not told")
    for key in ("torch_dtype", "dtype"):
        value = _config(offline).get(key)
        if value is not None:
            yield Evidence(name=f"`{key}` of the drafter's config.json", value=str(value))


def _config(offline: Offline) -> dict[str, object]:
    try:
        value = json.loads(offline.measured.result.checkpoint.config_json)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _coarse(server: ServerFacts, manifest: tuple[Evidence, ...]) -> Iterator[CheckResult]:
    parts = (
        ("kv_cache_dtype", "the KV cache", "--server-arg --kv-cache-dtype --server-arg auto"),
        ("speculative_draft_model_quantization", "the drafter", "--draft-quantization unquant"),
        ("quantization", "the target", "capture the training rows with the target as it is served"),
    )
    for name, what, remedy in parts:
        value = str(effective(server, name) or "").lower()
        if any(word in value for word in COARSE):
            yield FORMATS.finding(
                f"{what} is served in {value}: a format that costs acceptance where the drafter was trained without it",
                severity="minor",
                cause="engine",
                evidence=manifest,
                remedy=(remedy,),
                refuted_by="the same accept length without it",
            )
