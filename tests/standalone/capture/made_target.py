"""A tiny Llama target of random weights, and rows captured from it."""

from dataclasses import dataclass
from pathlib import Path

import torch
from transformers import LlamaConfig, LlamaForCausalLM

from remote_payload.standalone.rows.row import Row

LAYERS, HIDDEN, VOCAB = 5, 32, 64
LABELS = (0, 2, 3)


@dataclass(frozen=True)
class MadeTarget:
    """The model in memory and its folder."""

    model: LlamaForCausalLM
    folder: Path

    def states(self, tokens: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """HF hidden_states of (T,) tokens, each (T, H); the last is after the final norm."""
        with torch.no_grad():
            return tuple(state[0] for state in self.model(tokens[None], output_hidden_states=True).hidden_states)

    def last_layer(self, tokens: torch.Tensor) -> torch.Tensor:
        """The last layer's output before the final norm, (T, H)."""
        seen = []
        hook = self.model.model.layers[-1].register_forward_hook(lambda _, given, out: seen.append(out))
        self.states(tokens)
        hook.remove()
        return (seen[0] if isinstance(seen[0], torch.Tensor) else seen[0][0]).reshape(len(tokens), HIDDEN)

    def answers(self, final: torch.Tensor) -> torch.Tensor:
        return (final.float() @ self.model.lm_head.weight.float().T).argmax(dim=-1)

    def row(self, number: int, layers: tuple[int, ...] = LABELS, length: int = 40) -> Row:
        """A row of random tokens as a sound capture stores it, float32."""
        tokens = torch.randint(0, VOCAB, (length,), generator=torch.Generator().manual_seed(number))
        states = self.states(tokens)
        return Row(
            name=f"data_{number}.ckpt",
            tokens=tokens,
            loss_mask=torch.arange(length) >= length // 3,
            states=torch.stack([states[layer] for layer in layers], dim=1),
            final=states[-1],
            prompt_tokens=length // 3,
            source=None,
        )


def make_target(folder: Path, **config) -> MadeTarget:
    torch.manual_seed(5)
    settings = {
        "vocab_size": VOCAB,
        "hidden_size": HIDDEN,
        "intermediate_size": 48,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "max_position_embeddings": 1024,
        "initializer_range": 0.3,  # far from the usual 0.02: every layer changes the stream visibly
    }
    model = LlamaForCausalLM(LlamaConfig(**settings | config)).eval()
    model.save_pretrained(folder)
    return MadeTarget(model, folder)
