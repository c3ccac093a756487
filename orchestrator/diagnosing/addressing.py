"""What to run next, with the host, folders and files that this diagnosis was asked about in place of capitals."""

import dataclasses

from orchestrator.diagnosing.asked import Asked
from orchestrator.diagnosis.decision.decision import Decision


def addressed(decision: Decision, asked: Asked, host: str) -> Decision:
    """The same; what nobody said stays in capitals."""
    serving, samples = asked.serving, asked.samples
    has_both = serving.get("heldout_prompts") is not None
    known = {
        "HOST": host,
        "TARGET": asked.model,
        "DRAFT": asked.draft,
        "TRAIN_ROWS": samples.get("rows"),
        "HELDOUT_ROWS": samples.get("heldout"),
        "TRAIN_PROMPTS.jsonl": serving.get("prompts") if has_both or asked.only_training else None,
        "HELDOUT_PROMPTS.jsonl": serving.get("heldout_prompts" if has_both else "prompts"),
    }
    if asked.only_training:
        known["HELDOUT_PROMPTS.jsonl"] = None
    runs = tuple(
        dataclasses.replace(run, command=tuple(str(known.get(word) or word) for word in run.command))
        for run in decision.next_runs
    )
    return dataclasses.replace(decision, next_runs=runs)
