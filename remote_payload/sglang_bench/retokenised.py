"""K16's facts: training rows that hold messages as well as ids, and what the served chat template makes of them."""

import dataclasses
from collections.abc import Sequence

from remote_payload.failure import JobFailure
from remote_payload.schema.bench_job import BenchJob
from remote_payload.schema.workload import TemplateCheck, TemplateRow, TokenEdit
from remote_payload.sglang_bench.edits import compared
from remote_payload.sglang_bench.prompt import Prompt
from remote_payload.sglang_bench.template import SERVED, NoTemplateError, ids_of, texts_of

ROWS = 8
"""As many are asked: a template differs for every row, or for those with one more kind of turn."""


def retokenised(prompts: Sequence[Prompt], job: BenchJob, url: str, key: str | None) -> TemplateCheck | None:
    """Ask the server for the ids of the rows' messages; None where no prompt holds messages and ids.

    Costs a prefill and one token a row. What cannot be told is said, never raised: the benchmark does not need it.
    """
    both = [prompt for prompt in prompts if prompt.trained is not None]
    if not both:
        return None
    asked = [
        dataclasses.replace(prompt, input_ids=None, messages=prompt.trained.messages)
        for prompt in both[:ROWS]
        if prompt.trained is not None
    ]
    try:
        ids, how = ids_of(asked, job, url, key)
    except NoTemplateError as error:
        return TemplateCheck(with_messages=len(both), why_not=f"the server has no chat template: {error}")
    except JobFailure as error:
        return TemplateCheck(with_messages=len(both), why_not=error.failure.message)
    rows = [
        _with_texts(compared(prompt.index, prompt.trained.ids, prompt.trained.prompt_tokens, served), url, key)
        for prompt, served in zip(both, ids, strict=False)
        if prompt.trained is not None
    ]
    return TemplateCheck(rows=tuple(rows), with_messages=len(both), method="served" if how == SERVED else "tokenizer")


def _with_texts(row: TemplateRow, url: str, key: str | None) -> TemplateRow:
    """The texts of what differs, as the server's tokenizer tells them."""
    asked = [token for edit in row.edits for token in (*edit.trained, *edit.served)]
    texts = texts_of(asked, url, key) if asked else None
    if texts is None:
        return row
    known = dict(zip(asked, texts, strict=True))

    def told(edit: TokenEdit) -> TokenEdit:
        return dataclasses.replace(
            edit,
            trained_text=tuple(known[token] for token in edit.trained),
            served_text=tuple(known[token] for token in edit.served),
        )

    return dataclasses.replace(row, edits=tuple(map(told, row.edits)))
