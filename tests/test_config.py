"""eagle3.toml: found where it should be, read strictly, errors that name file, key and what is allowed."""

import os
import re
from pathlib import Path

import pytest

from orchestrator import config
from orchestrator.errors import ConfigError


def write(folder: Path, text: str) -> Path:
    path = folder / "eagle3.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_found_upward_before_the_users_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = tmp_path / "config" / "eagle3-remote"
    own.mkdir(parents=True)
    write(own, '[hosts.own]\nssh = "a"\n')
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    deep = tmp_path / "project" / "a" / "b"
    deep.mkdir(parents=True)
    assert list(config.load(deep).hosts) == ["own"]
    write(tmp_path / "project", '[hosts.project]\nssh = "b"\n')
    assert list(config.load(deep).hosts) == ["project"]


def test_a_host_keeps_its_settings(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        '[hosts.gpu1]\nssh = "me@box:2222"\npython = "~/venv/bin/python"\nroot = "/data/e3"\n'
        'environment = { HF_HOME = "/data/hf; rm" }\nsecrets = ["HF_TOKEN"]\n[jobs.standalone]\nsteps = 5\n',
    )
    found = config.read(path)
    assert found.host("gpu1").python == "~/venv/bin/python"
    assert found.host("gpu1").environment == {"HF_HOME": "/data/hf; rm"}
    assert found.jobs == {"standalone": {"steps": 5}}
    assert found.host("me@other:22").ssh == "me@other:22"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            '[hosts.a]\nssh = "x"\npyton = "/p"\n',
            "unknown key `hosts.a.pyton` (did you mean `python`?); allowed: ssh, ",
        ),
        (
            '[host.a]\nssh = "x"\n',
            "unknown key `host` (did you mean `hosts`?); allowed: hosts, jobs, baselines, margins, notify, step_costs",
        ),
        ("[hosts.a]\n", "`hosts.a.ssh` is missing"),
        (
            '[hosts.a]\nssh = "x"\nscheduler = "slurm"\n[hosts.a.slurm]\npartitoin = "gpu"\n',
            "unknown key `hosts.a.slurm.partitoin` (did you mean `partition`?); allowed: partition, gres, ",
        ),
        ('[hosts.a]\nssh = "x"\n[hosts.a.slurm]\ntime = "30"\n', '`slurm` belongs to `scheduler = "slurm"`'),
        (
            '[hosts.a]\nssh = "x"\nscheduler = "slurm"\n[hosts.a.slurm]\noptions = ["--wrap=x"]\n',
            "`slurm.options`: `--wrap` is set by this tool, found: '--wrap=x'",
        ),
        ("[hosts.a]\nssh = 3\n", "`hosts.a.ssh`: expected a valid string, found: 3"),
        (
            '[hosts.a]\nssh = "x"\nroot = "relative"\n',
            "`hosts.a`: `root` must be an absolute path on the server, or start with `~/`, found: 'relative'",
        ),
        (
            '[hosts.a]\nssh = "x"\nsecrets = ["A B"]\n',
            "`hosts.a`: `secrets` must name environment variables (letters, digits, `_`), found: 'A B'",
        ),
        ('[hosts.a]\nssh = "x"\nsecrets = "A"\n', "`hosts.a.secrets`: expected a valid array, found: 'A'"),
        (
            '[hosts.a]\nssh = "x"\nconnect_timeout_s = nan\n',
            "`hosts.a.connect_timeout_s`: expected a finite number, found: nan",
        ),
        ('[hosts.a]\nssh = "x"\nreconnect_s = -1\n', "`hosts.a`: `reconnect_s` must be 0 or more, found: -1"),
        (
            "[hosts.a]\nssh = 1\n[hosts.b]\n",
            "\n  `hosts.a.ssh`: expected a valid string, found: 1\n  `hosts.b.ssh` is missing",
        ),
        (
            '[hosts.a]\nssh = "x"\npyton = 1\nroot = 2\n',
            "\n  `hosts.a.root`: expected a valid string, found: 2\n  unknown key `hosts.a.pyton`",
        ),
        ("[hosts.a]\nssh = 2026-11-29\n", "`hosts.a`: $.ssh: expected str, found: datetime.date(2026, 11, 29)"),
        ("hosts = 3\n", "`hosts` must be a table, found: 3"),
        ("[jobs]\nstandalone = 3\n", "`jobs.standalone` must be a table, found: 3"),
        ("step_costs = 3\n", "`step_costs` must be tables, [[step_costs]], found: 3"),
        ("[step_costs]\nbase = 1.0\n", "`step_costs` must be tables, [[step_costs]], found: {'base': 1.0}"),
        ("[hosts.a\n", "is not TOML"),
        (f"a = {'[' * 50_000}", "nested too deep"),
        (f"[{'a.' * 3000}a]\n", "`a.a.a...` is nested too deep"),
        (f"a = {'9' * 5000}\n", "is not TOML"),
        (f"[jobs.standalone]\nsteps = 0x{'f' * 5000}\n", "`jobs.standalone.steps`: expected an integer of 64 bits"),
        (
            f'[hosts.a]\nssh = "x"\nreconnect_s = {"9" * 400}\n',
            "`hosts.a.reconnect_s`: expected an integer of 64 bits, found one of 1329",
        ),
        (
            '[hosts.a]\nssh = "x"\nenvironment = { A = "\\u0000" }\n',
            "`hosts.a`: `environment.A` must not hold a NUL character, found: '\\x00'",
        ),
    ],
)
def test_errors_name_file_and_key(tmp_path: Path, text: str, expected: str) -> None:
    path = write(tmp_path, text)
    with pytest.raises(ConfigError) as caught:
        config.read(path)
    assert str(path) in caught.value.message
    assert expected in caught.value.message
    assert caught.value.exit_code == 2


def test_not_utf8(tmp_path: Path) -> None:
    path = tmp_path / "eagle3.toml"
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigError, match="must be UTF-8"):
        config.read(path)


@pytest.mark.parametrize("kind", ["loop", "dangling", "pipe", "folder"])
def test_a_file_that_cannot_be_read_is_not_passed_over(tmp_path: Path, kind: str) -> None:
    write(tmp_path, '[hosts.outer]\nssh = "a"\n')
    project = tmp_path / "project"
    project.mkdir()
    path = project / "eagle3.toml"
    {
        "loop": lambda: path.symlink_to(path),
        "dangling": lambda: path.symlink_to(project / "nowhere"),
        "pipe": lambda: os.mkfifo(path),
        "folder": path.mkdir,
    }[kind]()
    with pytest.raises(ConfigError, match="cannot read") as caught:
        config.load(project)
    assert str(path) in caught.value.message


def test_a_working_directory_that_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    with pytest.raises(ConfigError, match="the working directory cannot be told"):
        config.here()


def test_the_projects_baselines_lie_beside_the_file_or_where_it_says(tmp_path: Path) -> None:
    path = tmp_path / "eagle3.toml"
    path.write_text("")
    assert config.read(path).baselines is None
    (tmp_path / "baselines").mkdir()
    assert config.read(path).baselines == tmp_path / "baselines"
    path.write_text('[baselines]\ndirectory = "perf/known"\n')
    assert config.read(path).baselines == tmp_path / "perf" / "known"
    (tmp_path / "a-file").write_text("x")
    path.write_text('[baselines]\ndirectory = "a-file"\n')
    with pytest.raises(ConfigError) as refused:
        config.read(path)
    assert refused.value.message.endswith(f"expected a folder, found a file: {tmp_path / 'a-file'}")
    assert "name another folder there" in (refused.value.hint or "")
    path.write_text('[baselines]\ndirectory = "/srv/known"\n')
    assert config.read(path).baselines == Path("/srv/known")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("baselines = 1", "`baselines` must be a table"),
        ("[baselines]\ndirectory = 1", "`baselines.directory`: expected a folder, found: 1"),
        ('[baselines]\ndirectory = ""', "expected a folder"),
        ('[baselines]\ndirectory = "a\\u0000b"', "expected a folder"),
        ('[baselines]\ndirectory = "~no-such-user-here/x"', "expected a folder"),
        ('[baselines]\nfolder = "x"', "unknown key `baselines.folder`; allowed: directory"),
    ],
)
def test_a_folder_of_baselines_that_is_none_is_refused(tmp_path: Path, text: str, expected: str) -> None:
    path = tmp_path / "eagle3.toml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=re.escape(expected)):
        config.read(path)
