"""K2: what config.json says wrongly, in contradiction to the tensors, or where engines do not look."""

import json

from orchestrator.diagnosis.checks.factors import named_keys, ranking_of
from orchestrator.diagnosis.finding import CheckResult, Evidence, Severity, Subject
from orchestrator.diagnosis.measured import Measured
from orchestrator.diagnosis.sglang_config import NESTED, eagle_block, whole_config
from orchestrator.diagnosis.verdict import GOOD_FIT, SERVED_OFFSET
from remote_payload.schema import CheckpointFacts, ConfigNote, GraphFlag

IDS = "eagle_aux_hidden_state_layer_ids"
NESTED_TEXT = (
    "cannot be served by SGLang as it is, only by vLLM: config.json has speculators' nested form, which SGLang does "
    "not read"
)
DENIAL = "use_aux_hidden_state"
ABSENT = object()
SHOWN = 60
MAP_ALIAS = "draft_id_to_target_id"
"""The map's name in files made for vLLM."""
CONFIG = Subject(check="K2", title="config")

STOPS_LOADING = (
    "architectures", "transformer_layer_config", "target_hidden_size", "num_aux_hidden_states", "num_hidden_layers",
    "q_lora_rank", "draft_id_to_target_id", "draft_vocab_size", "tie_word_embeddings",
)  # fmt: skip
"""Keys by which SGLang finds the drafter's class and sizes: wrong ones fail or change everything. So do tensors that it
does not load, whose notes are named after them."""


def check(measured: Measured) -> tuple[CheckResult, ...]:
    """A finding for each note and for each contradiction."""
    checkpoint = measured.result.checkpoint
    if checkpoint.dialect is None and not checkpoint.graph and not checkpoint.notes:
        return (CONFIG.cannot_tell("the result says nothing about the config", needs="a run of this version"),)
    denied = measured.result.declared.captured == () and measured.result.declared.problem is not None
    found = [_note(note, measured) for note in checkpoint.notes if not (denied and note.key == DENIAL)]  # K5 says it
    # K4 compares the embedding, K8 and K9 have the others, and of the input speaks the note on its key
    named = {"embedding", "input", *named_keys(measured)}
    found += [
        _contradiction(flag) for flag in checkpoint.graph if flag.contradicted_by is not None and flag.name not in named
    ]
    if found:
        return tuple(found)
    dialect = checkpoint.dialect
    evidence = [] if dialect is None else [Evidence(name=f"dialect: {', '.join(dialect.evidence)}", value=dialect.name)]
    evidence += [Evidence(name=flag.name, value=f"{flag.value} ({flag.evidence})") for flag in checkpoint.graph]
    return (CONFIG.passed("config.json agrees with the tensors", tuple(evidence)),)


def _note(note: ConfigNote, measured: Measured) -> CheckResult:
    stops = note.key.split(".")[0] in STOPS_LOADING or note.key.endswith((".weight", ".bias"))
    severity: Severity = "serious" if stops else "minor"
    remedy: tuple[str, ...]
    where = "weight files, tensor" if _is_tensor(note.key) else "config.json,"
    summary, remedy = f"{where} `{note.key}`: {note.problem}", (note.remedy,)
    if note.key == NESTED and (whole := whole_config(measured.result.checkpoint, served_ids(measured))):
        summary = NESTED_TEXT
        remedy = (whole, "vLLM serves the folder as it is")
    elif note.key.endswith(".bias") and _adds_nothing(measured.result.checkpoint):
        summary, severity = f"{summary} (they are 0 throughout: nothing is lost)", "note"
    elif note.key == IDS and (written := _ids_remedy(measured)):
        remedy = written
    return CONFIG.finding(
        summary,
        severity=severity,
        cause="loading",
        evidence=_value(note.key, measured.result.checkpoint),
        remedy=remedy,
        refuted_by="an engine that reads the key as it is meant",
    )


def _adds_nothing(checkpoint: CheckpointFacts) -> bool:
    """Whether all biases of the attention are known to be 0."""
    biases = [item for item in checkpoint.statistics if ".self_attn." in item.name and item.name.endswith(".bias")]
    return bool(biases) and all(item.constant == 0.0 for item in biases)


def _is_tensor(key: str) -> bool:
    """Whether a note is about a stored tensor, not a key of config.json."""
    return key.endswith((".weight", ".bias")) or key == MAP_ALIAS


def served_ids(measured: Measured) -> tuple[int, ...] | None:
    """SGLang's ids of the states to serve: the best reading's where it reads well, else what config.json means."""
    declared, states = measured.result.declared, _states_to_serve(measured)
    return measured.spelling(states).ids if states else declared.config_ids


def _states_to_serve(measured: Measured) -> tuple[int, ...] | None:
    """The best reading's where it reads well, else those at the top of config.json; None where neither names any."""
    declared, ranking = measured.result.declared, ranking_of(measured)
    top = declared.ignored_top_level_ids if declared.config_ids is None else None
    states = None if top is None or min(top, default=-1) < 0 else top  # an id below 0 is no state, but SGLang's own
    if ranking is not None:
        best = ranking.best
        well = (best.figures.first_step.value or 0.0) >= GOOD_FIT and best.facts.token_offset == SERVED_OFFSET
        in_order = best.facts.states is not None and list(best.facts.states) == sorted(best.facts.states)
        states = best.facts.states if well and in_order else states
    return states


def _ids_remedy(measured: Measured) -> tuple[str, ...] | None:
    """What to write for ids at the top: the line for `eagle_config`, the same as the fix's, and what vLLM takes there.

    None where both stand, or no ids are known.
    """
    declared, states = measured.result.declared, _states_to_serve(measured)
    top, ids = declared.ignored_top_level_ids, served_ids(measured)
    if declared.config_ids is not None or not top or not states or ids is None:
        return None
    block = f'"eagle_config": {json.dumps(eagle_block(ids))}'
    if states == top:
        return block, "keep the ids at the top for vLLM, which takes them as hidden states as they stand"
    return block, f"for vLLM, which takes the ids at the top as hidden states as they stand: {list(states)} there"


def _value(key: str, checkpoint: CheckpointFacts) -> tuple[Evidence, ...]:
    """What stands under the key, dots leading inwards, at the top or in `eagle_config`; nothing for a tensor's note."""
    if _is_tensor(key):
        return ()
    found = json.loads(checkpoint.config_json)
    nested = found.get("eagle_config")
    if key not in found and isinstance(nested, dict) and key in nested:
        found = nested
    for part in key.split("."):
        found = found.get(part, ABSENT) if isinstance(found, dict) else ABSENT
    text = json.dumps(found) if found is not ABSENT else "absent"
    return (Evidence(name=f"`{key}` in config.json", value=text if len(text) <= SHOWN else f"{text[:SHOWN]} ..."),)


def _contradiction(flag: GraphFlag) -> CheckResult:
    return CONFIG.finding(
        f"`{flag.name}={flag.value}` was taken from the {flag.source} ({flag.evidence}), but {flag.contradicted_by}",
        severity="minor",
        cause="loading",
        evidence=(Evidence(name=flag.name, value=flag.value),),
        remedy=("make config.json say what the tensors are; engines decide by one of the two, each its own",),
        refuted_by="check K8: the reading that was overruled being the better one",
    )
