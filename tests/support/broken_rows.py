"""One fault each in the captured rows. Every function breaks a scene in exactly one way."""

import json
import shutil

import torch

from tests.support.broken_scene import Scene, Tensors

WIDTH = 128
STATES, FINAL, TOKENS, MASK = "aux_hidden_state", "hidden_state", "input_ids", "loss_mask"


def _slots(row: Tensors) -> list[torch.Tensor]:
    return list(row[STATES].split(WIDTH, dim=2))


def shifted_capture(scene: Scene) -> None:
    """All states are those of the token before: the capture ran on other tokens than are stored, a BOS more, say.

    Without the embedding output, whose label the rows would contradict: the job ends then.
    """
    scene.settings["states"] = scene.settings["states"][1:]

    def change(_: int, row: Tensors) -> None:
        row[STATES] = torch.cat(_slots(row)[1:], dim=2).roll(1, dims=1)
        row[FINAL] = row[FINAL].roll(1, dims=1)

    scene.edit_rows(change)


def mask_a_token_early(scene: Scene) -> None:
    """The merged JSONL's loss mask begins and ends a token too early; its n_prompt_tokens are right."""
    path = scene.merge()
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    for line in lines:
        line[MASK] = [*line[MASK][1:], 0]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")


def mask_a_token_late(scene: Scene) -> None:
    """The loss mask begins a token too late."""

    def change(_: int, row: Tensors) -> None:
        row[MASK] = row[MASK].roll(1)
        row[MASK][0] = 0

    scene.edit_rows(change)


def mask_two_tokens_early(scene: Scene) -> None:
    """The loss mask begins and ends two tokens too early, and no merged JSONL says where the prompts end."""

    def change(_: int, row: Tensors) -> None:
        row[MASK] = row[MASK].roll(-2)
        row[MASK][-2:] = 0

    scene.edit_rows(change)


def dead_slot(scene: Scene) -> None:
    """One slot's buffer was never written."""
    scene.edit_rows(lambda _, row: _slots(row)[2].fill_(0.5))


def mask_everything(scene: Scene) -> None:
    """Prompts are trained and judged as if they were answers."""
    scene.edit_rows(lambda _, row: row[MASK].fill_(1))


def inverted_mask(scene: Scene) -> None:
    """The mask marks the prompts, not the answers."""
    scene.edit_rows(lambda _, row: row.update({MASK: 1 - row[MASK]}))


def states_a_token_late(scene: Scene) -> None:
    """Each token has the captured states of the one before it, its own final state, and no embedding output."""
    scene.settings["states"] = scene.settings["states"][1:]

    def change(_: int, row: Tensors) -> None:
        row[STATES] = torch.cat(_slots(row)[1:], dim=2).roll(1, dims=1)

    scene.edit_rows(change)


def nan_rows(scene: Scene) -> None:
    """Three rows of ten hold a NaN."""

    def change(number: int, row: Tensors) -> None:
        if number < 3:
            row[STATES][0, 50, 7] = float("nan")

    scene.edit_rows(change)


def cut_rows(scene: Scene) -> None:
    """All rows end at the longest length, in the middle of their response."""

    def change(_: int, row: Tensors) -> None:
        for name, tensor in row.items():
            row[name] = (tensor[:, :80] if tensor.dim() == 3 else tensor[:80]).clone()

    scene.edit_rows(change)


def same_rows_twice(scene: Scene) -> None:
    """Half of the rows are the other half again."""
    paths = scene.rows()
    for twin, path in zip(paths[5:], paths[:5], strict=True):
        shutil.copyfile(path, twin)


def train_rows_held_out(scene: Scene) -> None:
    """Held-out rows that the drafter was trained on."""
    for twin, path in zip(scene.rows("heldout")[:4], scene.rows(), strict=False):
        shutil.copyfile(path, twin)


def teacher_of_another_layer(scene: Scene) -> None:
    """The final state is that of a layer in the middle, after the target's norm."""
    scene.merge()  # whose sources say which rows are greedy
    norm = scene.target_tensor("model.norm.weight").float()

    def change(_: int, row: Tensors) -> None:
        state = _slots(row)[3].float()
        state = state * torch.rsqrt(state.square().mean(dim=-1, keepdim=True) + 1e-5) * norm
        row[FINAL] = state.to(row[FINAL].dtype)

    scene.edit_rows(change)


def teacher_a_token_late(scene: Scene) -> None:
    """The final states stand a token too late."""
    scene.edit_rows(lambda _, row: row.update({FINAL: row[FINAL].roll(1, dims=1)}))


def swapped_slots(scene: Scene) -> None:
    """The last captured state was written where the second is said to be, and the other way round."""

    def change(_: int, row: Tensors) -> None:
        embed, first, middle, last = _slots(row)
        row[STATES] = torch.cat((embed, last, middle, first), dim=2)

    scene.edit_rows(change)


def same_state_twice(scene: Scene) -> None:
    """One layer was captured into two slots."""

    def change(_: int, row: Tensors) -> None:
        embed, first, middle, _last = _slots(row)
        row[STATES] = torch.cat((embed, first, middle, middle), dim=2)

    scene.edit_rows(change)


def final_state_in_a_slot(scene: Scene) -> None:
    """The final state was captured where the third layer's is said to be."""

    def change(_: int, row: Tensors) -> None:
        row[STATES] = torch.cat((*_slots(row)[:3], row[FINAL]), dim=2)

    scene.edit_rows(change)


def unnormed_final(scene: Scene) -> None:
    """No fault: the final state before the target's norm, as vLLM stores it. Its scale is drawn, as none is stored."""
    norm = scene.target_tensor("model.norm.weight").float()

    def change(number: int, row: Tensors) -> None:
        draw = torch.Generator().manual_seed(number)
        scale = 5 + 20 * torch.rand(1, row[FINAL].shape[1], 1, generator=draw)
        row[FINAL] = (row[FINAL].float() / norm * scale).to(row[FINAL].dtype)

    scene.edit_rows(change)
