"""Archives as an enemy would make them: nothing leaves its folder, nothing is taken in half or unchecked."""

import gzip
import io
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from orchestrator.errors import Eagle3Error, InvalidRunError, UsageError
from orchestrator.records import record_bytes
from orchestrator.store import Store, archive, unpacking
from orchestrator.store.archive import MANIFEST, archived, export_run, run_files
from orchestrator.store.intake import take_in
from tests.support.made_runs import made_run, put_files

FUTURE = record_bytes(made_run("run-a1")).replace(b'"schema_version":1,"host"', b'"schema_version":9,"host"')


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "home")


@pytest.fixture
def files(tmp_path: Path) -> dict[str, bytes]:
    """Those of a whole run."""
    other = Store(tmp_path / "other")
    run = other.begin(made_run("run-a1"))
    put_files(run, {"a": b"b"})
    return run_files(run)


def members(data: bytes) -> list[tarfile.TarInfo]:
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        return tar.getmembers()


def rewritten(data: bytes, change: Callable[[tarfile.TarInfo], tarfile.TarInfo | None]) -> bytes:
    """The archive with every entry changed, or left out."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=io.BytesIO(data)) as old, tarfile.open(fileobj=packed, mode="w:gz") as new:
        for entry in old.getmembers():
            content = old.extractfile(entry)
            assert content is not None
            changed = change(entry)
            if changed is not None:
                new.addfile(changed, content if changed.isreg() else None)
    return packed.getvalue()


def renamed(name: str) -> Callable[[tarfile.TarInfo], tarfile.TarInfo]:
    def change(entry: tarfile.TarInfo) -> tarfile.TarInfo:
        if entry.name.endswith("/result/a"):
            entry.name = name
        return entry

    return change


def linked(kind: bytes) -> Callable[[tarfile.TarInfo], tarfile.TarInfo]:
    def change(entry: tarfile.TarInfo) -> tarfile.TarInfo:
        if entry.name.endswith("/result/a"):
            entry.type, entry.linkname, entry.size = kind, "/etc/passwd", 0
        return entry

    return change


def refused(store: Store, path: Path, data: bytes) -> str:
    """What is said of it; nothing of it may stay."""
    path.write_bytes(data)
    with pytest.raises(Eagle3Error) as failure:
        take_in(store.home, path)
    assert str(path) in failure.value.message
    runs = store.home / "runs"
    assert not runs.exists() or list(runs.iterdir()) == []
    return failure.value.message


def test_the_same_run_gives_the_same_bytes_and_comes_back(
    store: Store, files: dict[str, bytes], tmp_path: Path
) -> None:
    data = archived("run-a1", files)
    assert archived("run-a1", dict(reversed(files.items()))) == data
    assert members(data)[0].name == MANIFEST
    assert {entry.mtime for entry in members(data)} == {0}
    (tmp_path / "a.tar.gz").write_bytes(data)
    assert take_in(store.home, tmp_path / "a.tar.gz") == ("run-a1", True)
    assert run_files(store.run_dir("run-a1")) == files
    assert store.load("run-a1") == made_run("run-a1")
    assert store.verify("run-a1") == ()


@pytest.mark.parametrize(
    "name",
    ["../evil", "run-a1/../../evil", "/etc/evil", "run-a1/..", "run-a1\\..\\evil", "C:evil", "run-a1/./x", "run-a1//x",
     "run-a1/.hidden", "run-a1/x\ny", "run-a1/" + "x" * 300, "\udcff"],
)  # fmt: skip
def test_a_path_that_leads_elsewhere_is_refused(
    store: Store, files: dict[str, bytes], tmp_path: Path, name: str
) -> None:
    said = refused(store, tmp_path / "a.tar.gz", rewritten(archived("run-a1", files), renamed(name)))
    assert "expected names inside the run" in said
    assert not (tmp_path / "evil").exists()


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE, tarfile.DIRTYPE])
def test_links_and_devices_are_refused(store: Store, files: dict[str, bytes], tmp_path: Path, kind: bytes) -> None:
    said = refused(store, tmp_path / "a.tar.gz", rewritten(archived("run-a1", files), linked(kind)))
    assert "expected plain files alone" in said


def test_a_name_twice_is_refused_also_in_other_capitals(store: Store, files: dict[str, bytes], tmp_path: Path) -> None:
    twice = rewritten(archived("run-a1", files), renamed("run-a1/RUN.json"))
    assert "each once" in refused(store, tmp_path / "a.tar.gz", twice)


def test_what_the_manifest_does_not_say_is_refused(store: Store, files: dict[str, bytes], tmp_path: Path) -> None:
    data = archived("run-a1", files)
    path = tmp_path / "a.tar.gz"
    without = rewritten(data, lambda entry: None if entry.name.endswith("/result/a") else entry)
    assert "`result/a` is in its manifest and missing" in refused(store, path, without)
    more = rewritten(data, renamed("run-a1/result/b"))
    assert "is in its manifest and missing" in refused(store, path, more)
    no_manifest = rewritten(data, lambda entry: None if entry.name == MANIFEST else entry)
    assert f"found no {MANIFEST}" in refused(store, path, no_manifest)
    plain = gzip.decompress(data)
    assert "expected sha256" in refused(store, path, gzip.compress(plain.replace(b"gpu1", b"gpu2", 1)))


@pytest.mark.parametrize("kept", [0.1, 0.5, 0.9, 0.999])
def test_a_cut_archive_is_refused(store: Store, files: dict[str, bytes], tmp_path: Path, kept: float) -> None:
    data = archived("run-a1", files)
    refused(store, tmp_path / "a.tar.gz", data[: int(kept * len(data))])
    plain = gzip.decompress(data)
    refused(store, tmp_path / "b.tar.gz", gzip.compress(plain[: int(0.7 * kept * len(plain))]))


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"run.json": None}, "expected run.json or measurements.json"),
        ({"run.json": b"{"}, "expected JSON"),
        ({"run.json": record_bytes(made_run("other"))}, "expected the run `run-a1`"),
        ({"spec.json": record_bytes(made_run("run-a1", created_unix_s=3).spec)}, "found two"),
        ({"result/a": b"c"}, "not what the run's manifest says"),
        ({"result/a": None}, "is missing"),
        ({"labels.json": b'{"tags":["A B"]}'}, "a tag must be"),
        ({"run.json": FUTURE}, "written by a newer eagle3-remote: 9"),
    ],
)
def test_a_run_that_does_not_fit_together_is_refused(
    store: Store, files: dict[str, bytes], tmp_path: Path, change: dict[str, bytes | None], expected: str
) -> None:
    changed = {name: data for name, data in {**files, **change}.items() if data is not None}
    assert expected in refused(store, tmp_path / "a.tar.gz", archived("run-a1", changed))


def test_other_files_are_refused_by_name(store: Store, tmp_path: Path) -> None:
    path = tmp_path / "x"
    assert "expected a record of measurements" in refused(store, path, b"hello")
    assert "expected a record of measurements" in refused(store, path, b"")
    assert "expected an exported run" in refused(store, path, gzip.compress(b"hello"))
    assert "expected an exported run" in refused(store, path, b"\x1f\x8b nonsense")
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz"):
        pass
    assert f"found no {MANIFEST}" in refused(store, path, packed.getvalue())


def test_a_bomb_ends_where_the_limit_is(
    store: Store, files: dict[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bomb = archived("run-a1", {**files, "stdout.log": bytes(3 << 20)})
    assert len(bomb) < 1 << 20
    monkeypatch.setattr(unpacking, "MAX_BYTES", 1 << 20)
    assert "expected at most 1 MB unpacked, found more" in refused(store, tmp_path / "a.tar.gz", bomb)
    (tmp_path / "b.tar.gz").write_bytes(bytes((1 << 20) + 1))
    with pytest.raises(UsageError, match="expected at most 1 MB, found: 2 MB"):
        take_in(store.home, tmp_path / "b.tar.gz")
    monkeypatch.setattr(unpacking, "MAX_FILES", 3)
    assert "expected at most 3 files" in refused(store, tmp_path / "c.tar.gz", archived("run-a1", files))


def test_a_header_that_claims_more_than_there_is(store: Store, files: dict[str, bytes], tmp_path: Path) -> None:
    plain = bytearray(gzip.decompress(archived("run-a1", files)))
    entry = tarfile.TarInfo("run-a1/big")
    entry.size = 1 << 40
    refused(store, tmp_path / "a.tar.gz", gzip.compress(entry.tobuf(format=tarfile.GNU_FORMAT) + bytes(plain)))


def test_a_run_with_a_link_in_it_is_not_exported_without_it(store: Store, tmp_path: Path) -> None:
    run = store.begin(made_run("run-a1"))
    put_files(run, {"a": b"b"})
    (run.path / ".x.1.tmp").symlink_to(tmp_path)  # hidden ones are nobody's
    assert "result/a" in run_files(run)
    run.result.rename(tmp_path / "result")
    run.result.symlink_to(tmp_path / "result")
    with pytest.raises(InvalidRunError, match=f"found a link: {run.result}"):
        export_run(run, tmp_path / "a.tar.gz")
    assert not (tmp_path / "a.tar.gz").exists()


def test_a_run_too_large_to_be_read_again_is_not_exported(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = store.begin(made_run("run-a1"))
    (run.path / "stdout.log").write_bytes(bytes(1 << 20))
    monkeypatch.setattr(archive, "MAX_BYTES", 1 << 19)
    with pytest.raises(InvalidRunError, match="expected a run of at most 0 MB"):
        export_run(run, tmp_path / "a.tar.gz")
    assert not (tmp_path / "a.tar.gz").exists()


def test_what_is_only_a_copy_is_never_taken_from_others(store: Store, files: dict[str, bytes], tmp_path: Path) -> None:
    """A forged verdict or measurements beside an honest result."""
    forged = {**files, "verdict.json": b"{}", "measurements.json": b"{}", "measurements.key": b"x"}
    (tmp_path / "a.tar.gz").write_bytes(archived("run-a1", forged))
    assert take_in(store.home, tmp_path / "a.tar.gz") == ("run-a1", True)
    assert run_files(store.run_dir("run-a1")) == files
    assert not (store.run_dir("run-a1").path / "measurements.json").exists()
