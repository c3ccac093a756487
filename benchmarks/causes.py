"""`python -m benchmarks.causes`: does a diagnosis name what was broken? Precision and recall of the named causes.

Offline classes are bundled drafters and rows broken on disk in one way or two, read by the real standalone test. Served
ones are what a real server counted on the bundled pair, with its times and losses changed as a fault would.
"""

import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from orchestrator.diagnosis.decision.decide import decide
from orchestrator.diagnosis.decision.inputs import Known
from orchestrator.diagnosis.finding import Cause
from tests.diagnosis.decision import scenes
from tests.diagnosis.decision.test_decide import halved
from tests.support import broken_checkpoints as checkpoint
from tests.support import broken_rows as rows
from tests.support.broken_scene import Scene, make_scene
from tests.support.diagnosed import measured

Break = Callable[[Scene], None]
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
    known: Callable[[Path], Known]


def _on_disk(
    letters: str, expected: tuple[Cause, ...], *breaks: Break, drafter: str = STD, heldout: bool = False
) -> Case:
    def known(folder: Path) -> Known:
        scene = make_scene(folder / "scene", drafter, heldout=heldout)
        for fault in breaks:
            fault(scene)
        return Known(offline=scenes.offline_of(measured(folder / "run", **scene.settings)))

    name = " + ".join(getattr(fault, "__name__", "overfit") for fault in breaks) or f"{drafter}, sound"
    return Case(name.replace("_", " "), letters, expected, known)


def _served(letters: str, expected: tuple[Cause, ...], name: str, known: Callable[[], Known]) -> Case:
    return Case(name, letters, expected, lambda _folder: known())


def _overfit(scene: Scene) -> None:
    checkpoint.adapted("overfit", scene)


def cases() -> Iterator[Case]:
    """Every case; the expected causes are what was broken, whatever is named."""
    wiring: tuple[Cause, ...] = ("wiring",)
    loading: tuple[Cause, ...] = ("loading",)
    data: tuple[Cause, ...] = ("data",)
    yield _on_disk("L", wiring, checkpoint.default_ids, drafter=STORY)
    yield _on_disk("L", wiring, checkpoint.swapped_fc)
    yield _on_disk("L", wiring, checkpoint.ids_at_the_top, drafter=STORY)
    for norms in (checkpoint.norm_before_residual, checkpoint.norm_output, checkpoint.norm_before_fc):
        yield _on_disk("N", wiring, norms)
    for weights in (checkpoint.missing_head, checkpoint.overwritten_head, checkpoint.random_query):
        yield _on_disk("W", loading, weights)
    yield _on_disk("W", loading, checkpoint.repeated_head_rows)
    yield _on_disk("C", loading, checkpoint.second_weight_file)
    yield _on_disk("C", loading, checkpoint.disagreeing_index)
    for mapped in (checkpoint.absolute_map, checkpoint.zero_map, checkpoint.shifted_map):
        yield _on_disk("V", loading, mapped)
    for rotary in (checkpoint.other_theta, checkpoint.other_scaling, checkpoint.partial_rotary):
        yield _on_disk("R", wiring, rotary)
    for captured in (rows.shifted_capture, rows.teacher_of_another_layer, rows.mask_a_token_late, rows.dead_slot):
        yield _on_disk("D", data, captured)
    yield _on_disk("D", ("generalization",), _overfit, heldout=True)
    yield _on_disk("L V", ("wiring", "loading"), checkpoint.default_ids, checkpoint.absolute_map, drafter=STORY)
    yield _on_disk("L N", wiring, checkpoint.default_ids, checkpoint.norm_output, drafter=STORY)
    yield _on_disk("N R", wiring, checkpoint.norm_before_fc, checkpoint.other_theta)
    yield _on_disk("W D", ("loading", "data"), checkpoint.second_weight_file, rows.mask_a_token_early)
    yield _on_disk("-", (), drafter=STD)
    yield _on_disk("-", (), drafter=STORY, heldout=True)
    sound, served = scenes.sound, scenes.served
    yield _served("P", ("parameters",), "16 draft tokens asked for", lambda: sound(served=served(asked=ASKED)))
    yield _served("B", ("economics",), "slower than plain decoding", lambda: sound(served=served(spec=SLOW)))
    yield _served("E", ("engine",), "half of the drafts lost", lambda: sound(served=served(change=halved)))
    yield _served("L P B", ("wiring", "parameters", "economics"), "the story", scenes.story)
    lossy: dict[str, Any] = {"change": halved, "asked": ASKED}
    yield _served("E P", ("engine", "parameters"), "drafts lost, 16 asked for", lambda: sound(served=served(**lossy)))
    slow: dict[str, Any] = {"asked": ASKED, "spec": SLOW}
    yield _served("P B", ("parameters", "economics"), "16 asked for, slower", lambda: sound(served=served(**slow)))
    yield _served("-", (), "sound, served", sound)


def table(found: Sequence[tuple[Case, tuple[Cause, ...]]]) -> str:
    """By class: cases, those named exactly, precision and recall of the named causes; then every case that was not."""
    lines = ["| class | cases | named exactly | precision | recall |", "|---|---|---|---|---|"]
    for letters in [*dict.fromkeys(case.letters for case, _ in found), "all"]:
        mine = [(case, named) for case, named in found if letters in (case.letters, "all")]
        counts: Counter[str] = Counter()
        for case, named in mine:
            counts["both"] += len(set(case.expected) & set(named))
            counts["named"] += len(named)
            counts["broken"] += len(case.expected)
            counts["exact"] += set(case.expected) == set(named)
        lines.append(
            f"| {letters} | {len(mine)} | {counts['exact']} | {_share(counts['both'], counts['named'])} "
            f"| {_share(counts['both'], counts['broken'])} |"
        )
    for case, named in found:
        if set(case.expected) != set(named):
            lines.append(f"- {case.letters}, {case.name}: broken {list(case.expected)}, named {list(named)}")
    return "\n".join(lines)


def _share(part: int, whole: int) -> str:
    return f"{part}/{whole}" if whole else "-"


def main() -> None:
    """Judge every case, and print the table."""
    found = []
    for case in cases():
        sys.stderr.write(f"{case.letters}: {case.name}\n")
        with tempfile.TemporaryDirectory() as folder:
            found.append((case, decide(case.known(Path(folder))).causes))
    print(table(found))


if __name__ == "__main__":
    main()
