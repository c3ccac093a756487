"""K16 and K19 on the real server: its template on rows trained with others, and a temperature that a CPU does not draw.

One start for both.
"""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from orchestrator.diagnosis.served_template import template
from orchestrator.report.bench_content import sampled_too
from orchestrator.store.results import read_sampled
from remote_payload.rundir import RunDir
from remote_payload.schema.bench_job import BenchJob
from tests.sglang.conftest import Bench

MADE = json.loads((Path(__file__).parents[1] / "golden" / "template" / "rows.json").read_text())
TRAINED = ("same", "bos_missing", "system_prompt", "no_generation_prompt", "thinking", "other_turns")


def written(path: Path) -> Path:
    """The same conversations as rows of each template."""
    lines = []
    for name in TRAINED:
        for turns, prompt in zip(MADE["conversations"], MADE["served"][name], strict=True):
            messages = [*turns, {"role": "assistant", "content": "raise KeyError(name)"}]
            row = {"input_ids": prompt + MADE["answer"], "n_prompt_tokens": len(prompt), "messages": messages}
            lines.append(json.dumps(row) + "\n")
    path.write_text("".join(lines), encoding="utf-8")
    return path


def test_rows_of_other_templates_and_a_sampled_load(
    asked: Callable[..., BenchJob], bench: Bench, chain: dict[str, Any], tmp_path: Path
) -> None:
    prompts = written(tmp_path / "rows.jsonl")
    found = bench(asked(**chain, prompts=str(prompts), sampled=1.0, max_new_tokens=32))
    told = found.report.result.workload.retokenised
    assert told is not None
    assert (told.method, told.with_messages, told.why_not) == ("served", 12, None)
    assert [bool(row.edits) for row in told.rows] == [False, False] + [True] * 6
    assert told.rows[2].edits[0].served_text == ("<|bos|>",)
    judged = template(replace(found.report.result.workload, retokenised=replace(told, rows=told.rows[2:3])))
    assert "from token 0 on, the first token that training has not: '<|bos|>' (1 token: 0)" in judged.summary
    assert found.report.result.sampled is not None
    assert found.report.result.sampled.temperature == 1.0
    sampled = read_sampled(RunDir(found.folder.parent))
    assert len(sampled) == 12
    report = sampled_too(found.report, sampled)
    (result,) = [item for item in report.diagnosis.results if item.check == "K19"]
    assert "temperature 1 is not sampled while speculating: verification is greedy on cpu; all" in result.summary
