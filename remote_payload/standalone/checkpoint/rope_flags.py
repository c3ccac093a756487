"""The graph's flags about positions: rotary embedding and where positions count from."""

from dataclasses import replace

from remote_payload.schema.standalone import GraphFlag
from remote_payload.standalone.checkpoint.config import DrafterConfig
from remote_payload.standalone.checkpoint.dialect import Dialect
from remote_payload.standalone.checkpoint.rope_config import DEFAULT_THETA, Rope, rope_conflicts, words_of


def read_rope_flag(config: DrafterConfig, dialect: Dialect) -> tuple[Rope, Rope, GraphFlag]:
    """The checkpoint's own rotary embedding, SGLang's, and the flag that tells them."""
    rope = config.rope
    keys = [key for key in ("rope_theta", "rope_scaling", "rope_parameters") if config.flat.get(key) is not None]
    conflicts = "; ".join(rope_conflicts(config.flat)) or None
    if dialect == "safeailab" and rope.theta != DEFAULT_THETA:
        own = replace(rope, theta=DEFAULT_THETA)
        served = replace(rope, label=words_of(rope))
        evidence = f"SafeAILab's code never reads `rope_theta` and takes {DEFAULT_THETA:g}"
        why = "SGLang reads config.json's"
        contradicted = conflicts or f"`rope_theta: {rope.theta:g}` in config.json"
        return (
            own,
            served,
            GraphFlag(
                name="rope",
                value=words_of(own),
                source="dialect",
                evidence=evidence,
                contradicted_by=contradicted,
                served=words_of(rope),
                served_why=why,
            ),
        )
    evidence = f"{', '.join(f'`{key}`' for key in keys)} in config.json" if keys else "config.json says nothing"
    return (
        rope,
        rope,
        GraphFlag(
            name="rope",
            value=words_of(rope),
            source="config" if keys else "default",
            evidence=evidence,
            contradicted_by=conflicts,
        ),
    )


def position_start_flag(dialect: Dialect) -> GraphFlag:
    """Where positions count from: nobody can see it, as long as rotary attention is relative."""
    counts = "; speculators trains from 1" if dialect.startswith("speculators") else ""
    return GraphFlag(
        name="position_start",
        value="0",
        source="default",
        evidence=f"positions count from 0{counts}; rotary attention is relative, so that no start shows",
    )
