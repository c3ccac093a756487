"""Lines of SGLang's log that tell what it decided by itself, of every version from 0.4.5 on."""

import re

RULES: dict[str, str] = {
    "draft_tokens_adjusted": r"speculative_num_draft_tokens is adjusted to speculative_num_steps \+ 1",
    "running_requests_reset": r"[Mm]ax[ _]running[ _]requests is reset to \d+ for speculative decoding",
    "topk_changed": r"speculative_eagle_topk is (?:changed|adjusted|set) to 1",
    "token_map_ignored": r"Speculative token map specified, but EAGLE3 models already have this",
    "draft_path_ignored": r"DeepSeek MTP does not require setting speculative_draft_model_path",
    "algorithm_changed": r"promoting --speculative-algorithm",
    "mixed_chunk_off": r"Mixed chunked prefill is disabled",
    "overlap_off": r"Overlap schedule(?:r)? is (?:disabled|not implemented|turned off)",
    "spec_v1": r"Spec v1 is used for",
    "spec_v2": r"Spec v2 is enabled|Beta spec is enabled for",
    "spec_v2_synchronous": r"Non-overlap \(synchronous\) spec v2 is used",
    "spec_v2_variable_ignored": r"SGLANG_ENABLE_SPEC_V2 has been removed",
    "adaptive_off": r"speculative_adaptive disabled:",
    "window_ignored": r"speculative-draft-window-size has no effect",
    "rejection_sampling": r"Rejection sampling is enabled for speculative decoding",
    "draft_context_overridden": r"Overriding the draft model's max_position_embeddings",
    "draft_quantization_overridden": r"Overriding \w+ quant config for \w+ target",
    "attention_backend_chosen": r"[Aa]ttention backend not (?:specified|set)\.|will fallback to torch_native backend",
    "cuda_graph_off": r"[Cc]uda graph (?:is|will be) disabled|Disable (?:decode )?(?:cuda|CUDA) graph",
    "radix_cache_off": r"[Rr]adix cache is disabled",
    "simulated_acceptance": r"SIMULATE_ACC_LEN",
    "memory_fraction_changed": r"mem_fraction_static .*(?:adjusted|reset|changed)",
    "weights_loaded": r"Load weight end\.",
    "kv_cache": r"KV Cache is allocated\.",
    "capacity": r"max_total_num_tokens=\d+",
    "startup_timings": r"Engine startup timings",
}
"""Rule name -> pattern."""

_ANY = re.compile("|".join(f"(?P<{name}>{pattern})" for name, pattern in RULES.items()))
_LOADED = re.compile(r"Load weight end\..*?\btype=(\w+)")
_PREFIX = re.compile(r"^\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:[.,]\d+)?((?: [A-Z]+\d+)*)\] ")
FREQUENT = ("Decode batch", "Prefill batch", "INFO:     ")
"""How lines begin, after their time, that come with every request and decide nothing."""


def rule_of(line: str) -> str | None:
    """The rule that a line matches, if any."""
    found = _ANY.search(line)
    return found.lastgroup if found else None


def loaded_class(line: str) -> tuple[str, str] | None:
    """The rank and the model class that a `Load weight end` line names; each rank loads the target, then the draft."""
    found = _LOADED.search(line)
    return (rank_of(line), found[1]) if found else None


def rank_of(line: str) -> str:
    """e.g. ` DP0 TP1`; empty where the line names none."""
    found = _PREFIX.match(line)
    return found[1] if found else ""


def without_time(line: str) -> str:
    """The line without its time and rank: every rank says the same thing once more."""
    return _PREFIX.sub("", line)
