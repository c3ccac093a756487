"""In what way a drafter is mis-wired: other states, ids in another engine's numbering, or another token beside them.

vLLM's ids are HF `hidden_states` indices as they stand; SGLang adds 1 for most targets. Source: vLLM's capture at layer
entry, `aux_hidden_state_layers`; SGLang's rule stands in `sglang_ids`.
"""

from orchestrator.diagnosis.effective_capture import resolve
from orchestrator.diagnosis.measured import Measured
from orchestrator.diagnosis.verdict import GOOD_FIT, SERVED_OFFSET, MeasuredReading
from remote_payload.schema import StandaloneResult


def state_names(states: tuple[int, ...] | None) -> str:
    """HF hidden_states indices as people write them, e.g. `embed,2,4`."""
    return "unlabelled" if states is None else ",".join("embed" if state == 0 else str(state) for state in states)


def states_text(states: tuple[int, ...] | None) -> str:
    """The same with the noun, e.g. `states embed,2,4`, `the state embed`."""
    return f"the state {state_names(states)}" if states and len(states) == 1 else f"states {state_names(states)}"


def moved(states: tuple[int, ...], step: int) -> tuple[int, ...]:
    """The same, each counted `step` layers higher; the embedding output is 0 in every numbering."""
    return tuple(state + step if state else 0 for state in states)


def is_vllms_numbering(result: StandaloneResult, best: MeasuredReading) -> bool:
    """Whether `eagle_config` names the very states that read best, and well, but in vLLM's numbering, not SGLang's."""
    declared, states = result.declared, best.facts.states
    if declared.config_ids is None or declared.captured is None or states is None:
        return False
    named = tuple(sorted(declared.config_ids))
    reads_well = (best.figures.first_step.value or 0.0) >= GOOD_FIT and best.facts.token_offset == SERVED_OFFSET
    return reads_well and named == tuple(sorted(states)) and named != declared.captured


def names_best(measured: Measured, best: MeasuredReading) -> bool:
    """Whether config.json itself names the states that read best, in either numbering: no other set is a rival then."""
    result, states = measured.result, best.facts.states
    declared = result.declared
    if states is None:
        return False
    if is_vllms_numbering(result, best):
        return True
    ids = measured.spelling(states).ids
    if declared.config_ids is None:  # those at the top SGLang does not read: either engine's may stand there
        return declared.ignored_top_level_ids is not None and declared.ignored_top_level_ids in (states, ids)
    return ids == declared.config_ids


def what_is_fed(result: StandaloneResult, best: MeasuredReading) -> str:
    """What serving would feed instead of what reads best, in words."""
    declared, facts = result.declared, best.facts
    if is_vllms_numbering(result, best):
        return (
            f"the ids in config.json are in vLLM's numbering; SGLang would feed {states_text(declared.captured)}, the "
            f"drafter reads best with {states_text(facts.states)}"
        )
    if facts.slots == declared.slots:
        return (
            f"the drafter reads best with token t{facts.token_offset:+d} beside state t, every server pairs t with "
            "t+1; the states are those that are served"
        )
    return "serving would feed the drafter other states than it reads best"


def numbering_lines(result: StandaloneResult, best: MeasuredReading) -> tuple[str, ...]:
    """What is to be known beside new ids where the old ones are vLLM's."""
    if not is_vllms_numbering(result, best):
        return ()
    lines: tuple[str, ...] = (
        "vLLM takes an id as the hidden state of that number: keep the old ids for vLLM, the new ones are SGLang's",
    )
    if result.declared.slots is None:
        served = states_text(result.declared.captured)
        lines += (f"{served} are not all in these rows: what is lost as served is not measured",)
    return lines


def labels_first(result: StandaloneResult, best: MeasuredReading) -> tuple[str, ...]:
    """What is to be ruled out before ids are taken for vLLM's."""
    return _labels_beside(result) if is_vllms_numbering(result, best) else ()


def not_captured_lines(result: StandaloneResult) -> tuple[str, ...]:
    """What to do where the rows lack states that serving would feed."""
    held = result.rows.states or ()
    missing = tuple(state for state in result.declared.captured or () if state not in held)
    capture = f"capture rows that also hold {states_text(missing)} and run again: only then the two compare"
    return (*_labels_beside(result), capture)


def _labels_beside(result: StandaloneResult) -> tuple[str, ...]:
    """Where labels that are all one higher, or lower, would hold what serving feeds: layers count otherwise."""
    held, wanted = result.rows.states or (), set(result.declared.captured or ())
    for step in (1, -1):
        others = moved(held, step)
        if wanted <= set(others):
            return (
                f"first make sure that the labels are right: if they are off by one, `--states {state_names(others)}`, "
                "the rows hold what is served (label i is the output of layer i-1); check `capture` tells",
            )
    return ()


def now_fed(measured: Measured) -> str:
    """What the ids that stand in config.json feed: by the installed source where one was read, else by the table."""
    result, source = measured.result, measured.source
    if source is not None:
        config, stages = result.checkpoint.config_json, source.pipeline_stages
        found = resolve(source.rule, config, source.target_config, pipeline_stages=stages)
        if found.states is not None:
            return f"feeding states {state_names(found.states)} by SGLang {found.version}, as installed"
    captured = result.declared.captured
    if captured is None:
        return "what they feed is unknown"
    if not captured:
        return f"feeding {result.declared.rule}"
    return f"feeding states {state_names(captured)} by the rule `{result.declared.rule}`, {result.declared.valid_for}"
