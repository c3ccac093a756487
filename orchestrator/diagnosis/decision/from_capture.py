"""A capture as inputs of a decision: what the server surely feeds, and what its source says it would."""

from orchestrator.compare.served import effective
from orchestrator.diagnosis.decision.inputs import Fed, Resolved
from orchestrator.diagnosis.effective_capture import layers_of, resolve
from orchestrator.diagnosis.pipeline_stages import stages_of
from orchestrator.diagnosis.recognised_states import recognised
from orchestrator.diagnosis.served_states import judge_capture
from remote_payload.schema.capture import CaptureResult
from remote_payload.schema.capture_rule import CaptureRule

SILENT = ("not_returned", "not_compared")
"""Verdicts on a capture that say nothing of what is fed."""


def fed_of(found: CaptureResult, run_id: str, trained: tuple[int, ...] | None = None) -> Fed | None:
    """What the running server feeds; None where no drafter was served, no state came, or too few tokens were compared.

    `trained`: what the trainer says the drafter was trained on. A state that is only near a captured one is none of
    them, one of the token beside is none either; one that is a captured one scaled or normed is that one, `changed`.
    """
    judged = judge_capture(found, trained)
    if judged.verdict in SILENT or found.method != "speculating":
        return None
    states = [recognised(served) for served in found.served]
    known = [one for one in states if one is not None]
    changes = tuple(None if one is None else one.changed for one in states)
    rule = found.rule
    told = None if found.server is None else effective(found.server, "speculative_draft_model_path")
    return Fed(
        run_id=run_id,
        sglang_version=found.sglang_version,
        states=judged.states,
        trained=trained,
        tokens=found.compared_tokens,
        exact=bool(known) and all(one.match.exact == one.match.tokens for one in known),
        token_offset=next((one.match.token_offset for one in known if one.match.token_offset), 0),
        worst_error=max((one.residual for one in known), default=None),
        changed=changes if any(changes) else (),
        target_class=None if rule is None else rule.target_class,
        target_layers=layers_of(found.target_config),
        draft=None if told is None else str(told),
        draft_weights=None if found.draft is None else found.draft.weights_sha256,
        draft_tensors=None if found.draft is None else found.draft.tensors_sha256,
        asked_draft=found.asked_draft,
    )


def resolved_of(found: CaptureResult) -> Resolved:
    """What the installed source says; `states` None where it does not tell."""
    return resolved_by(found.rule, found.draft_config, found.target_config, stages_of(found.server))


def resolved_by(
    found: CaptureRule | None, draft_config: str | None, target_config: str | None, stages: int = 1
) -> Resolved:
    """The same of a source and the texts of both config.json; `stages`: pipeline stages of the server."""
    rule = resolve(found, draft_config, target_config, pipeline_stages=stages)
    told = (*rule.reasoning, rule.problem) if rule.problem is not None else rule.reasoning
    return Resolved(
        states=rule.states, sglang_version=rule.version, reasoning=told, problem=rule.problem, fails=rule.fails
    )
