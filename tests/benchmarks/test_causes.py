"""The README's table of named causes is what `python -m benchmarks.causes` prints."""

import re
from collections import Counter
from pathlib import Path

import pytest

from benchmarks.broken_cases import Case, cases
from benchmarks.causes import judged, place, table
from orchestrator.diagnosis.decision.inputs import Known
from orchestrator.diagnosis.finding import Cause

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
(PRINTED,) = re.findall(r"<!-- causes: begin -->\n\n(.*?)\n\n<!-- causes: end -->", README, flags=re.DOTALL)


def test_every_case_is_counted_in_the_readme() -> None:
    counted = Counter(place(case) for case in cases())
    told = {(words.strip(), where.strip()): int(count) for words, where, count in _lines()}
    assert told == {**counted, ("all", ""): counted.total()}


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_the_readme_has_what_is_printed(tmp_path: Path) -> None:
    assert table([(case, judged(case)) for case in cases()]) == PRINTED


def test_precision_and_recall_are_counted_by_cause() -> None:
    def case(letters: str, *expected: Cause) -> Case:
        return Case("pair", letters, expected, "offline", lambda _: Known())

    found: list[tuple[Case, tuple[Cause, ...]]] = [
        (case("L", "wiring"), ("wiring",)),
        (case("L V", "wiring", "loading"), ("loading", "data")),
        (case("-"), ()),
    ]
    lines = table(found).splitlines()
    assert lines[2:] == [
        "| L layers fed | offline | 1 | 1 | 1/1 | 1/1 |",
        "| two or three at once | offline | 1 | 0 | 1/2 | 1/2 |",
        "| nothing | offline | 1 | 1 | - | - |",
        "| all |  | 3 | 2 | 2/3 | 2/3 |",
        "",
        "- L V, offline, pair: broken wiring, loading, named loading, data",
    ]


def _lines() -> list[tuple[str, str, str]]:
    return re.findall(r"^\| ([^|]+) \| ([^|]*) \| (\d+) \|", PRINTED, flags=re.MULTILINE)
