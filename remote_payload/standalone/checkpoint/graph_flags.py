"""The computation that config.json, tensors and dialect mean, and what SGLang 0.5.23 computes from the same files.

Every choice comes with what decided it, what said otherwise, and where SGLang differs. SGLang's rules were read in its
`llama_eagle3.py` and `kimi_k25_eagle3.py`; the trainers' in SpecForge 0.2.0, speculators 0.9.0 and SafeAILab's EAGLE.
"""

from dataclasses import dataclass
from typing import Any, Literal

from remote_payload.failure import checkpoint_failure
from remote_payload.schema.standalone import GraphFlag
from remote_payload.standalone.checkpoint.config import DrafterConfig
from remote_payload.standalone.checkpoint.config_values import flag, told
from remote_payload.standalone.checkpoint.dialect import Dialect
from remote_payload.standalone.checkpoint.flat_config import eagle_config
from remote_payload.standalone.checkpoint.rope_config import Rope
from remote_payload.standalone.checkpoint.rope_flags import position_start_flag, read_rope_flag
from remote_payload.standalone.checkpoint.settle import aux_states_denied
from remote_payload.standalone.graph import Graph, LatentAttention

Source = Literal["config", "tensors", "dialect", "default"]
RAW_TRAINERS = ("specforge", "safeailab", "torchspec", "automodel", "modelopt")
"""Their forward adds attention to the un-normed fc output, whatever config.json says."""
EMBEDDING_IS_TARGETS = ("specforge", "safeailab")
"""Their trainers keep the target's embedding frozen and never train their own."""


@dataclass(frozen=True, kw_only=True)
class Read:
    """What the flags are read from."""

    config: DrafterConfig
    dialect: Dialect
    names: frozenset[str]
    """Canonical names of the stored tensors."""
    slots: int
    final_norm_untrained: bool
    """Whether the stored final norm is 1 everywhere."""
    embedding: Literal["absent", "unlike_size", "equal", "differs"]
    """The stored embed_tokens against the target's; `unlike_size`: the target's does not fit the drafter."""
    vocabulary: GraphFlag

    @property
    def flat(self) -> dict[str, Any]:
        """config.json with a nested transformer's numbers at the top."""
        return self.config.flat


def read_graph(read: Read) -> tuple[Graph, Graph, tuple[GraphFlag, ...]]:
    """The checkpoint's own graph, the one SGLang computes, and every flag. Raises JobFailure(checkpoint)."""
    own_rope, served_rope, rope_flag = read_rope_flag(read.config, read.dialect)
    flags = (
        _input(read),
        _input_norm(read),
        _residual(read),
        *_norm_output(read),
        _embedding(read),
        read.vocabulary,
        *_windows(read),
        rope_flag,
        position_start_flag(read.dialect),
    )
    own = {item.name: item.value for item in flags}
    served = {item.name: item.served or item.value for item in flags}
    return _graph(own, own_rope), _graph(served, served_rope), flags


def _graph(values: dict[str, str], rope: Rope) -> Graph:
    chosen: dict[str, Any] = {**values, "rope": rope, "position_start": int(values["position_start"])}
    return Graph(**chosen)


def _windows(read: Read) -> tuple[GraphFlag, ...]:
    """Told only of layers with windows; SGLang's EAGLE-3 layer reads none from config.json."""
    attention = read.config.attention
    if isinstance(attention, LatentAttention) or not any(attention.windows):
        return ()
    why = "SGLang ignores the drafter's window and attends to everything"
    evidence = "`sliding_window` in config.json"
    return (GraphFlag(name="windows", value="kept", source="config", evidence=evidence, served="none", served_why=why),)


def _input(read: Read) -> GraphFlag:
    name = "use_aux_hidden_state"
    if read.config.reads_final_state:
        evidence = f"`{name}: false` in config.json, and no fc is stored"
        return GraphFlag(name="input", value="final_state", source="config", evidence=evidence)
    contradicted = f"`{name}: false` in config.json" if aux_states_denied(read.flat) else None
    evidence = f"fc.weight joins {read.slots} states"
    return GraphFlag(name="input", value="states", source="tensors", evidence=evidence, contradicted_by=contradicted)


def _input_norm(read: Read) -> GraphFlag:
    joint = "input_norm.weight" in read.names
    per_slot = any(name.startswith("fc_norm.") for name in read.names)
    if joint and per_slot:
        raise checkpoint_failure(
            "the drafter has two norms before fc, `input_norm` over all states and `fc_norm` over each, of which at "
            "most one can be meant",
            hint="export the drafter again with the norm it was trained with",
        )
    value = "joint" if joint else "per_slot" if per_slot else "none"
    asked = _asked_norms(read)
    evidence = f"{'input_norm.weight is' if joint else 'fc_norm.* are'} stored" if value != "none" else "no norm stored"
    other = [kind for kind in asked if kind != value]
    contradicted = f"config.json asks for {' and '.join(other)}" if other else None
    if value != "none" and not asked:
        contradicted = "config.json names no norm before fc"
    served = _served_input_norm(read)
    return GraphFlag(
        name="input_norm",
        value=value,
        source="tensors" if value != "none" or other else "default",
        evidence=evidence,
        contradicted_by=contradicted,
        served=None if served == value else served,
        served_why=None if served == value else _why_input_norm(read, value),
    )


def _asked_norms(read: Read) -> list[str]:
    nested = eagle_config(read.flat)
    joint = flag(read.flat, "norm_before_fc") or flag(nested, "norm_before_fc")
    keys = ("fc_norm", "use_aux_norm")
    per_slot = any(flag(place, key) for place in (read.flat, nested) for key in keys)
    return [kind for kind, asked in (("joint", joint), ("per_slot", per_slot)) if asked]


def _served_input_norm(read: Read) -> str:
    """`llama_eagle3.py` asks `eagle_config` first for the joint norm; `kimi_k25_eagle3.py` knows only the other."""
    if flag(read.flat, "fc_norm") or flag(read.flat, "use_aux_norm"):
        return "per_slot" if any(name.startswith("fc_norm.") for name in read.names) else "none"
    nested = eagle_config(read.flat)
    joint = flag(nested if "norm_before_fc" in nested else read.flat, "norm_before_fc")
    known = joint and not isinstance(read.config.attention, LatentAttention)
    return "joint" if known and "input_norm.weight" in read.names else "none"


def _why_input_norm(read: Read, value: str) -> str:
    if value == "joint" and isinstance(read.config.attention, LatentAttention):
        return "SGLang's MLA drafter does not know `norm_before_fc`"
    key = "norm_before_fc" if value == "joint" else "fc_norm"
    return f"SGLang skips the norm's tensors without a word unless `{key}: true` stands at the top of config.json"


def _residual(read: Read) -> GraphFlag:
    key = "norm_before_residual"
    found = next((place[key] for place in (read.flat, eagle_config(read.flat)) if place.get(key) is not None), None)
    why = f"SGLang does not know `{key}` and adds attention to the un-normed fc output"
    if found is None and read.dialect in ("speculators", "speculators_old"):
        evidence, contradicted = f"`{key}` is absent, speculators takes false", "vLLM takes true for such a file"
        return GraphFlag(
            name="residual", value="raw", source="default", evidence=evidence, contradicted_by=contradicted
        )
    if found is None:
        evidence = f"{read.dialect}'s forward adds attention to the un-normed fc output"
        source: Source = "dialect" if read.dialect in RAW_TRAINERS else "default"
        return GraphFlag(name="residual", value="raw", source=source, evidence=evidence)
    normed = flag({key: found}, key)
    contradicted_by = f"{read.dialect}'s trainer has no such rule" if normed and read.dialect in RAW_TRAINERS else None
    return GraphFlag(
        name="residual",
        value="normed" if normed else "raw",
        source="config",
        evidence=f"`{key}: {told(found).lower()}` in config.json",
        contradicted_by=contradicted_by,
        served="raw" if normed else None,
        served_why=why if normed else None,
    )


def _norm_output(read: Read) -> tuple[GraphFlag, GraphFlag]:
    """`norm_output` is two keys of one name.

    SpecForge's says whether lm_head reads normed outputs (absent: yes), all others' whether the next step is fed normed
    ones (absent: no).
    """
    given = read.flat.get("norm_output")
    words = f"`norm_output: {str(given).lower()}` in config.json" if given is not None else "`norm_output` is absent"
    source: Source = "default" if given is None else "config"
    if read.dialect != "specforge":
        value = "normed" if read.config.norm_output else "raw"
        feedback = GraphFlag(name="feedback", value=value, source=source, evidence=words)
        evidence = "every dialect but old SpecForge's applies it"
        return feedback, GraphFlag(name="final_norm", value="applied", source="default", evidence=evidence)
    differs = read.config.norm_output
    feedback = GraphFlag(
        name="feedback",
        value="raw",
        source="dialect",
        evidence=f"SpecForge 0.2 feeds back un-normed outputs; {words}, a key that there is about the final norm",
        contradicted_by="newer SpecForge, SGLang and vLLM feed back normed outputs then" if differs else None,
        served="normed" if differs else None,
        served_why="SGLang feeds back normed outputs where `norm_output: true` stands" if differs else None,
    )
    bare = given is False and read.final_norm_untrained
    final_norm = GraphFlag(
        name="final_norm",
        value="none" if bare else "applied",
        source="tensors" if given is False else source,
        evidence=f"{words}, and norm.weight is {'1 everywhere: never trained' if bare else 'trained'}"
        if given is False
        else words,
        contradicted_by=None if given is not False or bare else f"{words}: SpecForge 0.2 leaves the final norm out",
        served="applied" if bare else None,
        served_why="SGLang always applies the final norm" if bare else None,
    )
    return feedback, final_norm


def _embedding(read: Read) -> GraphFlag:
    config = read.config
    apart = config.target_hidden_size != config.hidden_size
    served = "draft" if apart and read.embedding != "absent" else "target"
    why = "SGLang replaces the drafter's embed_tokens with the target's"
    contradicted = None
    source: Source = "tensors"
    if read.embedding in ("absent", "equal"):
        value = "target"
        evidence = "no embed_tokens stored" if read.embedding == "absent" else "embed_tokens equals the target's"
    elif read.embedding == "unlike_size":
        value, evidence = "draft", f"the target's embedding is not {config.hidden_size} wide"
        served = "draft"
    elif read.dialect in EMBEDDING_IS_TARGETS:
        value, source = "target", "dialect"
        evidence = f"{read.dialect} trains with the target's embedding"
        contradicted = "the stored embed_tokens differs from the target's"
    else:
        value, evidence = "draft", "embed_tokens is stored and differs from the target's"
    return GraphFlag(
        name="embedding",
        value=value,
        source=source,
        evidence=evidence,
        contradicted_by=contradicted,
        served=None if served == value else served,
        served_why=None if served == value else why,
    )
