"""A corrected drafter beside the original: the weights linked, config.json patched, nothing ever overwritten."""

import contextlib
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from remote_payload.correct import TOLD, correct, merged
from remote_payload.refusal import Refusal
from remote_payload.schema.corrected import CorrectFrame, CorrectRequest

CONFIG = {"model_type": "llama", "eagle_config": {"old": 1, "ids": [1, 3, 4]}, "rope_scaling": {"factor": 2.0}}
NOBODY = 65534
PATCH = {"eagle_config": {"old": None, "ids": [-1, 1, 3]}, "rope_scaling": None}


@pytest.fixture
def draft(tmp_path: Path) -> Path:
    folder = tmp_path / "models" / "drafter"
    (folder / "more").mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(CONFIG))
    (folder / "model.safetensors").write_bytes(b"weights")
    (folder / "more" / "vocab.json").write_text("{}")
    return folder


def asked(draft: Path | str, patch: Any = PATCH, **more: Any) -> CorrectFrame:
    told = {"config_json": json.dumps(CONFIG), "patch_json": json.dumps(patch), **more}
    frames: list[Any] = []
    correct(CorrectRequest(nonce="n", draft=str(draft), **told), frames.append)
    assert isinstance(frames[0], CorrectFrame)
    return frames[0]


def tree(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_the_new_folder_stands_beside_and_the_original_is_as_it_was(draft: Path) -> None:
    before = tree(draft)
    answer = asked(draft)
    new = draft.with_name("drafter-for-sglang")
    assert answer.path == str(new)
    assert answer.linked == ("model.safetensors", "more")
    assert json.loads((new / "config.json").read_text()) == {"model_type": "llama", "eagle_config": {"ids": [-1, 1, 3]}}
    assert (new / "model.safetensors").read_bytes() == b"weights"
    assert str((new / "model.safetensors").readlink()) == "../drafter/model.safetensors"
    assert json.loads((new / TOLD).read_text())["patch"] == PATCH
    assert tree(draft) == before
    assert sorted(entry.name for entry in draft.parent.iterdir()) == ["drafter", "drafter-for-sglang"]
    assert answer.config_sha256 == hashlib.sha256((new / "config.json").read_bytes()).hexdigest()


@pytest.mark.parametrize("into", ["inside", "more/inside", "link/inside"])
def test_never_in_the_drafters_own_folder(draft: Path, into: str) -> None:
    (draft.parent / "elsewhere").symlink_to(draft)
    (draft / "link").symlink_to("more")
    before = tree(draft)
    for base in (draft, draft.parent / "elsewhere"):
        with pytest.raises(Refusal, match="own folder"):
            asked(draft, into=str(base / into))
    assert tree(draft) == before


def test_links_hold_where_both_are_mounted_elsewhere(draft: Path, tmp_path: Path) -> None:
    asked(draft)
    draft.parent.rename(tmp_path / "mounted")
    assert (tmp_path / "mounted" / "drafter-for-sglang" / "model.safetensors").read_bytes() == b"weights"


def test_elsewhere_the_links_are_absolute(draft: Path, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    answer = asked(draft, into=str(tmp_path / "mine" / "fixed"))
    assert (Path(answer.path) / "model.safetensors").readlink() == draft / "model.safetensors"


def test_a_link_to_the_drafter_is_seen_through(draft: Path, tmp_path: Path) -> None:
    current = tmp_path / "current"
    current.symlink_to(draft)
    answer = asked(current)
    current.unlink()
    assert (Path(answer.path) / "model.safetensors").read_bytes() == b"weights"


def test_asked_again_it_is_the_same_folder(draft: Path) -> None:
    first = asked(draft)
    again = asked(draft)
    assert (first.existed, again.existed) == (False, True)
    assert again.config_sha256 == first.config_sha256


@pytest.mark.parametrize("left", ["another patch", "a file", "one link less"])
def test_what_is_there_is_never_overwritten(draft: Path, left: str) -> None:
    new = draft.with_name("drafter-for-sglang")
    if left == "a file":
        new.write_text("mine")
    else:
        asked(draft, {"other": 1} if left == "another patch" else PATCH)
        if left == "one link less":
            (new / "model.safetensors").unlink()
    before = new.read_bytes() if new.is_file() else tree(new)
    with pytest.raises(Refusal, match="something else is there already"):
        asked(draft)
    assert (new.read_bytes() if new.is_file() else tree(new)) == before


@pytest.mark.parametrize(
    ("damage", "told"),
    [
        (lambda draft: (draft / "config.json").write_text("{"), "is not JSON"),
        (lambda draft: (draft / "config.json").unlink(), "cannot read"),
        (lambda draft: (draft / "config.json").write_text('{"model_type": "llama"}'), "does not say any more"),
    ],
)
def test_another_config_than_the_judged_one_is_refused(draft: Path, damage: Any, told: str) -> None:
    damage(draft)
    with pytest.raises(Refusal, match=told):
        asked(draft)
    assert sorted(entry.name for entry in draft.parent.iterdir()) == ["drafter"]


@pytest.mark.parametrize("patch", [{}, [], 3])
def test_a_patch_changes_something(draft: Path, patch: Any) -> None:
    with pytest.raises(Refusal, match="something to change"):
        asked(draft, patch)


def test_the_drafter_itself_is_no_place_by_whatever_name(draft: Path) -> None:
    """Nobody is told to remove what is there: it is the original."""
    link = draft.with_name("link")
    link.symlink_to(draft)
    before = tree(draft)
    for into in (draft, link, draft / ".." / draft.name):
        with pytest.raises(Refusal, match="own folder") as refused:
            asked(draft, into=str(into))
        assert refused.value.code == "wrong_place"
        assert "remove" not in (refused.value.hint or "")
    assert tree(draft) == before


def test_a_drafter_behind_a_link_is_corrected_beside_the_link(draft: Path, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    link = tmp_path / "mine" / "drafter"
    link.symlink_to(draft)
    written = asked(link)
    assert written.path == str(tmp_path / "mine" / "drafter-for-sglang")
    assert (Path(written.path) / "model.safetensors").read_bytes() == b"weights"


def test_no_folder_is_a_clear_refusal(tmp_path: Path) -> None:
    with pytest.raises(Refusal, match="expected a drafter's folder") as refused:
        asked("org/drafter-on-the-hub")
    assert "download" in (refused.value.hint or "")
    with pytest.raises(Refusal):
        asked("/")


def test_a_place_that_cannot_be_written_names_the_way_out(draft: Path) -> None:
    with pytest.raises(Refusal) as refused:
        asked(draft, into="/proc/fixed")
    assert "--apply-into" in (refused.value.hint or "")


@contextlib.contextmanager
def another_user() -> Iterator[None]:
    """Somebody whom permissions hold; root writes anywhere."""
    own = os.geteuid()
    if own == 0:
        os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(own)


def test_models_of_somebody_else_are_corrected_elsewhere(draft: Path) -> None:
    """Neither the drafter's folder nor the one that holds it can be written."""
    with tempfile.TemporaryDirectory() as name:
        home = Path(name)
        home.chmod(0o755)
        theirs = Path(shutil.copytree(draft, home / "models" / "drafter"))
        (home / "own").mkdir()
        (home / "own").chmod(0o777)
        for folder in (theirs, theirs.parent):
            folder.chmod(0o555)
        before = tree(home)
        with another_user():
            with pytest.raises(Refusal) as refused:
                asked(theirs)
            assert (refused.value.code, tree(home)) == ("root_not_writable", before)
            assert "Permission denied" in refused.value.message
            assert "--apply-into" in (refused.value.hint or "")
            written = asked(theirs, into=str(home / "own" / "drafter"))
            assert (Path(written.path) / "model.safetensors").read_bytes() == b"weights"
        theirs.parent.chmod(0o755)
        theirs.chmod(0o755)


@pytest.mark.parametrize(  # RFC 7396, appendix A
    ("value", "patch", "result"),
    [
        ({"a": "b"}, {"a": "c"}, {"a": "c"}),
        ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
        ({"a": "b"}, {"a": None}, {}),
        ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
        ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
        ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
        ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
        (["a", "b"], ["c", "d"], ["c", "d"]),
        ({"a": "b"}, ["c"], ["c"]),
        ({"a": "foo"}, None, None),
        ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
        ([1, 2], {"a": "b", "c": None}, {"a": "b"}),
        ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
    ],
)
def test_the_merge_is_that_of_the_standard(value: Any, patch: Any, result: Any) -> None:
    assert merged(value, patch) == result


def test_how_the_config_is_written_does_not_matter(draft: Path) -> None:
    told = json.dumps(dict(reversed(CONFIG.items())), indent=4).replace("\n", "\r\n")
    (draft / "config.json").write_bytes(b"\xef\xbb\xbf" + told.encode())
    assert not asked(draft).existed
