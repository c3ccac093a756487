"""Pairs for a real server: sound ones in other words, and pairs broken in one way or two; what is to be named of each.

The letters are those of the classes: L layers fed, N norms, W weights, C checkpoint's files, V vocabulary map,
R rotary, D text and rows, P parameters, B slower than plain decoding.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from orchestrator.diagnosis.finding import Cause
from tests.support import broken_checkpoints as broken
from tests.support import broken_rows as rows
from tests.support import sound_dialects as sound
from tests.support.broken_scene import Scene, make_scene

Change = Callable[[Scene], None]
STD, STORY = "drafter_std", "drafter_embed"
CHAIN = {"num-steps": 3, "eagle-topk": 1, "num-draft-tokens": 4}
TOO_MANY = {"num-steps": 3, "eagle-topk": 1, "num-draft-tokens": 16}
"""At width 1 the server makes 4 of 16."""
DEEP = {"num-steps": 16, "eagle-topk": 1, "num-draft-tokens": 17, "repeats": 4}
"""More steps than this drafter pays for (8 are a draw on a CPU: 1.06x); eight starts of a server, for an interval."""
SLOW = {**DEEP, "num-draft-tokens": 32, "trained": "embed,2,4"}
"""The story: mis-fed, asked for more draft tokens than it runs with, and so many steps that they cost thrice what they
save. Whether they would pay for a mended drafter stays open on five prompts, and is told with its break-even length."""


@dataclass(frozen=True, kw_only=True)
class ServedCase:
    """One pair and how it is served."""

    letters: str
    """`-` = sound."""
    changes: tuple[Change, ...]
    expected: tuple[Cause, ...] = ()
    drafter: str = STD
    flags: Mapping[str, Any] = field(default_factory=dict)
    """Of `diagnose`, beside those of every case."""
    whole: bool = False
    """Whether `diagnose` starts its servers itself, plain decoding among them, and is not given one that is up."""

    @property
    def name(self) -> str:
        """One word, for a file."""
        parts = [getattr(change, "__name__", "adapted") for change in self.changes]
        extra = {id(TOO_MANY): ["too_many_drafts"], id(SLOW): ["slow"], id(DEEP): ["sixteen_steps"]}.get(
            id(self.flags), []
        )
        model = [] if self.drafter == STD else ["story"]
        return "-".join([self.letters.replace(" ", "").replace("-", "sound"), *model, *parts, *extra])

    def scene(self, folder: Path) -> Scene:
        """The pair on disk, with rows it was trained on and rows it was not."""
        scene = make_scene(folder, self.drafter, heldout=True)
        for change in self.changes:
            change(scene)
        return scene


def overfit(scene: Scene) -> None:
    """Trained on until it knew the training rows by heart."""
    broken.adapted("overfit", scene)


def unloaded(scene: Scene) -> None:
    """Every tensor below a prefix that SGLang skips without a word: it serves random weights."""
    names = scene.tensors()

    def change(tensors: dict[str, Any]) -> None:
        tensors.clear()
        tensors.update({f"draft_model.{name}": one for name, one in names.items()})

    scene.edit_tensors(change)


def embedding_first(scene: Scene) -> None:
    """The other way round: a drafter of the usual states is served the embedding output and two of them."""
    ids = {"eagle_aux_hidden_state_layer_ids": [-1, 1, 3]}
    scene.edit_config(lambda config: config.update(eagle_config=ids))


def _sound(change: Change, drafter: str = STD, *, whole: bool = False) -> ServedCase:
    return ServedCase(letters="-", changes=(change,), drafter=drafter, whole=whole)


def _broken(letters: str, expected: tuple[Cause, ...], *changes: Change, **more: Any) -> ServedCase:
    return ServedCase(letters=letters, expected=expected, changes=changes, **more)


SOUND = (
    _sound(sound.as_exported),
    _sound(sound.as_exported, STORY, whole=True),
    _sound(sound.numbered_layer),
    _sound(sound.default_ids_meant),
    _sound(sound.own_embedding),
    _sound(sound.two_shards, STORY),
    _sound(sound.narrow_map),
    _sound(sound.in_float32, STORY),
    _sound(sound.flags_spelled_out),
    _sound(sound.old_spelling, STORY),
    _sound(sound.new_spelling),
    _sound(sound.under_model, STORY),
    _sound(sound.ids_of_both_engines),
    _sound(broken.unordered_map),
    # Two that look like faults: SGLang computes no such residual, and reads every tensor of a file that an index names.
    _sound(broken.norm_before_residual),
    _sound(broken.disagreeing_index),
)
SINGLE = (
    _broken("L", ("wiring",), broken.ids_at_the_top, drafter=STORY),
    _broken("L", ("wiring",), embedding_first),
    _broken("N", ("wiring",), broken.norm_output),
    _broken("N", ("wiring",), broken.norm_before_fc),
    _broken("W", ("loading",), broken.missing_head),
    _broken("W", ("loading",), unloaded),
    _broken("W", ("loading",), broken.random_query),
    _broken("C", ("loading",), broken.second_weight_file),
    _broken("V", ("loading",), broken.shifted_map),
    _broken("V", ("loading",), broken.zero_map),
    _broken("R", ("wiring",), broken.other_theta),
    _broken("R", ("wiring",), broken.other_scaling),
    _broken("D", ("generalization",), overfit),
    _broken("D", ("data",), rows.mask_a_token_late),
    _broken("P", ("parameters",), sound.as_exported, drafter=STORY, flags=TOO_MANY),
    _broken("B", ("economics",), sound.as_exported, flags=DEEP, whole=True),
)
DOUBLE = (
    _broken(
        "L P",
        ("wiring", "parameters"),
        broken.default_ids,
        drafter=STORY,
        flags=SLOW,
        whole=True,
    ),
    _broken("L P", ("wiring", "parameters"), broken.default_ids, drafter=STORY, flags=TOO_MANY),
    _broken("L V", ("wiring", "loading"), broken.default_ids, broken.shifted_map, drafter=STORY),
    _broken("N R", ("wiring",), broken.norm_before_fc, broken.other_theta),
    _broken("W P", ("loading", "parameters"), broken.missing_head, flags=TOO_MANY),
    _broken("C L", ("loading", "wiring"), broken.second_weight_file, broken.default_ids, drafter=STORY),
    _broken("D P", ("generalization", "parameters"), overfit, flags=TOO_MANY),
    _broken("W D", ("loading", "data"), broken.missing_head, rows.mask_a_token_late),
)
CASES = {case.name: case for case in (*SOUND, *SINGLE, *DOUBLE)}
