"""A standalone test's reading walked as the server walks, made ready to be held against its answers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from orchestrator.compare.chains import chains_of
from orchestrator.compare.walk import serving_walks
from orchestrator.diagnosis.decision.inputs import Predicted, PredictedRequest, SplitName
from orchestrator.diagnosis.measured import Split
from remote_payload.schema import ReadingFacts


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What a server was asked, and which rows hold its answers."""

    split: SplitName
    prompts: Mapping[str, int]
    """The workload's index of each row's prompt, by the row's name; rows without one are left out."""
    steps: int
    """How many drafts a step it makes."""
    max_new_tokens: int
    ends: Mapping[int, int] = field(default_factory=dict)
    """Tokens out at which the answer to a prompt ended by itself, before `max_new_tokens`."""
    outputs: Mapping[int, Sequence[int]] = field(default_factory=dict)
    """Each prompt's response as the row holds it, where that is known."""


def foretell(
    facts: ReadingFacts,
    rows: Split,
    asked: Asked,
    *,
    part: Literal["as served", "best"],
    run_id: str,
    dtype: str = "float32",
) -> Predicted:
    """Walk one reading over the rows; `dtype`: of the standalone test's arithmetic.

    A row of several responses is left out, as which of them was asked is not known, and every row where the reading was
    measured over fewer steps than the server makes. Raises InvalidRunError where its hits do not fit the rows.
    """
    found = []
    for chains in chains_of(facts.name, rows.rows, rows.hits):
        prompt = asked.prompts.get(chains.row.name)
        if prompt is None or chains.steps < asked.steps:
            continue
        limit = min(asked.max_new_tokens, asked.ends.get(prompt, asked.max_new_tokens))
        walks = serving_walks(chains, depth=asked.steps, max_new_tokens=limit)
        if len(walks) != 1:
            continue
        output = asked.outputs.get(prompt)
        found.append(
            PredictedRequest(
                prompt=prompt,
                histogram=walks[0].histogram,
                tokens=walks[0].tokens,
                greedy=walks[0].greedy,
                output_ids=None if output is None else tuple(output),
            )
        )
    return Predicted(
        split=asked.split,
        run_id=run_id,
        part=part,
        reading=facts.name,
        states=facts.states,
        dtype=dtype,
        requests=tuple(found),
    )
