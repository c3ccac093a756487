"""K17: number formats of all parts as served, beside those of the captured rows and the drafter's weights.

A coarse or mixed format alone proves nothing; where the same requests were foretold, what it costs is told with its
interval, and a cost that is surely small makes it a note. `auto` is no format: what it became stands in the log, where
the KV cache of the target, then the drafter's, is allocated.
"""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from orchestrator.compare.served import effective
from orchestrator.diagnosis.decision.foretold import MARGIN, Compared
from orchestrator.diagnosis.decision.inputs import Known, Offline
from orchestrator.diagnosis.decision.served_axes import compared
from orchestrator.diagnosis.finding import CheckResult, Evidence, Subject, figure
from remote_payload.schema.bench import ServerFacts

FORMATS = Subject(check="K17", title="number formats")
COARSE = ("fp8", "float8", "int8", "int4", "fp4", "float4", "w4", "w8", "awq", "gptq", "e4m3", "e5m2", "nvfp4", "mxfp4")
"""Parts of a name that say how coarse a format is; other quantizations say it in the checkpoint's own config."""
PLAIN = ("", "none", "unquant", "auto", "half", "float", "bfloat16", "bf16", "float16", "fp16", "float32", "fp32")
"""What no quantization is called: everything else is one, whatever a coming version of SGLang calls it."""
NAMES = ("dtype", "quantization", "kv_cache_dtype", "speculative_draft_kv_cache_dtype",
         "speculative_draft_model_quantization")  # fmt: skip
_ALLOCATED = re.compile(r"dtype: (?:torch\.)?(\w+)")


@dataclass(frozen=True, kw_only=True)
class Part:
    """One part that is served in a format of its own."""

    what: str
    served: str
    why: str
    remedy: str


_KV_REMEDY = (
    "serve the KV cache in the model's own format: --server-arg --kv-cache-dtype --server-arg auto; where "
    "`auto` gave this, the checkpoint's own quantization config asks for it"
)
_COARSE_WHY = "a format that costs acceptance where the drafter was trained without it"
_UNTOLD_WHY = (
    "its name does not tell how coarse; quantization costs acceptance where the drafter was trained without it"
)


def formats(known: Known) -> Iterator[CheckResult]:
    """A finding for each part that is quantized, and where the drafter's 16 bits are others than the target's."""
    served = known.served
    server = None if served is None else next((one for one in served.result.servers if one.side == "spec"), None)
    if served is None or server is None:
        return
    manifest = tuple(_manifest(server, known.offline))
    if all(item.value in (None, "not told") for item in manifest):
        yield FORMATS.cannot_tell("the server tells no formats", needs="/server_info", evidence=manifest)
        return
    parts = tuple(_parts(server))
    costs = [found for one in served.splits if (found := compared(known, one)) is not None and found.requests]
    yield from (_finding(part, costs, manifest) for part in parts)
    if not parts:
        yield FORMATS.passed("no part is quantized or in fewer than 16 bits, as far as it is told", manifest)


def _finding(part: Part, costs: Sequence[Compared], manifest: tuple[Evidence, ...]) -> CheckResult:
    """Its cost beside it where requests were foretold; surely less than the margin on all of them: a note."""
    small = bool(costs) and all(found.difference.low is not None and found.difference.low > -MARGIN for found in costs)
    told = ""
    if small:
        told = f"; it costs less than {MARGIN:g} of accept length here, on prompts that were foretold"
    measured = tuple(
        figure(f"accept length, served minus predicted ({found.split}, by prompt)", found.difference, "tokens")
        for found in costs
    )
    return FORMATS.finding(
        f"{part.what} is served in {part.served}: {part.why}{told}",
        severity="note" if small else "minor",
        cause="engine",
        evidence=(*measured, *manifest),
        remedy=(part.remedy,),
        refuted_by="the same accept length without it",
    )


def _parts(server: ServerFacts) -> Iterator[Part]:
    kv, draft_kv = allocated(server)
    asked_kv = kv or _word(server, "kv_cache_dtype")
    if is_coarse(asked_kv):
        yield Part(what="the KV cache", served=asked_kv, why=_why(asked_kv), remedy=_KV_REMEDY)
    asked_draft = draft_kv or _word(server, "speculative_draft_kv_cache_dtype")
    if is_coarse(asked_draft) and asked_draft != asked_kv:
        yield Part(what="the drafter's KV cache", served=asked_draft, why=_why(asked_draft), remedy=_KV_REMEDY)
    draft = _word(server, "speculative_draft_model_quantization")
    if is_coarse(draft):
        remedy = "serve it as it was trained: --draft-quantization unquant (unset, it is the target's)"
        yield Part(what="the drafter", served=draft, why=_why(draft), remedy=remedy)
    target = _word(server, "quantization")
    if is_coarse(target):
        remedy = "capture the training rows with the target as it is served"
        yield Part(what="the target", served=target, why=_why(target), remedy=remedy)
    if kv and draft_kv and kv != draft_kv and not is_coarse(kv) and not is_coarse(draft_kv):
        yield Part(
            what="the drafter",
            served=draft_kv,
            why=f"the target in {kv}, so every state that it is fed is cast; `--dtype auto` makes float16 of a "
            "config.json that says float32 or nothing",
            remedy=f'write "torch_dtype": "{kv}" into the drafter\'s config.json, or serve both with --dtype {kv}',
        )


def allocated(server: ServerFacts) -> tuple[str, str]:
    """Formats of the target's and the drafter's KV cache as the log says; empty where it does not."""
    lines = [line.line for line in server.lines if line.rule == "kv_cache"]
    found = [match[1] for line in lines if (match := _ALLOCATED.search(line))]
    return (found[0], found[-1]) if len(found) > 1 else (found[0] if found else "", "")


def is_coarse(word: str) -> bool:
    """Whether a format is none of 16 bits or more: a quantization that nobody knows is no less one."""
    return word not in PLAIN


def _why(word: str) -> str:
    return _COARSE_WHY if any(part in word for part in COARSE) else _UNTOLD_WHY


def _word(server: ServerFacts, name: str) -> str:
    return str(effective(server, name) or "").lower().removeprefix("torch.")


def _manifest(server: ServerFacts, offline: Offline | None) -> Iterator[Evidence]:
    told = {fact.name for fact in server.arguments if fact.effective is not None}
    for name in NAMES:
        value = effective(server, name)
        word = "not told" if name not in told else "none" if value is None else str(value)
        yield Evidence(name=f"{name} as served", value=word)
    for name, word in zip(("target's", "drafter's"), allocated(server), strict=True):
        if word:
            yield Evidence(name=f"{name} KV cache as allocated", value=word)
    if offline is None:
        return
    result = offline.measured.result
    yield Evidence(name="captured states", value=result.rows.dtype)
    kinds = sorted({item.dtype for item in result.checkpoint.tensors if item.source == "draft"})
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
