"""What to run next, cheapest first: the whole command with what is known already, capitals for what is not."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from orchestrator.compare.served import decoded, effective
from orchestrator.compare.served_refused import without
from orchestrator.diagnosis.decision.inputs import Known
from orchestrator.diagnosis.decision.row import Row, Step

Cost = Literal["offline", "capture", "serve"]
"""`offline`: minutes, without a server; `capture`: a server's start and some prompts; `serve`: a benchmark."""
COSTS: tuple[Cost, ...] = ("offline", "capture", "serve")


@dataclass(frozen=True, kw_only=True)
class NextRun:
    """One thing to run, and what it decides."""

    step: Step
    what: str
    command: tuple[str, ...]
    """Words of the command; capitals stand for what only its user knows."""
    why: str
    cost: Cost
    decides: bool
    """Whether what is named now may change by it."""


_WHAT: dict[Step, tuple[str, Cost]] = {
    "standalone": ("the standalone test on training rows", "offline"),
    "sweep": ("the standalone test with every choice of the computation", "offline"),
    "more_rows": ("the standalone test on more rows", "offline"),
    "other_rows": ("the standalone test on rows that hold the states that are served", "offline"),
    "check_rows": ("the standalone test with rows compared to a fresh forward of the target", "offline"),
    "heldout": ("the standalone test with held-out rows", "offline"),
    "more_heldout": ("the standalone test with more held-out rows", "offline"),
    "predict": ("the standalone test over prompts and served outputs", "offline"),
    "capture": ("a capture of what the running server feeds its drafter", "capture"),
    "serve_train": ("a benchmark on prompts of the training rows", "serve"),
    "serve_heldout": ("a benchmark on held-out prompts", "serve"),
    "more_prompts": ("a benchmark on more prompts", "serve"),
    "bench": ("a benchmark of a server of our own", "serve"),
    "baseline": ("a benchmark beside plain decoding", "serve"),
    "repeats": ("a benchmark with more repeats", "serve"),
    "again": ("the benchmark once more", "serve"),
}
_FLAGS: dict[Step, tuple[str, ...]] = {
    "sweep": ("--sweep", "full"),
    "more_rows": ("--max-rows", "100"),
    "other_rows": ("--rows", "ROWS_THAT_HOLD_THEM"),
    "check_rows": ("--capture-rows", "4"),
    "heldout": ("--heldout", "HELDOUT_ROWS"),
    "more_heldout": ("--heldout", "MORE_HELDOUT_ROWS"),
    "predict": ("--rows", "SERVED_ROWS"),
    "serve_train": ("--prompts", "TRAIN_PROMPTS.jsonl"),
    "serve_heldout": ("--prompts", "HELDOUT_PROMPTS.jsonl"),
    "more_prompts": ("--prompts", "MORE_PROMPTS.jsonl"),
    "baseline": ("--with-baseline", "--repeats", "3"),
    "repeats": ("--with-baseline", "--repeats", "10"),
}

_SERVER = {
    "speculative_num_steps": "--num-steps",
    "speculative_eagle_topk": "--eagle-topk",
    "speculative_num_draft_tokens": "--num-draft-tokens",
    "dtype": "--dtype",
    "quantization": "--quantization",
    "context_length": "--context-length",
    "tp_size": "--tp",
}
"""Flags of a server of our own, for `run capture` too, by the argument that they set."""
_BENCH = {
    "dp_size": "--dp",
    "ep_size": "--ep",
    "speculative_draft_model_quantization": "--draft-quantization",
}
"""Those of `run bench` alone."""
_FOLDED: tuple[tuple[Step, Step], ...] = (
    ("heldout", "standalone"),
    ("more_heldout", "standalone"),
    ("baseline", "bench"),
    ("baseline", "serve_train"),
    ("baseline", "serve_heldout"),
)
"""Steps that are one run where both are to be made."""
_SAME: dict[Cost, str] = {"offline": "the standalone test ", "capture": "", "serve": "a benchmark "}


def next_runs(known: Known, rows: Sequence[Row]) -> tuple[NextRun, ...]:
    """Each step once, cheapest first, those that may change what is named before those that add to it."""
    found: dict[Step, NextRun] = {}
    for row in rows:
        for step in row.asks:
            what, cost = _WHAT[step]
            known_step = found.get(step)
            decides = row.doubts or (known_step is not None and known_step.decides)
            why = row.why if known_step is None else known_step.why
            command = _command(known, step, cost)
            found[step] = NextRun(step=step, what=what, command=command, why=why, cost=cost, decides=decides)
    for step, into in _FOLDED:
        if step in found and into in found:
            run, other = found.pop(step), found[into]
            words = f"{other.what}, and {run.what.removeprefix(_SAME[other.cost])}"
            command = (*other.command, *_FLAGS[step])
            found[into] = replace(other, what=words, command=command, decides=run.decides or other.decides)
    runs = [replace(run, what=f"{run.what}{_shorter(known)}") if run.cost == "serve" else run for run in found.values()]
    return tuple(sorted(runs, key=lambda run: (not run.decides, COSTS.index(run.cost))))


def _shorter(known: Known) -> str:
    """What to do first about prompts that the server refused for their length: asked again they are refused again."""
    loads = () if known.served is None else known.served.figures.loads
    refused = {one.prompt: one for load in loads for one in load.refused}
    return f" ({without([refused[prompt] for prompt in sorted(refused)])} first)" if refused else ""


def _command(known: Known, step: Step, cost: Cost) -> tuple[str, ...]:
    more = _FLAGS.get(step, ())
    own: list[tuple[str, ...]] = [*{"offline": _standalone, "capture": _capture, "serve": _bench}[cost](known)]
    offline = None if known.offline is None else known.offline.measured.result.rows
    own += [("--add-embedding",)] if cost == "offline" and offline is not None and offline.computed else []
    kept = [pair for pair in own if pair[0] not in more]
    kind = {"offline": "standalone", "capture": "capture", "serve": "bench"}[cost]
    words = [word for pair in kept for word in pair]
    return ("eagle3-remote", "run", kind, "--host", "HOST", *words, *more)


def _standalone(known: Known) -> list[tuple[str, str]]:
    return [("--draft", _draft(known)), ("--target", _target(known)), *_rows(known)]


def _capture(known: Known) -> list[tuple[str, str]]:
    return [("--model", _target(known)), ("--draft", _draft(known)), *_rows(known), *_server(known, _SERVER)]


def _rows(known: Known) -> list[tuple[str, str]]:
    if known.offline is None:
        return [("--rows", "TRAIN_ROWS")]
    facts = known.offline.measured.result.rows
    held = None if facts.states is None else [state for state in facts.states if state not in facts.computed]
    states = [] if held is None else [("--states", ",".join(map(str, held)))]
    return [("--rows", facts.folder), *states]


def _bench(known: Known) -> list[tuple[str, str]]:
    return [("--model", _target(known)), ("--draft", _draft(known)), *_server(known, _SERVER | _BENCH)]


def _server(known: Known, flags: Mapping[str, str]) -> list[tuple[str, str]]:
    """What was asked of the speculating server before: the next one is to be the same."""
    servers = () if known.served is None else known.served.result.servers
    spec = next((server for server in servers if server.side == "spec" and not server.attached), None)
    asked = {} if spec is None else {fact.name: fact.requested for fact in spec.arguments}
    found = {flag: decoded(asked.get(name)) for name, flag in flags.items()}
    return [(flag, str(value)) for flag, value in found.items() if isinstance(value, int | str)]


def _draft(known: Known) -> str:
    if known.offline is not None:
        return known.offline.measured.result.checkpoint.draft
    asked = None if known.served is None else known.served.result.asked_draft  # whatever that server serves instead
    return asked.path if asked is not None else _served_path(known, "speculative_draft_model_path") or "DRAFT"


def _target(known: Known) -> str:
    own = None if known.offline is None else known.offline.measured.result.checkpoint.target
    return own or _served_path(known, "model_path") or "TARGET"


def _served_path(known: Known, name: str) -> str | None:
    servers = () if known.served is None else known.served.result.servers
    found = next((effective(server, name) for server in servers if server.side == "spec"), None)
    return found if isinstance(found, str) else None
