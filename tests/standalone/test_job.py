"""The whole test on the bundled example: what it finds, what it writes down, what it does when something is lacking."""

import itertools
import json
import math
import subprocess
import sys
from dataclasses import replace

import pytest
import torch
from safetensors.torch import load_file, save_file

from remote_payload.failure import JobFailure
from remote_payload.standalone.machine import pick_device
from remote_payload.standalone.measure import finals
from remote_payload.standalone.rows.teacher_look import TeacherLook
from remote_payload.weights import folder_facts
from tests.standalone.running import DATA, bits, run_job
from tests.standalone.test_served_truth import miswired
from tests.support.tiny import Tiny, write_drafter, write_rows, write_target

RIGHT, STORY = "slots 0,1,2 offset +1", "slots 1,2,3 offset +1"
BUNDLE = {"target": DATA / "target", "rows": DATA / "rows", "merged": DATA / "merged.jsonl"}


def best(out) -> str:
    """The full reading with the longest mean of leading hits over response positions."""

    def score(name: str) -> int:
        total = 0
        for row in out.rows:
            mask = bits(row.loss_mask, row.tokens)
            for j, hits in out.hits[name, row.row].items():
                if j + 1 < row.tokens and mask[j + 1]:
                    total += next((s for s in range(out.result.steps) if not hits >> s & 1), out.result.steps)
        return total

    return max(out.full(), key=score)


@pytest.mark.parametrize(
    ("drafter", "trained", "declared"),
    [("drafter_embed", RIGHT, RIGHT), ("miswired", RIGHT, STORY), ("drafter_std", STORY, STORY)],
)
def test_the_trained_wiring_is_found_and_the_declared_one_measured(tmp_path, drafter, trained, declared):
    draft = miswired(tmp_path) if drafter == "miswired" else DATA / drafter
    out = run_job(tmp_path / "out", **BUNDLE, draft=draft, states=(0, 2, 4, 5))
    assert best(out) == trained
    assert declared in out.full()
    slots = out.result.declared.slots
    assert f"slots {','.join(map(str, slots))} offset +1" == declared


def test_every_wiring_is_told_with_its_stage(tmp_path):
    out = run_job(tmp_path / "out", **BUNDLE, draft=DATA / "drafter_embed", states=(0, 2, 4, 5))
    readings = {reading.name: reading for reading in out.result.readings}
    assert len(readings) == len(out.result.readings)
    plain = {(reading.slots, reading.token_offset) for reading in readings.values() if not reading.changes}
    assert plain == set(itertools.product(itertools.permutations(range(4), 3), (-1, 0, 1, 2)))
    assert readings[RIGHT].states == (0, 2, 4)
    shifted = readings["slots 0,1,2 offset +0"]
    assert shifted.first_step_hits / shifted.positions < 0.25
    for name in out.full():
        told = readings[name]
        assert (told.rows, told.positions) == (10, 10 * 72)
        first = sum(
            hits & 1
            for row in out.rows
            for j, hits in out.hits[name, row.row].items()
            if j + 1 < row.tokens and bits(row.loss_mask, row.tokens)[j + 1]
        )
        assert told.first_step_hits == first


def test_facts_of_rows_and_machine(tmp_path):
    out = run_job(tmp_path / "out", **BUNDLE, draft=DATA / "drafter_embed")
    result = out.result
    lines = [json.loads(line) for line in (DATA / "merged.jsonl").read_text(encoding="utf-8").splitlines()]
    for row, line in zip(out.rows, lines, strict=True):
        assert bits(row.loss_mask, row.tokens) == line["loss_mask"]
        assert (row.tokens, row.prompt_tokens) == (len(line["input_ids"]), line["n_prompt_tokens"])
        assert row.source == line["source"]
        following = bits(row.teacher_is_next_token, row.tokens)
        assert following[-1] == 0
        response = following[row.prompt_tokens - 1 : -1]
        if row.source.endswith("temperature=0.0"):  # greedy text is what the teacher says, but for bfloat16 ties
            assert sum(response) >= len(response) - 2
        assert 0.9 < sum(bits(row.teacher_in_draft_vocab, row.tokens)) / row.tokens <= 1
    assert (result.rows.captured_states, result.rows.dtype, result.rows.final_state) == (4, "bfloat16", "post_norm")
    assert result.rows.layout == "specforge offline (rows_A-B) + merged JSONL"
    assert (result.rows.tokens, result.rows.response_tokens) == (sum(row.tokens for row in out.rows), 10 * 72)
    phases = ["load", "look", "search", "measure"]
    assert [phase.name for phase in result.phases] == phases
    assert [event.name for event in out.events if event.kind == "phase"] == phases
    assert (result.device, result.threads, result.torch) == ("cpu", 1, torch.__version__)
    assert result.peak_memory_bytes > 50_000_000
    assert len(result.checkpoint.weights_sha256) == 64
    assert (result.draft, result.target) == (
        folder_facts(str(DATA / "drafter_embed")),
        folder_facts(str(DATA / "target")),
    )
    sources = {fact.name: fact.source for fact in result.checkpoint.tensors}
    assert sources["embed_tokens.weight"] == "target"
    assert sources["lm_head.weight"] == "draft"


def test_unlabelled_rows_have_no_declared_reading(tmp_path):
    out = run_job(tmp_path / "out", **BUNDLE, draft=miswired(tmp_path))
    assert out.result.declared.captured == (2, 4, 5)
    assert out.result.declared.slots is None
    assert len(out.full()) >= 2
    assert best(out) == RIGHT
    assert all(reading.states is None for reading in out.result.readings)


def test_equal_jobs_leave_equal_hits(tmp_path):
    first, second = (run_job(tmp_path / name, **BUNDLE, draft=DATA / "drafter_std") for name in "ab")
    assert first.hits == second.hits
    assert (tmp_path / "a" / "hits.jsonl.gz").read_bytes() == (tmp_path / "b" / "hits.jsonl.gz").read_bytes()


def test_bfloat16_is_close(tmp_path):
    exact, rounded = (
        run_job(tmp_path / dtype, **BUNDLE, draft=DATA / "drafter_embed", dtype=dtype)
        for dtype in ("float32", "bfloat16")
    )
    told = [{r.name: r.first_step_hits for r in out.result.readings}[RIGHT] for out in (exact, rounded)]
    assert abs(told[0] - told[1]) <= 0.03 * 360


def test_a_single_wiring(tmp_path):
    tiny = Tiny(slots=1, captured=1)
    folders = {
        "draft": write_drafter(tmp_path / "draft", tiny),
        "target": write_target(tmp_path / "target", tiny),
        "rows": write_rows(tmp_path / "rows", tiny),
    }
    out = run_job(tmp_path / "out", **folders, token_offsets=(1,))
    assert out.full() == ["slots 0 offset +1"]


def test_few_response_tokens(tmp_path, made):
    """The screen must not drop anything on no evidence, and one token is enough to run."""
    rows = write_rows(tmp_path / "short", Tiny(), lengths=(5, 5))
    out = run_job(tmp_path / "out", **(made | {"rows": rows}), steps=4)
    assert out.result.rows.used == 2


def test_nothing_is_left_behind_by_a_failure(tmp_path, made, monkeypatch):
    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(finals, "row_facts", fail)
    with pytest.raises(OSError, match="No space"):
        run_job(tmp_path / "out", **made)
    assert list((tmp_path / "out").iterdir()) == []


@pytest.mark.parametrize(
    ("which", "name", "factor"),
    [("draft", "fc.weight", 1e-30), ("draft", "midlayer.self_attn.q_proj.weight", 1e22),
     ("target", "model.norm.weight", 1e-30), ("target", "model.norm.weight", 0)],
)  # fmt: skip
def test_extreme_weights_leave_a_whole_result(tmp_path, made, which, name, factor):
    path = made[which] / "model.safetensors"
    weights = load_file(path)
    save_file(weights | {name: weights[name] * factor}, path)
    assert run_job(tmp_path / "out", **made, sweep="wiring", search_rows=2).result.rows.used == 3


def test_a_result_that_json_cannot_carry_leaves_nothing(tmp_path, made, monkeypatch):
    facts = TeacherLook.facts
    monkeypatch.setattr(TeacherLook, "facts", lambda self: replace(facts(self), norm_rms=math.inf))
    with pytest.raises(JobFailure, match=r"NaN or infinite.* at: \$\.rows\.teacher\.norm_rms$") as caught:
        run_job(tmp_path / "out", **made, sweep="wiring", search_rows=2)
    assert caught.value.failure.kind == "checkpoint"
    assert list((tmp_path / "out").iterdir()) == []


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a GPU")
def test_no_gpu_is_a_failure_of_the_machine():
    with pytest.raises(JobFailure, match="no working CUDA") as caught:
        pick_device("cuda:0")
    assert caught.value.failure.kind == "machine"
    assert pick_device("auto").type == "cpu"


def test_strange_device():
    for wish in ("tpu", "mps", "meta"):
        with pytest.raises(JobFailure, match="must be auto, cpu, cuda"):
            pick_device(wish)


def test_the_memory_plan_is_told_before_and_kept(tmp_path, made):
    out = run_job(tmp_path / "out", **made, max_memory_bytes=2 << 30)
    plan = out.result.memory
    assert plan.limit_bytes == 2 << 30 >= plan.expected_peak_bytes == sum(part.size_bytes for part in plan.parts)
    names = [event.name for event in out.events if event.kind in ("phase", "note")]
    assert names.index("memory") < names.index("search")
    with pytest.raises(JobFailure, match="memory limit must be at least") as caught:
        run_job(tmp_path / "low", **made, max_memory_bytes=1 << 20)
    assert caught.value.failure.kind == "machine"


MEASURE_MEMORY = """
import json, sys
from pathlib import Path
from remote_payload.schema import StandaloneJob
from remote_payload.standalone.job import run
settings, out = json.loads(sys.argv[1]), Path(sys.argv[2])
job = StandaloneJob(threads=1, steps=1, token_offsets=(1,), capture_rows=0, sweep="wiring", **settings)
run(job, out, lambda event: None)
print(json.loads((out / "standalone.json").read_text())["peak_memory_bytes"])
"""


@pytest.mark.slow
def test_memory_does_not_grow_with_the_rows(tmp_path):
    """Rows of 2 MB, three and thirty of them: 54 MB more if they were kept."""
    tiny = Tiny(hidden=64, target_hidden=64, slots=1, captured=8, layers=20)
    folders = {"draft": write_drafter(tmp_path / "draft", tiny), "target": write_target(tmp_path / "target", tiny)}
    peaks = []
    for count in (3, 30):
        rows = write_rows(tmp_path / f"rows{count}", tiny, lengths=(1000,) * count)
        settings = {name: str(path) for name, path in (folders | {"rows": rows}).items()}
        out = tmp_path / f"out{count}"
        out.mkdir()
        command = [sys.executable, "-c", MEASURE_MEMORY, json.dumps(settings), str(out)]
        done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=DATA.parents[2])
        peaks.append(int(done.stdout))
    assert peaks[1] - peaks[0] < 15_000_000


def test_the_capture_check_says_that_it_begins(tmp_path, made):
    out = run_job(tmp_path / "out", **made, capture_rows=1)
    (begun,) = (event for event in out.events if (event.kind, event.name) == ("progress", "capture"))
    assert (begun.done, begun.total) == (0, 1)
    assert "fresh forward of the target" in begun.message
