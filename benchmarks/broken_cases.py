"""What `python -m benchmarks.causes` judges: pairs that are sound, or broken in one way or two.

`offline`: bundled drafters and rows broken on disk, read by the real standalone test. `served`: pairs that a real
SGLang served on a CPU, each a whole `diagnose --deep` whose runs are kept (tests/support/make_diagnosed_golden.py).
`made`: what a CPU does not show, as a server that loses drafts, in what a real one counted on the bundled pair, with
its times and losses changed.
"""

import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from orchestrator.diagnosis.decision.inputs import Known
from orchestrator.diagnosis.finding import Cause
from tests.diagnosis.decision import scenes
from tests.diagnosis.decision.test_decide import halved
from tests.support import broken_checkpoints as checkpoint
from tests.support import broken_rows as rows
from tests.support import diagnosed_runs, served_cases
from tests.support.broken_scene import Scene, make_scene
from tests.support.diagnosed import measured

Break = Callable[[Scene], None]
Where = Literal["offline", "served", "made"]
STORY, STD = "drafter_embed", "drafter_std"
SLOW = (60.0, 61.0, 59.0)
ASKED = (3, 1, 16)
"""Steps, width and draft tokens: at width 1 the server makes 4 of 16."""


@dataclass(frozen=True)
class Case:
    """What was broken, by its class, and the causes that are to be named."""

    name: str
    letters: str
    expected: tuple[Cause, ...]
    where: Where
    known: Callable[[Path], Known]


def cases() -> Iterator[Case]:
    """Every case; the expected causes are what was broken, whatever is named."""
    yield from _broken_on_disk()
    yield from _sound_on_disk()
    yield from _really_served()
    yield from _made()


def _broken_on_disk() -> Iterator[Case]:
    wiring: tuple[Cause, ...] = ("wiring",)
    loading: tuple[Cause, ...] = ("loading",)
    data: tuple[Cause, ...] = ("data",)
    yield _on_disk("L", wiring, checkpoint.default_ids, drafter=STORY)
    yield _on_disk("L", wiring, checkpoint.swapped_fc)
    yield _on_disk("L", wiring, checkpoint.ids_at_the_top, drafter=STORY)
    for norms in (checkpoint.norm_output, checkpoint.norm_before_fc):
        yield _on_disk("N", wiring, norms)
    for weights in (checkpoint.missing_head, checkpoint.overwritten_head, checkpoint.random_query):
        yield _on_disk("W", loading, weights)
    yield _on_disk("W", loading, checkpoint.repeated_head_rows)
    yield _on_disk("C", loading, checkpoint.second_weight_file)
    for mapped in (checkpoint.absolute_map, checkpoint.zero_map, checkpoint.shifted_map):
        yield _on_disk("V", loading, mapped)
    for rotary in (checkpoint.other_theta, checkpoint.other_scaling, checkpoint.partial_rotary):
        yield _on_disk("R", wiring, rotary)
    for captured in (rows.shifted_capture, rows.teacher_of_another_layer, rows.mask_a_token_late, rows.dead_slot):
        yield _on_disk("D", data, captured)
    yield _on_disk("D", ("generalization",), served_cases.overfit, heldout=True)
    yield _on_disk("L V", ("wiring", "loading"), checkpoint.default_ids, checkpoint.absolute_map, drafter=STORY)
    yield _on_disk("L N", wiring, checkpoint.default_ids, checkpoint.norm_output, drafter=STORY)
    yield _on_disk("N R", wiring, checkpoint.norm_before_fc, checkpoint.other_theta)
    yield _on_disk("W D", ("loading", "data"), checkpoint.second_weight_file, rows.mask_a_token_early)


def _sound_on_disk() -> Iterator[Case]:
    for case in served_cases.SOUND:
        yield _on_disk("-", (), *case.changes, drafter=case.drafter, heldout=True)


def _really_served() -> Iterator[Case]:
    for name in diagnosed_runs.names():
        case = served_cases.CASES[name]
        yield Case(name, case.letters, case.expected, "served", functools.partial(diagnosed_runs.known, name))


def _made() -> Iterator[Case]:
    sound, served = scenes.sound, scenes.served
    yield _from_histograms("P", ("parameters",), "16 draft tokens asked for", lambda: sound(served=served(asked=ASKED)))
    yield _from_histograms("B", ("economics",), "slower than plain decoding", lambda: sound(served=served(spec=SLOW)))
    yield _from_histograms("E", ("engine",), "half of the drafts lost", lambda: sound(served=served(change=halved)))
    yield _from_histograms("L P B", ("wiring", "parameters", "economics"), "the story", scenes.story)
    lossy: dict[str, Any] = {"change": halved, "asked": ASKED}
    yield _from_histograms(
        "E P", ("engine", "parameters"), "drafts lost, 16 asked for", lambda: sound(served=served(**lossy))
    )
    slow: dict[str, Any] = {"asked": ASKED, "spec": SLOW}
    yield _from_histograms(
        "P B", ("parameters", "economics"), "16 asked for, slower", lambda: sound(served=served(**slow))
    )
    yield _from_histograms("-", (), "sound, faster than plain decoding", sound)


def _on_disk(
    letters: str, expected: tuple[Cause, ...], *breaks: Break, drafter: str = STD, heldout: bool = False
) -> Case:
    def known(folder: Path) -> Known:
        scene = make_scene(folder / "scene", drafter, heldout=heldout)
        for fault in breaks:
            fault(scene)
        return Known(offline=scenes.offline_of(measured(folder / "run", **scene.settings)))

    name = " + ".join(fault.__name__ for fault in breaks)
    return Case(f"{drafter}, {name}".replace("_", " "), letters, expected, "offline", known)


def _from_histograms(letters: str, expected: tuple[Cause, ...], name: str, known: Callable[[], Known]) -> Case:
    return Case(name, letters, expected, "made", lambda _folder: known())
