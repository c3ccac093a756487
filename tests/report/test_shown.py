import csv
import io

from orchestrator.compare.asked import Asked
from orchestrator.compare.diff import compare_many
from orchestrator.compare.pooling import Operand
from orchestrator.report.document.outline import document
from orchestrator.report.document.subject import Reported, Subject
from orchestrator.report.document_markdown import document_markdown
from orchestrator.report.markdown_table import markdown_table
from orchestrator.report.reported_csv import HEAD, reported_csv
from orchestrator.report.shown import shown, visible
from tests.support.made_measurements import HOSTILE, hostile_set, made_set


def hostile() -> Reported:
    sets = [hostile_set(number) for number in range(len(HOSTILE))]
    sides = [Operand(label=one.run_id, sets=(one,)) for one in sets[:2]]
    return Reported(
        subjects=tuple(Subject(measured=one) for one in sets),
        comparisons=compare_many(sides, Asked(force=True)),
        left_out=HOSTILE,
    )


def test_what_cannot_be_seen_is_written_out() -> None:
    assert visible("a\x00b\x1b[31m\u202ec\ud800d\te\n") == "a\\x00b\\x1b[31m\\u202ec\\ud800d\te\n"
    assert visible("a\nb", kept="") == "a\\nb"
    assert visible("gr\u00fcn \u6f22\u5b57 \U0001f600") == "gr\u00fcn \u6f22\u5b57 \U0001f600"


def test_right_to_left_words_keep_to_themselves() -> None:
    assert shown("run \u05e9\u05dc\u05d5\u05dd \u05e2\u05d5\u05dc\u05dd 5 tok/s") == (
        "run \u2068\u05e9\u05dc\u05d5\u05dd \u05e2\u05d5\u05dc\u05dd\u2069 5 tok/s"
    )


def test_what_is_too_long_is_cut_and_told() -> None:
    assert shown("W" * 5000) == "W" * 4000 + "... (1000 characters more)"
    assert shown("W" * 5000, 10) == "W" * 10 + "... (4990 characters more)"
    assert shown("W" * 10, 10) == "W" * 10


def test_markdown_holds_no_markup_of_others() -> None:
    text = document_markdown(document(hostile(), made_unix_s=0.0, tool="eagle3-remote 0.5.0"))
    assert "<script" not in text.replace("\\<script", "")
    assert "<img" not in text.replace("\\<img", "")
    assert "&lt;script&gt;" in text or "\\<script\\>" in text
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    assert any("HYPERLINK" in line for line in lines)
    assert not any("HYPERLINK" in line and "\\|cell" not in line for line in lines)  # its bar ends no cell
    text.encode()  # no half characters


def test_lines_to_copy_cannot_end_their_fence() -> None:
    reported = Reported(subjects=(Subject(measured=made_set(users=(1,))),))
    made = document(reported, made_unix_s=0.0, tool="x")
    from orchestrator.report.document.blocks import Document, Section, Text  # noqa: PLC0415

    text = "```\n<b>x</b>\n````"
    section = Section(name="a", title="A", blocks=(Text(text=text, kind="copy"),))
    spoilt = document_markdown(Document(**{**vars(made), "sections": (section,)}))
    assert f"`````\n{text}\n`````" in spoilt


def test_a_spreadsheet_finds_no_formula() -> None:
    text = reported_csv(hostile())
    rows = list(csv.reader(io.StringIO(text)))
    assert rows[0] == list(HEAD)
    assert {len(row) for row in rows} == {len(HEAD)}
    cells = [cell for row in rows[1:] for cell in row]
    assert any(cell.startswith("'=HYPERLINK") for cell in cells)
    numbers = [cell for cell in cells if cell.startswith("-")]
    assert all(float(cell) < 0 for cell in numbers)
    assert not any(cell.startswith(("=", "+", "@", "\t")) for cell in cells)
    text.encode()


def test_figures_stand_right_and_prose_left() -> None:
    _, rule, _ = markdown_table([["run", "change", "in words"], ["x", "+23.2 % [+20.4, +26.1]", "a sentence " * 5]])
    assert rule == "| --- | ---: | --- |"
