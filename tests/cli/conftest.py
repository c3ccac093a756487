import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from orchestrator.cli.main import main
from orchestrator.store import Store


@dataclass(frozen=True)
class Answer:
    """What a command did."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Its single JSON value."""
        return json.loads(self.out)


Eagle = Callable[..., Answer]


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    monkeypatch.setenv("EAGLE3_REMOTE_HOME", str(tmp_path / "home"))
    return Store.default()


@pytest.fixture
def eagle(store: Store, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Eagle:
    """Run `eagle3-remote ARGUMENTS` in this process, up to its exit code."""

    def run(*arguments: str) -> Answer:
        monkeypatch.setattr(sys, "argv", ["eagle3-remote", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        captured = capsys.readouterr()
        code = ended.value.code
        assert isinstance(code, int)
        return Answer(code=code, out=captured.out, err=captured.err)

    return run
