import py_compile
import shutil
from pathlib import Path

import pytest

from remote_payload import bytecode
from tests.payload.rig import Rig, of_kind, wait_for


def test_the_first_launch_leaves_compiled_sources_that_later_ones_use(rig: Rig) -> None:
    rig.launch(rig.spec("r1"), follow=True)
    folder = bytecode.bytecode_folder(rig.pyz)
    wait_for(folder.is_dir)
    assert len(list(folder.rglob("*.pyc"))) == len(list(folder.rglob("*.py"))) > 20
    assert {path.name for path in rig.pyz.parent.iterdir()} == {rig.pyz.name, folder.name}
    marked = folder / "remote_payload" / "selftest.py"
    marked.write_text(marked.read_text() + "\nprint('from the folder')\n")
    mode = py_compile.PycInvalidationMode.UNCHECKED_HASH
    py_compile.compile(str(marked), doraise=True, invalidation_mode=mode)
    rig.launch(rig.spec("r2"), follow=True)
    assert rig.run("r2").stdout.read_text().startswith("from the folder\n")


def test_compiled_sources_that_are_damaged_or_gone_cost_only_speed(rig: Rig) -> None:
    folder = bytecode.bytecode_folder(rig.pyz)
    bytecode.make_bytecode(rig.pyz, folder)
    for path in folder.rglob("*.pyc"):
        path.write_bytes(b"damaged")
    assert of_kind(rig.launch(rig.spec("r1"), follow=True), "state")[-1].state.phase == "succeeded"
    shutil.rmtree(folder)
    assert of_kind(rig.launch(rig.spec("r2"), follow=True), "state")[-1].state.phase == "succeeded"


def test_a_small_disk_is_left_alone(small_disk: Path) -> None:
    rig = Rig(small_disk / "root")
    bytecode.make_bytecode(rig.pyz, bytecode.bytecode_folder(rig.pyz))
    assert [path.name for path in rig.pyz.parent.iterdir()] == [rig.pyz.name]


@pytest.mark.slow
def test_two_that_make_them_at_once_do_no_harm(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = bytecode.bytecode_folder(rig.pyz)
    bytecode.make_bytecode(rig.pyz, folder)
    with pytest.raises(OSError, match="not empty"):
        bytecode.make_bytecode(rig.pyz, folder)
    assert {path.name for path in rig.pyz.parent.iterdir()} == {rig.pyz.name, folder.name}
