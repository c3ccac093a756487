"""The replay -> what the server should accept on the very text that it serves, fed as it is and fed as it should be."""

import dataclasses
from collections.abc import Iterator, Mapping

from orchestrator.diagnosing.asked import Asked
from orchestrator.diagnosing.replay import rows_of
from orchestrator.diagnosing.results import Results
from orchestrator.diagnosis.decision.foretelling import Asked as Walked
from orchestrator.diagnosis.decision.foretelling import foretell
from orchestrator.diagnosis.decision.inputs import Predicted, Served, SplitName
from orchestrator.diagnosis.effective_capture import names
from orchestrator.diagnosis.measured import Split
from orchestrator.diagnosis.verdict import SERVED_OFFSET
from orchestrator.report.content import StandaloneReport
from remote_payload.schema import ReadingFacts
from remote_payload.schema.capture import CaptureResult

NOT_ADDED = "the embedding output is not added"
"""How the test's warning begins where the target's table does not give it."""


def mended(report: StandaloneReport, trained: tuple[int, ...] | None) -> ReadingFacts | None:
    """The reading that a fix is to give: of the states that it was `trained` on, else the best one on these rows.

    None where it was trained on states that were not measured here: another reading foretells nothing of them.
    """
    best = report.wiring.best.facts
    if trained is None or (best.states, best.token_offset) == (trained, SERVED_OFFSET):
        return best
    full = [facts for facts in report.result.readings if facts.stage == "full" and facts.states == trained]
    own = [facts for facts in full if facts.token_offset == SERVED_OFFSET]
    return next((facts for facts in own if facts.changes == best.changes), own[0] if own else None)


def unforetold(report: StandaloneReport, trained: tuple[int, ...] | None) -> str | None:
    """Why the replay foretells nothing of the states that the drafter was trained on; None where it does."""
    if mended(report, trained) is not None or trained is None:
        return None
    held = report.result.rows.states or ()
    lacking = [state for state in trained if state not in held]
    said = next((text for text in report.result.warnings if text.startswith(NOT_ADDED)), None)
    if said is not None:
        return said
    which = f"lack {names(tuple(lacking))}" if lacking else "were not measured on them"
    return f"the states of the replayed rows {which}"


def predicted(
    asked: Asked,
    results: Results,
    report: StandaloneReport | None,
    served: Served | None,
    trained: tuple[int, ...] | None,
) -> Iterator[Predicted]:
    """The served reading, and the mended one, walked over the rows that a capture made of prompts and answers."""
    record, captured = results.succeeded("replay"), results.captured
    if record is None or captured is None or served is None:
        return
    outputs = answers_of(captured)
    steps = served.figures.draft.num_steps
    if report is None or steps is None or report.wiring.declared is None:
        return
    measured = report.measured
    splits: tuple[SplitName, ...] = ("train", "held-out")
    if rows_of(captured, "answered") is None or rows_of(captured, "heldout") is None:
        alone = rows_of(captured, "answered") is not None or asked.only_training
        splits = ("train",) if alone else ("held-out",)
    for name, rows in zip(splits, (measured.train, measured.heldout), strict=False):
        walked = None if rows is None else walked_of(name, rows, served, steps, outputs)
        if rows is None or walked is None:
            continue
        dtype = report.result.dtype
        declared, best = report.wiring.declared.facts, mended(report, trained)
        yield foretell(declared, rows, walked, part="as served", run_id=record.run_id, dtype=dtype)
        if best is not None and best.name in rows.figures:
            told = foretell(best, rows, walked, part="best", run_id=record.run_id, dtype=dtype)
            yield dataclasses.replace(told, computed=report.result.rows.computed)


def answers_of(captured: CaptureResult) -> dict[str, tuple[int, ...]]:
    """What the server that was captured answered, by the prompt's digest."""
    return {answer.prompt_sha256: answer.output_ids for rows in captured.made for answer in rows.answers}


def walked_of(
    name: SplitName, rows: Split, served: Served, steps: int, outputs: Mapping[str, tuple[int, ...]]
) -> Walked | None:
    """What was asked of the prompts that rows were made of; None = this split was not served.

    `outputs`: what those rows hold as answers, by the prompt's digest; what was served is the same text only if it
    begins them.
    """
    split, workload = served.split(name), served.result.workload
    if split is None:
        return None
    here = {item.prompt for item in split.requests}  # a prompt may stand in both files
    places = {digest: index for index, digest in enumerate(workload.prompt_sha256) if index in here}
    sources = {row.name: (row.source or "").split() for row in rows.rows}
    ends = {
        item.prompt: item.completion_tokens
        for item in split.requests
        if item.error is None and item.completion_tokens is not None
    }
    return Walked(
        split=name,
        prompts={row: places[words[1]] for row, words in sources.items() if len(words) > 1 and words[1] in places},
        steps=steps,
        max_new_tokens=workload.max_new_tokens,
        ends=ends,
        outputs={index: outputs[digest] for digest, index in places.items() if digest in outputs},
    )
