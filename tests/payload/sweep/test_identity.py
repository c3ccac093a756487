"""What lies under a path: a model that was replaced in its place is another."""

import dataclasses
import hashlib
import os
from pathlib import Path

import pytest

from remote_payload.schema import PathIdentity
from remote_payload.sweep.identity import digest_of, whole_sha256
from remote_payload.sweep.reidentified import as_it_lies
from tests.payload.sweep.test_sweep import sweep_of


def test_whatever_changes_in_a_folder_changes_its_identity(tmp_path: Path) -> None:
    folder = tmp_path / "drafter"
    folder.mkdir()
    config, weights = folder / "config.json", folder / "model.safetensors"
    config.write_text('{"a": 1}')
    weights.write_bytes(b"0" * 100)
    found = [digest_of(str(folder))]
    assert digest_of(str(folder)) == found[0]
    os.utime(weights, ns=(1, 1))  # trained anew, of the same size
    found.append(digest_of(str(folder)))
    weights.rename(folder / "other.safetensors")
    found.append(digest_of(str(folder)))
    times = config.stat()
    config.write_text('{"a": 2}')
    os.utime(config, ns=(times.st_atime_ns, times.st_mtime_ns))
    found.append(digest_of(str(folder)))
    for name in ("parts/a.safetensors", "parts/more/b.safetensors", "parts/more/c.json"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text("1")
        found.append(digest_of(str(folder)))
    assert None not in found
    assert len(set(found)) == 7
    (folder / "__pycache__").mkdir()
    (folder / "__pycache__" / "modeling.pyc").write_text("1")  # comes of loading it
    assert digest_of(str(folder)) == found[-1]


def test_links_of_a_hubs_cache_are_followed_and_what_is_not_there_has_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    blob, snapshot = tmp_path / "blob", tmp_path / "snapshot"
    blob.write_text("weights")
    snapshot.mkdir()
    (snapshot / "model.safetensors").symlink_to(blob)
    before = digest_of("~/snapshot")
    os.utime(blob, ns=(1, 1))
    assert digest_of("~/snapshot") not in (before, None)
    assert digest_of("~/blob") is not None
    assert digest_of("org/model") is None
    assert digest_of("\0") is None


def test_files_as_one_text_to_their_last_byte(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    text = bytes(range(256)) * 5000
    (tmp_path / "a").write_bytes(text[:1_100_000])
    (tmp_path / "b").write_bytes(text[1_100_000:])
    assert whole_sha256(("~/a", "~/b")) == hashlib.sha256(text).hexdigest()
    assert whole_sha256(("~/b", "~/a")) not in (whole_sha256(("~/a", "~/b")), None)
    assert [whole_sha256(paths) for paths in ((), ("~/a", "~/gone"), ("~",), ("\0",))] == [None] * 4


def test_a_sweep_that_is_launched_later_is_known_by_what_lies_there_then(tmp_path: Path) -> None:
    draft = tmp_path / "draft"
    draft.write_text("v1")
    planned = dataclasses.replace(
        sweep_of({}, {"duration_s": 1}),
        identity=(PathIdentity(path=str(draft), digest=digest_of(str(draft))), PathIdentity(path="/none", digest=None)),
    )
    assert as_it_lies(planned) == (planned, ())
    draft.write_text("another")
    later, other = as_it_lies(planned)
    assert other == (str(draft),)
    assert later.identity[0].digest == digest_of(str(draft)) != planned.identity[0].digest
    ids = [point.point_id for point in later.points]
    assert len({*ids, "p0", "p1"}) == 4
    assert [unit.points for unit in later.units] == [(ids[0],), (ids[1],)]
    assert as_it_lies(planned) == (later, other)  # the same models, the same ids
    assert as_it_lies(later) == (later, ())
