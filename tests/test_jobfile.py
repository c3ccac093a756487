"""Job files: layers overlay in order, every setting knows its source, every mistake names where it was made."""

from pathlib import Path

import pytest

from orchestrator import jobfile
from orchestrator.config import Config
from orchestrator.errors import JobFileError
from remote_payload.schema import StandaloneJob

PATHS = {"draft": "/d", "rows": "/r"}


def test_every_bundled_job_file_parses() -> None:
    files = sorted(jobfile.bundled_folder().glob("*.toml"))
    assert [file.stem for file in files] == ["selftest", "standalone"]
    for file in files:
        flags = PATHS if file.stem == "standalone" else {}
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
        ({**PATHS, "steps": 0}, "--steps: `steps` must be 1..16, found: 0"),
        ({**PATHS, "steps": "four"}, "--steps: `steps`: expected int, found: 'four'"),
        ({**PATHS, "dtype": "float8"}, "--dtype: `dtype`: expected one of 'float32', 'bfloat16', found: 'float8'"),
        ({**PATHS, "states": "0,x"}, "--states: each of `states` must be a hidden_states index"),
        ({**PATHS, "states": "0,-1"}, "found: '-1'"),
        ({**PATHS, "states": f"0,{'9' * 5000}"}, "--states: each of `states` must be a hidden_states index"),
        ({**PATHS, "states": "2,2"}, "--states: `states` must not repeat an index"),
        ({**PATHS, "stps": 3}, "--stps: unknown key `stps` (did you mean `steps`?); allowed: draft, rows"),
    ],
)
def test_mistakes_name_their_source(flags: dict[str, object], expected: str) -> None:
    with pytest.raises(JobFileError) as caught:
        jobfile.plan("standalone", Config(), None, flags)
    assert expected in caught.value.message


def test_a_job_file_of_another_kind_and_an_unknown_table(tmp_path: Path) -> None:
    own = tmp_path / "mine.toml"
    own.write_text('kind = "selftest"\n', encoding="utf-8")
    with pytest.raises(JobFileError, match="`kind` must be 'standalone', found: 'selftest'"):
        jobfile.plan("standalone", Config(), own, PATHS)
    with pytest.raises(JobFileError, match=r"unknown table \[jobs.standalon\]"):
        jobfile.plan("standalone", Config(path=Path("e.toml"), jobs={"standalon": {}}), None, PATHS)


@pytest.mark.parametrize("text", [f"steps = {'[' * 50_000}", f"steps = {'9' * 5000}", f"steps = 0x{'f' * 5000}"])
def test_a_job_file_beyond_all_measure_is_a_usage_error(tmp_path: Path, text: str) -> None:
    own = tmp_path / "mine.toml"
    own.write_text(f'kind = "standalone"\n{text}\n', encoding="utf-8")
    with pytest.raises(JobFileError, match=r"mine\.toml"):
        jobfile.plan("standalone", Config(), own, PATHS)
