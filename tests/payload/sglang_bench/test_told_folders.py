"""The folders that a server that is up names: those that are a model's, on this host."""

from pathlib import Path

import pytest

from remote_payload.sglang_bench.folders import DRAFT, told_folders
from tests.support.answering_server import AnsweringServer


def test_only_a_models_folder_of_this_host_is_taken(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    here = str(tmp_path)
    with AnsweringServer() as server:
        for model, draft, told in (
            (here, here, (here, here)),
            (here, None, (here, "")),
            ("org/name", str(tmp_path / "none"), ("", "")),
            ("/a\0b", 7, ("", "")),
        ):
            server.info = {"model_path": model, DRAFT: draft}
            assert told_folders(server.url) == told
        server.key = "secret"
        assert told_folders(server.url) == ("", "")
    assert told_folders(server.url) == ("", "")


@pytest.mark.parametrize("url", ["http://other.example:30000", "http://192.0.2.7:30000"])
def test_the_server_of_another_host_names_folders_of_its_own(url: str) -> None:
    assert told_folders(url) == ("", "")
