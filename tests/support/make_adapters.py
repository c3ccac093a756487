"""Make drafters that need another computation, or ail in one way; `python -m tests.support.make_adapters FULL_DATA`.

Each is the bundled `drafter_std` plus a low-rank change of its matrices, trained here with autograd on captured rows
and stored under `tests/golden/standalone/adapters/` (some 60 KB each): real trained weights, no made-up numbers.

- `normed_feedback`: trained with the normed output fed to the next step (EAGLE-3.1's `norm_output`).
- `normed_residual`: trained with `norm_before_residual`.
- `first_step_only`: rewarded for its first step and punished for the later ones: its recursion is broken, nothing else.
- `overfit`: trained on the bundled rows alone, far too long.
"""

import random
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from torch.nn.functional import cross_entropy, linear, silu

from remote_payload.standalone.rows.files import find_rows
from remote_payload.standalone.rows.row import Row, RowReader

PROJECT = Path(__file__).parents[2]
DATA = PROJECT / "orchestrator" / "demo" / "data"
GOLDEN = PROJECT / "tests" / "golden" / "standalone" / "adapters"
RANK, STEPS, HEADS, KV_HEADS, HEAD, EPS = 8, 4, 4, 2, 32, 1e-5
MATRICES = (
    "fc",
    *(f"midlayer.self_attn.{part}_proj" for part in "qkvo"),
    *(f"midlayer.mlp.{part}_proj" for part in ("gate", "up", "down")),
)
Weights = dict[str, torch.Tensor]


@dataclass(frozen=True, kw_only=True)
class Lesson:
    """What a drafter is trained on and towards."""

    residual: str = "raw"
    feedback: str = "raw"
    weights: tuple[float, ...] = (1.0, 0.8, 0.64, 0.51)
    """Of each step's loss; negative = punished, up to a loss of 6."""
    epochs: int = 30
    rate: float = 2e-3
    bundled_rows_only: bool = False


LESSONS = {
    "normed_feedback": Lesson(feedback="normed", epochs=12),
    "normed_residual": Lesson(residual="normed", epochs=12),
    "first_step_only": Lesson(weights=(1.0, -0.5, -0.5, -0.5), epochs=12),
    "overfit": Lesson(bundled_rows_only=True, epochs=80, rate=4e-3),
}


def rms(values: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    return values * torch.rsqrt(values.square().mean(dim=-1, keepdim=True) + EPS) * weight


def rotate(heads: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
    """(T, h, d) at positions (T,), Llama's halves."""
    frequencies = 10000.0 ** (-torch.arange(0, HEAD, 2) / HEAD)
    angles = (positions[:, None] * frequencies).repeat(1, 2)[:, None]
    first, second = heads.chunk(2, dim=-1)
    return heads * angles.cos() + torch.cat((-second, first), dim=-1) * angles.sin()


def steps_logits(w: Weights, row: Row, table: torch.Tensor, lesson: Lesson) -> list[torch.Tensor]:
    """Draft logits (T, D) of each step at every position, teacher-forced."""
    length = len(row.tokens)
    everywhere = torch.arange(length)
    embeds = rms(table[row.tokens], w["midlayer.input_layernorm.weight"])
    hidden = linear(row.states[:, 1:].flatten(1).float(), w["fc.weight"])  # states 2, 4, 5
    behind = torch.full((length, length), float("-inf")).triu(1)
    keys: list[torch.Tensor] = []
    values: list[torch.Tensor] = []
    logits = []
    for step in range(STEPS):
        at = everywhere + step
        normed = rms(hidden, w["midlayer.hidden_norm.weight"])
        joined = torch.cat((embeds[(at + 1).clamp(max=length - 1)], normed), dim=-1)
        q, k, v = (linear(joined, w[f"midlayer.self_attn.{part}_proj.weight"]).view(length, -1, HEAD) for part in "qkv")
        keys.append(rotate(k, at).repeat_interleave(HEADS // KV_HEADS, dim=1))
        values.append(v.repeat_interleave(HEADS // KV_HEADS, dim=1))
        q = rotate(q, at)
        prefix = torch.einsum("thd,uhd->htu", q, keys[0]) + behind * HEAD**0.5
        own = [torch.einsum("thd,thd->ht", q, key)[..., None] for key in keys[1:]]
        share = (torch.cat((prefix, *own), dim=-1) / HEAD**0.5).softmax(dim=-1)
        mixed = torch.einsum("htu,uhd->thd", share[..., :length], values[0])
        for index, value in enumerate(values[1:]):
            mixed = mixed + share[..., length + index].T[..., None] * value
        stream = normed if lesson.residual == "normed" else hidden
        stream = stream + linear(mixed.flatten(1), w["midlayer.self_attn.o_proj.weight"])
        inner = rms(stream, w["midlayer.post_attention_layernorm.weight"])
        gate, up = (linear(inner, w[f"midlayer.mlp.{part}_proj.weight"]) for part in ("gate", "up"))
        stream = stream + linear(silu(gate) * up, w["midlayer.mlp.down_proj.weight"])
        out = rms(stream, w["norm.weight"])
        logits.append(linear(out, w["lm_head.weight"]))
        hidden = out if lesson.feedback == "normed" else stream
    return logits


class Course:
    """One drafter in training."""

    def __init__(self, lesson: Lesson, rows: list[Row]) -> None:
        self.lesson, self.rows = lesson, rows
        stored = load_file(DATA / "drafter_std" / "model.safetensors")
        target = load_file(DATA / "target" / "model-00001-of-00001.safetensors")
        self.base = {name: tensor.float() for name, tensor in stored.items() if tensor.is_floating_point()}
        self.table, self.head = target["model.embed_tokens.weight"].float(), target["lm_head.weight"]
        self.draft_id = torch.full((len(self.head),), -1)
        targets = torch.arange(len(stored["d2t"])) + stored["d2t"]
        self.draft_id[targets] = torch.arange(len(targets))
        torch.manual_seed(0)
        self.low: Weights = {}
        for name in MATRICES:
            rows_, columns = self.base[f"{name}.weight"].shape
            self.low[f"{name}.a"] = torch.zeros(rows_, RANK, requires_grad=True)
            self.low[f"{name}.b"] = (torch.randn(RANK, columns) * columns**-0.5).requires_grad_()

    def weights(self) -> Weights:
        return self.base | {
            f"{name}.weight": self.base[f"{name}.weight"] + self.low[f"{name}.a"] @ self.low[f"{name}.b"]
            for name in MATRICES
        }

    def losses(self, row: Row) -> tuple[torch.Tensor, torch.Tensor]:
        """The loss, and the hits of each step; response positions alone."""
        answers = self.draft_id[(row.final @ self.head.T).argmax(dim=-1)]
        loss, hits = torch.tensor(0.0), []
        for step, logits in enumerate(steps_logits(self.weights(), row, self.table, self.lesson)):
            at = (row.loss_mask[1:].nonzero()[:, 0])[: -1 - step]  # the next token is a response token
            wanted = answers[at + 1 + step]
            known = wanted >= 0
            own = cross_entropy(logits[at][known], wanted[known])
            weight = self.lesson.weights[step]
            loss = loss + weight * (own if weight > 0 else own.clamp(max=6.0))
            hits.append((logits[at].argmax(dim=-1) == wanted).float().mean())
        return loss, torch.stack(hits)

    def train(self, tell: Callable[[str], None]) -> Weights:
        optimiser = torch.optim.AdamW(self.low.values(), lr=self.lesson.rate, weight_decay=0.01)
        total = self.lesson.epochs * len(self.rows)
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, total)
        shuffle = random.Random(0)
        for epoch in range(self.lesson.epochs):
            hits = torch.zeros(STEPS)
            for row in shuffle.sample(self.rows, len(self.rows)):
                loss, own = self.losses(row)
                optimiser.zero_grad()
                loss.backward()
                torch.nn.utils.clip_grad_norm_(self.low.values(), 1.0)
                optimiser.step()
                schedule.step()
                hits += own.detach() / len(self.rows)
            if epoch % 6 == 5:
                tell(f"epoch {epoch + 1}: accuracy by step {[round(float(hit), 3) for hit in hits]}")
        return {name: factor.detach().half() for name, factor in self.low.items()}


def read_rows(folder: Path) -> list[Row]:
    reader = RowReader(folder=find_rows(folder, None, None), target_hidden_size=128, vocab_size=1280, steps=STEPS)
    return [row for row in reader.rows() if isinstance(row, Row)]


def main(full: Path, names: list[str]) -> None:
    """Train and store the named adapters, or all."""
    torch.set_num_threads(1)
    GOLDEN.mkdir(parents=True, exist_ok=True)
    for name in names or LESSONS:
        started, lesson = time.perf_counter(), LESSONS[name]
        rows = read_rows(DATA / "rows" if lesson.bundled_rows_only else full / "train" / "story_4state")
        course = Course(lesson, rows)
        save_file(course.train(lambda text, name=name: print(name, text, flush=True)), GOLDEN / f"{name}.safetensors")
        (GOLDEN / f"{name}.safetensors").chmod(0o644)
        with torch.no_grad():
            unseen = torch.stack([course.losses(row)[1] for row in read_rows(full / "heldout" / "story_4state")])
        print(name, "held-out", unseen.mean(dim=0).tolist(), f"{time.perf_counter() - started:.0f} s")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
