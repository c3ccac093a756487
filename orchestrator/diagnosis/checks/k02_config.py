"""K2: what config.json says wrongly, in contradiction to the tensors, or where engines do not look."""

from orchestrator.diagnosis.checks.factors import named_keys
from orchestrator.diagnosis.finding import CheckResult, Evidence, Severity, Subject
from orchestrator.diagnosis.measured import Measured
from remote_payload.schema import ConfigNote, GraphFlag

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
    found = [_note(note) for note in checkpoint.notes]
    named = {"embedding", *named_keys(measured)}  # K4 compares the embedding, K8 and K9 have the others
    found += [
        _contradiction(flag) for flag in checkpoint.graph if flag.contradicted_by is not None and flag.name not in named
    ]
    if found:
        return tuple(found)
    dialect = checkpoint.dialect
    evidence = [] if dialect is None else [Evidence(name=f"dialect: {', '.join(dialect.evidence)}", value=dialect.name)]
    evidence += [Evidence(name=f"{flag.name}, by {flag.evidence}", value=flag.value) for flag in checkpoint.graph]
    return (CONFIG.passed("config.json agrees with the tensors", tuple(evidence)),)


def _note(note: ConfigNote) -> CheckResult:
    stops = note.key.split(".")[0] in STOPS_LOADING or note.key.endswith((".weight", ".bias"))
    severity: Severity = "serious" if stops else "minor"
    return CONFIG.finding(
        f"config.json, `{note.key}`: {note.problem}",
        severity=severity,
        cause="loading",
        evidence=(Evidence(name="key", value=note.key),),
        remedy=(note.remedy,),
        refuted_by="an engine that reads the key as it is meant",
    )


def _contradiction(flag: GraphFlag) -> CheckResult:
    return CONFIG.finding(
        f"`{flag.name}={flag.value}` was taken from the {flag.source} ({flag.evidence}), but {flag.contradicted_by}",
        severity="minor",
        cause="loading",
        evidence=(Evidence(name=flag.name, value=flag.value),),
        remedy=("make config.json say what the tensors are; engines decide by one of the two, each its own",),
        refuted_by="check K8: the reading that was overruled being the better one",
    )
