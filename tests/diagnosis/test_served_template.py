"""K16 on conversations that a real tokenizer rendered with eight templates: each difference has its name."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from orchestrator.diagnosis.served_template import kind_of, template
from remote_payload.schema.workload import MOST_EDITS, MOST_IDS, TemplateCheck, TemplateRow, TokenEdit
from remote_payload.sglang_bench.edits import LONGEST, compared
from tests.support.made_bench import made_bench, made_server

MADE = json.loads((Path(__file__).parents[1] / "golden" / "template" / "rows.json").read_text())
WORKLOAD = made_bench([made_server()], []).workload


def row_of(trained: str, served: str, at: int = 0, *, texts: bool = True) -> TemplateRow:
    """One conversation trained with one template and served with another, as the payload would write it down."""
    prompt = MADE["served"][trained][at]
    row = compared(at, tuple(prompt + MADE["answer"]), len(prompt), MADE["served"][served][at])
    return replace(row, edits=tuple(map(with_texts, row.edits))) if texts else row


def with_texts(edit: TokenEdit) -> TokenEdit:
    def told(ids: tuple[int, ...]) -> tuple[str, ...]:
        return tuple(MADE["texts"][str(token)] for token in ids)

    return replace(edit, trained_text=told(edit.trained), served_text=told(edit.served))


def judged(*rows: TemplateRow, **more: Any) -> Any:
    told = TemplateCheck(rows=rows, with_messages=len(rows), method="served", **more)
    return template(replace(WORKLOAD, retokenised=told))


@pytest.mark.parametrize(
    ("trained", "served", "kind", "words"),
    [
        ("same", "bos_doubled", "bos", "from token 1 on, the first token is doubled: '<|bos|>' (1 token: 0)"),
        ("bos_doubled", "same", "bos", "from token 1 on, a doubled first token is single: '<|bos|>' (1 token: 0)"),
        ("same", "bos_missing", "bos", "from token 0 on, the first token of training is missing: '<|bos|>'"),
        ("bos_missing", "same", "bos", "from token 0 on, the first token that training has not: '<|bos|>'"),
        ("same", "system_prompt", "front", "from token 1 on, a system prompt that training has not: '<|end|>You are a"),
        ("system_prompt", "same", "front", "from token 1 on, a system prompt of training is missing: '<|end|>You are"),
        ("same", "no_generation_prompt", "end", "a generation prompt of training is missing: '<|assistant|>'"),
        ("same", "thinking", "thinking", "from token 21 on, a thinking switch that training has not: '<think>"),
        ("thinking", "same", "thinking", "from token 21 on, a thinking switch of training is missing: '<think>"),
        ("same", "other_turns", "other", "(5 tokens: 45, 475, 313, 31, 263) where training has '<|user|> "),
    ],
)
def test_each_difference_is_named(trained: str, served: str, kind: str, words: str) -> None:
    rows = [row_of(trained, served, at) for at in (0, 1)]
    assert kind in {kind_of(edit, rows[0]) for edit in rows[0].edits}
    found = judged(*rows)
    assert (found.check, found.outcome, found.severity, found.cause) == ("K16", "finding", "minor", "data")
    assert "in 2 of 2 rows" in found.summary
    assert words in found.summary
    assert found.remedy
    assert (found.evidence[0].value, found.evidence[0].n) == (0.0, 2)


def test_equal_templates_pass_wherever_a_mask_begins() -> None:
    rows = [row_of("same", "same", at) for at in (0, 1)]
    assert all(row.edits == () for row in rows)
    found = judged(*rows)
    assert (found.outcome, found.evidence[0].value) == ("passed", 1.0)
    assert "the messages of 2 rows their own ids" in found.summary
    prompt = MADE["served"]["same"][0]
    whole = tuple(prompt + MADE["answer"])
    counts_header = compared(0, whole, len(prompt) - 1, prompt)  # the mask counts `<|assistant|>` as answer
    assert (counts_header.edits, counts_header.trained_tokens) == ((), len(prompt))
    doubled = compared(0, whole, len(prompt) - 1, MADE["served"]["bos_doubled"][0])
    assert [(edit.position, edit.served) for edit in doubled.edits] == [(1, (0,))]


def test_the_same_text_in_other_tokens_is_no_other_text() -> None:
    edit = TokenEdit(position=5, trained=(7,), served=(8, 9), trained_tokens=1, served_tokens=2,
                     trained_text=("return",), served_text=("ret", "urn"))  # fmt: skip
    row = TemplateRow(prompt=0, trained_tokens=9, served_tokens=10, equal_tokens=5, first_token=0, edits=(edit,))
    assert "the same text in other tokens: 'return' (2 tokens: 8, 9)" in judged(row).summary
    assert "--tokenizer-path" in judged(row).remedy[0]


@pytest.mark.parametrize(
    ("trained", "served", "position", "kind"),
    [
        ((), ("<|system|>", "Think step by step", "<|end|>"), 1, "front"),
        (("reason", "ing"), ("reasoning",), 5, "cut"),
        (("I", " thought"), ("We", " think"), 5, "other"),
        ((), ("<", "think", ">\n\n", "</think>"), 5, "thinking"),
        ((" /", "no_think"), (), 5, "thinking"),
        ((), ("Reasoning", ": ", "high"), 5, "thinking"),
        ((), ("detailed", " thinking", " off"), 5, "thinking"),
    ],
)
def test_a_thinking_switch_is_a_templates_mark_not_a_text_about_thinking(
    trained: tuple[str, ...], served: tuple[str, ...], position: int, kind: str
) -> None:
    ids = tuple(range(50, 50 + len(trained))), tuple(range(70, 70 + len(served)))
    edit = TokenEdit(position=position, trained=ids[0], served=ids[1], trained_tokens=len(trained),
                     served_tokens=len(served), trained_text=trained, served_text=served)  # fmt: skip
    row = TemplateRow(prompt=0, trained_tokens=30, served_tokens=30, equal_tokens=5, first_token=0, edits=(edit,))
    assert kind_of(edit, row) == kind


def test_without_texts_ids_are_shown_and_several_faults_are_all_named() -> None:
    silent = judged(row_of("same", "bos_doubled", texts=False))
    assert "the first token is doubled: 1 token: 0" in silent.summary
    both = compared(0, (0, 3, 9, 9, 4), 5, (0, 0, 3, 9, 9))
    found = judged(both)
    assert len(found.remedy) == 2
    names = [item.value for item in found.evidence if item.name.startswith("difference")]
    assert names == ["the first token is doubled: 1 token: 0", "a generation prompt of training is missing: 1 token: 4"]


def test_what_differs_everywhere_stays_short() -> None:
    row = compared(0, tuple(range(9, 6000)), 5000, tuple(range(7000, 7000 + LONGEST + 1)))
    (edit,) = row.edits
    assert (edit.trained_tokens, edit.served_tokens) == (5000, LONGEST + 1)
    assert len(edit.trained) == len(edit.served) == MOST_IDS
    every = compared(
        0, tuple(n for at in range(90) for n in (at + 9, 1)), 180, tuple(n for _ in range(90) for n in (2, 1))
    )
    assert len(every.edits) == MOST_EDITS


def test_rows_that_nobody_could_render() -> None:
    found = judged(why_not="the server has no chat template: none is set")
    assert found.outcome == "cannot_tell"
    assert "the server has no chat template" in found.summary
