"""Job files: layers overlay in order, every setting knows its source, every mistake names where it was made."""

from pathlib import Path

import pytest

from orchestrator import jobfile
from orchestrator.config import Config
from orchestrator.errors import JobFileError
from remote_payload.schema import BenchJob, StandaloneJob, to_json

PATHS = {"draft": "/d", "rows": "/r"}


def test_every_bundled_job_file_parses() -> None:
    files = sorted(jobfile.bundled_folder().glob("*.toml"))
    assert [file.stem for file in files] == ["bench", "capture", "selftest", "standalone", "sweep"]
    for file in files[:4]:  # the sweep: tests/sweep
        flags = {"standalone": PATHS, "bench": {"model": "/m"}, "capture": {"model": "/m", "rows": "/r"}}.get(
            file.stem, {}
        )
        planned = jobfile.plan(file.stem, Config(), None, flags)
        assert planned.job.kind == file.stem


def test_layers_overlay_in_order_and_keep_their_source(tmp_path: Path) -> None:
    own = tmp_path / "mine.toml"
    own.write_text('kind = "standalone"\nsteps = 6\ndtype = "bfloat16"\n', encoding="utf-8")
    config = Config(path=Path("/p/eagle3.toml"), jobs={"standalone": {"steps": 5, "search_rows": 9}})
    planned = jobfile.plan("standalone", config, own, {**PATHS, "states": "embed,2, 4,5", "steps": 7})
    assert isinstance(planned.job, StandaloneJob)
    assert planned.job.steps == 7
    assert planned.job.states == (0, 2, 4, 5)
    sources = {setting.key: setting.source for setting in planned.settings}
    assert sources["steps"] == "--steps"
    assert sources["dtype"] == str(own)
    assert sources["search_rows"] == "/p/eagle3.toml [jobs.standalone]"
    assert sources["keep_readings"] == "jobs/standalone.toml"
    assert sources["max_rows"] == "default"


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ({"rows": "/r"}, "`draft` is not set; give --draft"),
        ({**PATHS, "steps": 0}, "`--steps` must be 1..16, found: 0"),
        ({**PATHS, "steps": "four"}, "--steps: `steps`: expected int, found: 'four'"),
        ({**PATHS, "dtype": "float8"}, "--dtype: `dtype`: expected one of 'float32', 'bfloat16', found: 'float8'"),
        ({**PATHS, "states": "0,x"}, "--states: each of `states` must be a hidden_states index"),
        ({**PATHS, "states": "0,-1"}, "found: '-1'"),
        ({**PATHS, "states": f"0,{'9' * 5000}"}, "--states: each of `states` must be a hidden_states index"),
        ({**PATHS, "states": "2,2"}, "`--states` must not repeat an index"),
        ({**PATHS, "max_memory_bytes": "20 parsecs"}, "--max-memory: expected a size with its unit, like `20GiB`"),
        ({**PATHS, "max_memory_bytes": "-1"}, "--max-memory: expected a size"),
        ({**PATHS, "max_memory_bytes": "9" * 5000}, "--max-memory: expected a size"),
        ({**PATHS, "max_memory_bytes": "20"}, "--max-memory: expected a size with its unit"),
        ({**PATHS, "max_memory_bytes": "0B"}, "`--max-memory` must be at least 1"),
        ({**PATHS, "sweep": "all"}, "--sweep: `sweep`: expected one of 'full', 'wiring', found: 'all'"),
        ({**PATHS, "heldout_merged": "/m"}, "`--heldout-merged` belongs to `--heldout`"),
        ({**PATHS, "capture_rows": -1}, "`--capture-rows` must not be negative"),
        ({**PATHS, "resume": "A b"}, "`--resume` must be the id of a run, found: 'A b'"),
        ({**PATHS, "stps": 3}, "--stps: unknown key `stps` (did you mean `steps`?); allowed: draft, rows"),
    ],
)
def test_mistakes_name_their_source(flags: dict[str, object], expected: str) -> None:
    with pytest.raises(JobFileError) as caught:
        jobfile.plan("standalone", Config(), None, flags)
    assert expected in caught.value.message


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("20GiB", 20 * 2**30),
        ("1.5 gib", 3 * 2**29),
        ("16GB", 16 * 10**9),
        ("512mib", 2**29),
        ("4096B", 4096),
        ("1tb", 10**12),
    ],
)
def test_sizes_are_written_as_people_write_them(text: str, size: int) -> None:
    planned = jobfile.plan("standalone", Config(), None, {**PATHS, "max_memory_bytes": text})
    assert isinstance(planned.job, StandaloneJob)
    assert planned.job.max_memory_bytes == size


def test_an_earlier_run_is_asked_for_again_and_flags_still_win() -> None:
    asked = StandaloneJob(draft="/d", rows="/r", states=(0, 2), steps=7, resume="run-0")
    earlier = jobfile.EarlierRun(run_id="run-1", job_json=to_json(asked))
    config = Config(path=Path("/p/eagle3.toml"), jobs={"standalone": {"steps": 5}})
    planned = jobfile.plan("standalone", config, None, {"resume": "run-1", "threads": 2}, earlier)
    job = planned.job
    assert isinstance(job, StandaloneJob)
    assert (job.draft, job.states, job.steps, job.threads, job.resume) == ("/d", (0, 2), 7, 2, "run-1")
    sources = {setting.key: setting.source for setting in planned.settings}
    assert (sources["draft"], sources["threads"]) == ("run run-1", "--threads")


def test_words_for_the_server_come_after_those_below_them() -> None:
    config = Config(path=Path("/p/eagle3.toml"), jobs={"bench": {"server_args": ["--attention-backend", "triton"]}})
    flags = {"model": "/m", "server_args": ["--log-level", "info"], "server_environment": ["A=b"]}
    planned = jobfile.plan("bench", config, None, flags)
    assert isinstance(planned.job, BenchJob)
    assert planned.job.server_args == ("--attention-backend", "triton", "--log-level", "info")
    sources = {setting.key: setting.source for setting in planned.settings}
    assert sources["server_args"] == "/p/eagle3.toml [jobs.bench], then --server-arg"
    assert sources["server_environment"] == "--server-env"


def test_a_mistake_speaks_of_flags_but_for_what_a_file_has_set() -> None:
    config = Config(path=Path("/p/eagle3.toml"), jobs={"bench": {"num_steps": 1, "eagle_topk": 2}})
    with pytest.raises(JobFileError) as caught:
        jobfile.plan("bench", config, None, {"model": "/m", "draft": "/d", "num_draft_tokens": 16})
    assert caught.value.message.startswith(
        "/p/eagle3.toml [jobs.bench]: `--num-draft-tokens` = 16 is more than this tree holds: `num_steps` = 1 and "
    )
    with pytest.raises(JobFileError) as caught:
        jobfile.plan("bench", Config(), None, {"model": "/m", "num_steps": 3, "eagle_topk": 1})
    assert caught.value.message.startswith("`--num-steps, --eagle-topk` without a `--draft` would be left out")


@pytest.mark.parametrize(
    ("settings", "found"),
    [
        ({"server_args": ["--api-key", "k-123"]}, "--server-arg: the value of --api-key would be written"),
        ({"server_args": ["--tp", "2", "--api-key=k-123"]}, "--server-arg: the value of --api-key would"),
        ({"server_args": ["--admin-api", "k-123"]}, "--server-arg: the value of --admin-api would"),
        (
            {"server_args": ["--model-loader-extra-config", '{"api_key": "k-123"}']},
            "--server-arg: a secret in the value of --model-loader-extra-config would",
        ),
        ({"server_args": ["--x", "redis://me:k-123@db"]}, "--server-arg: a secret in the value of --x would"),
        ({"server_environment": ["A=b", "HF_TOKEN=k-123"]}, "--server-env: the value of HF_TOKEN would"),
        ({"server_environment": ["DB=redis://me:k-123@db"]}, "--server-env: the value of DB would"),
        ({"server_environment": ["GITHUB_PAT=k-123"]}, "--server-env: the value of GITHUB_PAT would"),
        ({"server_environment": ["AWS_ACCESS_KEY_ID=k-123"]}, "--server-env: the value of AWS_ACCESS_KEY_ID would"),
        ({"exec_prefix": ["env", "HF_TOKEN=k-123"]}, "--exec-prefix: the value of HF_TOKEN would"),
        ({"model": "https://me:k-123@hub/m"}, "--model: the password of the address would"),
        ({"attach_url": "http://me:k-123@gpu1:30000"}, "`--attach-url` must be like http://127.0.0.1:30000, without a"),
        ({"attach_url": "http://gpu1:30000?api_key=k-123"}, "`--attach-url` must be like http://127.0.0.1:30000"),
    ],
)
def test_a_secret_is_refused_before_it_is_written_anywhere(settings: dict[str, object], found: str) -> None:
    with pytest.raises(JobFileError) as caught:
        jobfile.plan("bench", Config(), None, {"model": "/m", **settings})
    assert caught.value.message.startswith(found)
    assert "k-123" not in f"{caught.value.message}{caught.value.hint}"


@pytest.mark.parametrize(
    "settings",
    [
        {"server_args": ["--api-key-env", "--enable-metrics"]},
        {"server_args": ["--tokenizer-path", "/m", "--json-model-override-args", '{"key": "a"}']},
        {"server_environment": ["TOKENIZERS_PARALLELISM=false", "SGLANG_INIT_NEW_TOKEN_RATIO=0.7", "A=MY_KEY=c"]},
        {
            "server_environment": ["PATH=/bin", "XAUTHORITY=/x", "HF_HOME=/h"],
            "exec_prefix": ["env", "HF_HOME=/h", "-i"],
        },
        {"server_environment": ["SGLANG_X_KEY=1"], "attach_url": "http://gpu1:30000/v1"},
    ],
)
def test_what_only_looks_like_a_secret_is_passed_on(settings: dict[str, object]) -> None:
    jobfile.plan("bench", Config(), None, {"model": "/m", **settings})


def test_a_job_file_of_another_kind_and_an_unknown_table(tmp_path: Path) -> None:
    own = tmp_path / "mine.toml"
    own.write_text('kind = "selftest"\n', encoding="utf-8")
    with pytest.raises(JobFileError, match="`kind = \"standalone\"`, found: kind = 'selftest'"):
        jobfile.plan("standalone", Config(), own, PATHS)
    with pytest.raises(JobFileError, match=r"unknown table \[jobs.standalon\]"):
        jobfile.plan("standalone", Config(path=Path("e.toml"), jobs={"standalon": {}}), None, PATHS)


@pytest.mark.parametrize("text", [f"steps = {'[' * 50_000}", f"steps = {'9' * 5000}", f"steps = 0x{'f' * 5000}"])
def test_a_job_file_beyond_all_measure_is_a_usage_error(tmp_path: Path, text: str) -> None:
    own = tmp_path / "mine.toml"
    own.write_text(f'kind = "standalone"\n{text}\n', encoding="utf-8")
    with pytest.raises(JobFileError, match=r"mine\.toml"):
        jobfile.plan("standalone", Config(), own, PATHS)


@pytest.mark.parametrize("kind", ["bench", "capture"])
def test_held_out_prompts_are_of_another_file(kind: str) -> None:
    config = Config(path=Path("/p/eagle3.toml"), jobs={kind: {"model": "/m", "prompts": "/p/a.jsonl"}})
    jobfile.plan(kind, config, None, {"heldout_prompts": "/p/b.jsonl"})
    with pytest.raises(
        JobFileError, match=r"^--heldout-prompts and /p/eagle3.toml \[jobs\..*found one file: /p/a"
    ) as no:
        jobfile.plan(kind, config, None, {"heldout_prompts": "/p//a.jsonl"})
    assert no.value.exit_code == 2
