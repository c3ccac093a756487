"""A real SGLang asked what it feeds a drafter: the story's wiring, by its states and by its source."""

import shutil
from pathlib import Path
from typing import Any

from orchestrator.demo.stage import DATA
from orchestrator.diagnosis.served_states import judge_capture
from orchestrator.store.results import read_capture
from remote_payload.rundir import RunDir
from remote_payload.schema import StandaloneJob
from remote_payload.schema.bench_job import BenchJob
from remote_payload.schema.capture_job import CaptureJob
from remote_payload.schema.run import Event
from remote_payload.standalone import setup
from remote_payload.standalone.capture import served_job
from remote_payload.standalone.journal import Journal
from remote_payload.standalone.rows.row import Row
from remote_payload.weights import folder_facts
from tests.sglang.conftest import Models, write_folder
from tests.support.served_models import write_draft

SHARED = (
    "model", "dtype", "context_length", "server_args", "server_environment", "server_python", "prompts",
    "ready_timeout_s", "request_timeout_s",
)  # fmt: skip


def test_what_the_server_feeds(models: Models, asked: Any, tmp_path: Path) -> None:
    """One server: its states named, its rule agreeing, its rows read again."""
    base: BenchJob = asked()
    draft = write_draft(tmp_path / "draft", "drafter_embed", ids=[-1, 1, 3])
    rows = shutil.copytree(DATA / "rows", tmp_path / "rows")
    job = CaptureJob(
        **{name: getattr(base, name) for name in SHARED},
        draft=str(draft),
        rows=str(rows),
        merged=str(DATA / "merged.jsonl"),
        states=(0, 2, 4, 5),
        num_steps=3,
        eagle_topk=1,
        num_draft_tokens=4,
        max_rows=3,
        max_prompts=2,
    )
    run = RunDir(tmp_path / "run")
    write_folder(run.result)
    events: list[Event] = []
    served_job.run(job, run.result, events.append)
    result = read_capture(run)
    assert (result.method, result.why_not, result.width) == ("speculating", None, 3 * 128)
    assert result.server is not None
    assert result.server.stopped in ("term", "kill")
    assert result.draft == folder_facts(str(draft))

    found = judge_capture(result, trained=(0, 2, 4))
    assert (found.verdict, found.states) == ("as_trained", (0, 2, 4)), found.headline
    assert found.rule.states == (0, 2, 4), found.rule
    assert found.results[1].outcome == "passed"
    embedding = result.served[0].matches[0]
    assert (
        embedding.exact == embedding.tokens > 100
    )  # bfloat16 rows, float32 server: an embedding is rounded by neither
    assert all(one.matches[0].error < 0.02 for one in result.served)  # the rows were captured in bfloat16

    heldout = next(split for split in result.made if split.split == "heldout")
    assert (heldout.rows, heldout.skipped) == (2, ())
    test = StandaloneJob(draft=str(draft), target=str(models.target), rows=heldout.folder, states=(0, 2, 4))
    journal = Journal(events.append)
    loaded = setup.load(test, journal)
    looked = setup.look(test, loaded, journal)
    assert (looked.kind.captured, looked.kind.final_state) == (3, "answers")
    first = next(looked.source.usable())
    assert isinstance(first, Row)
    assert first.answers is not None
    responses = first.tokens[first.prompt_tokens :]
    assert bool(
        (first.answers[first.prompt_tokens - 1 : -1] == responses).all()
    )  # greedy: each is the choice before it
