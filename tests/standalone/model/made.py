"""Random drafters of every kind of layer, made in memory: what a loader would hand over, without files."""

from dataclasses import dataclass
from pathlib import Path

import torch

from remote_payload.schema.standalone import CheckpointFacts
from remote_payload.standalone.checkpoint.config import DrafterConfig
from remote_payload.standalone.checkpoint.load import Checkpoint
from remote_payload.standalone.checkpoint.rope_config import Rope
from remote_payload.standalone.checkpoint.target_files import TargetFiles
from remote_payload.standalone.graph import Graph, GroupedAttention, LatentAttention

PLAIN = Rope(kind="default", theta=10000.0)
GROUPED = GroupedAttention(heads=4, kv_heads=2, head_dim=6)


@dataclass(frozen=True, kw_only=True)
class Made:
    """Sizes and kinds of a made-up drafter. It has every optional norm, both embeddings and all its biases."""

    attention: GroupedAttention | LatentAttention = GROUPED
    layers: int = 1
    slots: int = 3
    captured: int = 4
    hidden: int = 12
    target_hidden: int = 12
    inner: int = 14
    vocab: int = 30
    draft_vocab: int = 19
    eps: float = 1e-5
    max_positions: int = 64
    rope: Rope = PLAIN
    bias: bool = False
    seed: int = 0

    def draw(self, *shape: int, salt: int) -> torch.Tensor:
        """Normal random numbers, the same for the same seed and salt."""
        return torch.randn(*shape, generator=torch.Generator().manual_seed(1000 * self.seed + salt))


def shapes(made: Made) -> dict[str, tuple[int, ...]]:
    """Canonical name -> shape of every tensor."""
    hidden, told = made.hidden, {"fc.weight": (made.hidden, made.slots * made.target_hidden)}
    told |= {"input_norm.weight": (made.slots * made.target_hidden,), "norm.weight": (hidden,)}
    told |= {f"fc_norm.{slot}.weight": (made.target_hidden,) for slot in range(made.slots)}
    told |= {"lm_head.weight": (made.draft_vocab, hidden)}
    for index in range(made.layers):
        width = 2 * hidden if index == 0 else hidden
        norms = ["input_layernorm", "post_attention_layernorm"] + (["hidden_norm"] if index == 0 else [])
        below = {f"{name}.weight": (hidden,) for name in norms}
        below |= {f"mlp.{name}_proj.weight": (made.inner, hidden) for name in ("gate", "up")}
        below |= {"mlp.down_proj.weight": (hidden, made.inner)}
        below |= {f"self_attn.{name}": shape for name, shape in attention_shapes(made, width).items()}
        told |= {f"layers.{index}.{name}": shape for name, shape in below.items()}
    if made.bias:
        linear = [name for name in told if name.endswith("proj.weight") or name in ("fc.weight",)]
        told |= {name.replace(".weight", ".bias"): (told[name][0],) for name in linear}
    return told


def attention_shapes(made: Made, width: int) -> dict[str, tuple[int, ...]]:
    """Shapes below `self_attn.` of a layer whose projections read `width` numbers."""
    kind, hidden = made.attention, made.hidden
    if isinstance(kind, GroupedAttention):
        query, key = kind.heads * kind.head_dim, kind.kv_heads * kind.head_dim
        told = {"q_proj.weight": (query, width), "k_proj.weight": (key, width), "v_proj.weight": (key, width)}
        norms = {f"{name}_norm.weight": (kind.head_dim,) for name in "qk"} if kind.qk_norm else {}
        return told | {"o_proj.weight": (hidden, query)} | norms
    query = kind.heads * (kind.nope_head_dim + kind.rope_head_dim)
    told = {
        "kv_a_proj_with_mqa.weight": (kind.kv_lora_rank + kind.rope_head_dim, width),
        "kv_a_layernorm.weight": (kind.kv_lora_rank,),
        "kv_b_proj.weight": (kind.heads * (kind.nope_head_dim + kind.value_head_dim), kind.kv_lora_rank),
        "o_proj.weight": (hidden, kind.heads * kind.value_head_dim),
    }
    if kind.q_lora_rank is None:
        return told | {"q_proj.weight": (query, width)}
    rank = kind.q_lora_rank
    return told | {"q_a_proj.weight": (rank, width), "q_a_layernorm.weight": (rank,), "q_b_proj.weight": (query, rank)}


def make(made: Made) -> Checkpoint:
    """The drafter."""
    weights = {}
    for salt, (name, shape) in enumerate(sorted(shapes(made).items())):
        drawn = made.draw(*shape, salt=salt)
        if len(shape) == 2:
            weights[name] = drawn * 1.5 * shape[1] ** -0.5
        else:
            weights[name] = drawn * 0.2 if name.endswith("bias") else 1 + 0.2 * drawn
    steps = torch.arange(made.draft_vocab)
    return Checkpoint(
        config=config(made),
        target=TargetFiles(
            folder=Path("target"), architecture=None, layers=None, tied=False, rms_norm_eps=made.eps, tensors={}
        ),
        slots=made.slots,
        graph=Graph(rope=made.rope),
        served=Graph(rope=made.rope),
        weights=weights,
        embeddings={
            whose: made.draw(made.vocab, made.hidden, salt=900 + salt) for salt, whose in enumerate(("target", "draft"))
        },
        vocabularies={"offset": steps + made.vocab - made.draft_vocab, "identity": steps},
        teacher_head=made.draw(made.vocab, made.target_hidden, salt=910),
        target_norm=None,
        facts=facts(made),
        warnings=(),
    )


def config(made: Made) -> DrafterConfig:
    """Its numbers."""
    return DrafterConfig(
        text="{}",
        architecture=None,
        hidden_size=made.hidden,
        target_hidden_size=made.target_hidden,
        intermediate_size=made.inner,
        attention=made.attention,
        layers=made.layers,
        vocab_size=made.vocab,
        draft_vocab_size=made.draft_vocab,
        rms_norm_eps=made.eps,
        max_positions=made.max_positions,
        rope=made.rope,
        fc_bias=made.bias,
        tie_word_embeddings=False,
        config_ids=None,
        top_level_ids=None,
        norm_output=False,
    )


def facts(made: Made) -> CheckpointFacts:
    """Its record."""
    return CheckpointFacts(
        draft="draft",
        target=None,
        architecture=None,
        hidden_size=made.hidden,
        target_hidden_size=made.target_hidden,
        slots=made.slots,
        vocab_size=made.vocab,
        draft_vocab_size=made.draft_vocab,
        tensors=(),
        config_json="{}",
    )


@dataclass(frozen=True, kw_only=True)
class MadeRow:
    """What a row holds, as far as the drafter is concerned."""

    tokens: torch.Tensor  # (T,)
    states: torch.Tensor  # (T, n, Ht)
    final: torch.Tensor  # (T, Ht)


def make_row(made: Made, tokens: int, salt: int = 0) -> MadeRow:
    """A random row; its states' sizes differ from token to token, as real ones do."""
    ids = torch.randint(0, made.vocab, (tokens,), generator=torch.Generator().manual_seed(salt))
    sizes = made.draw(tokens, made.captured, 1, salt=2000 + salt).exp()
    return MadeRow(
        tokens=ids,
        states=sizes * made.draw(tokens, made.captured, made.target_hidden, salt=2100 + salt),
        final=made.draw(tokens, made.target_hidden, salt=2200 + salt),
    )
