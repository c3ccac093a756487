"""What a server of SGLang told of itself: its arguments without secrets, and the hard circumstances among them."""

import hashlib
import json
import re
from collections.abc import Mapping

from orchestrator.compare.bench_facts import DRAFT_ARGUMENTS, HARD_ARGUMENTS
from orchestrator.compare.fingerprint import PLACES
from orchestrator.importers.row import in_words

OF_A_START = PLACES | {"launch_command", "max_total_num_tokens", "max_req_input_len", "status", "weight_version"}
"""Told beside the arguments; may differ from start to start of the same server."""
_SECRET = re.compile(r"key|secret|password|passwd|credential|auth|(?:hf|access|api)_token", re.IGNORECASE)


def arguments_of(told: Mapping[str, object]) -> dict[str, str | None]:
    """The scalar arguments that a server told, without anything that is or may be a secret, or tells them again."""
    kept = {name: value for name, value in told.items() if not _SECRET.search(name) and name != "launch_command"}
    return {name: in_words(kept[name]) for name in sorted(kept) if not isinstance(kept[name], list | dict)}


def hard_of(arguments: Mapping[str, str | None]) -> dict[str, str | None]:
    """Hard facts that a server's arguments tell; nothing where it told none."""
    if not arguments:
        return {}
    found = {name: arguments.get(key) for name, key in HARD_ARGUMENTS.items()}
    plain = arguments.get("speculative_algorithm") is None
    found |= {name: "none" if plain else arguments.get(key) for name, key in DRAFT_ARGUMENTS.items()}
    for name in ("quantization", "draft_quantization"):
        found[name] = found[name] or "none"
    return found


def start_of(told: Mapping[str, object]) -> str | None:
    """What tells one start of a server from another: how long its parts took, and the seed it drew; None = untold.

    Of a version that tells the seed alone, several starts with one seed of the user's look like one: `seed ...`.
    """
    seed, times = told.get("random_seed"), told.get("startup_time")
    if isinstance(times, dict) and times:
        return hashlib.sha256(json.dumps([seed, times], sort_keys=True).encode()).hexdigest()[:12]
    return f"seed {seed}" if isinstance(seed, int) else None


def server_of(arguments: Mapping[str, str | None]) -> dict[str, str | None]:
    """What tells one server from another: its arguments, but for those that each start of it has anew."""
    return {name: value for name, value in arguments.items() if name not in OF_A_START and not name.endswith("_port")}
