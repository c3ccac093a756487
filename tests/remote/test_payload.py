import hashlib
import io
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import remote_payload
from orchestrator.remote.payload import build_payload

BUILD = (
    "from orchestrator.remote.payload import build_payload; import sys; sys.stdout.buffer.write(build_payload().data)"
)
HERE = Path(remote_payload.__file__).parents[1]


def built_from(folder: Path) -> bytes:
    done = subprocess.run([sys.executable, "-c", BUILD], capture_output=True, check=True, cwd=folder)
    return done.stdout


def copy_of_the_packages(source: Path, folder: Path) -> Path:
    for name in ("orchestrator", "remote_payload"):
        shutil.copytree(source / name, folder / name, ignore=shutil.ignore_patterns("__pycache__", "data"))
    return folder


def test_the_name_is_the_hash_of_the_bytes() -> None:
    payload = build_payload()
    assert payload.sha256 == hashlib.sha256(payload.data).hexdigest()


def test_another_place_time_and_umask_give_the_same_bytes(tmp_path: Path) -> None:
    first = copy_of_the_packages(HERE, tmp_path / "first")
    second = copy_of_the_packages(first, tmp_path / "second")
    (second / "remote_payload" / "__pycache__").mkdir()
    (second / "remote_payload" / "__pycache__" / "x.py").write_text("")
    (second / "remote_payload" / "notes.txt").write_text("not a source")
    for path in (second / "remote_payload").rglob("*.py"):
        path.chmod(0o600)
        os.utime(path, (0, 0))
    assert built_from(first) == built_from(second)


def test_another_source_gives_another_name(tmp_path: Path) -> None:
    folder = copy_of_the_packages(HERE, tmp_path)
    before = built_from(folder)
    with (folder / "remote_payload" / "rundir.py").open("a") as file:
        file.write("\n")
    assert built_from(folder) != before


def test_it_holds_the_package_and_the_entry_and_nothing_else() -> None:
    with zipfile.ZipFile(io.BytesIO(build_payload().data)) as archive:
        names = archive.namelist()
        assert {info.date_time for info in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}
    expected = {path.relative_to(HERE).as_posix() for path in (HERE / "remote_payload").rglob("*.py")}
    assert names == ["__main__.py", *sorted(expected)]


def test_it_runs_without_the_checkout(tmp_path: Path) -> None:
    file = tmp_path / "p.pyz"
    file.write_bytes(build_payload().data)
    done = subprocess.run([sys.executable, "-I", "-S", str(file)], capture_output=True, check=False, cwd="/")
    assert done.returncode == 2
    assert done.stderr.startswith(b"usage: payload.pyz {launch|")
