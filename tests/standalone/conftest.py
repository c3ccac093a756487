import pytest
import torch

from tests.support.tiny import Tiny, write_drafter, write_rows, write_target


@pytest.fixture(autouse=True)
def one_thread():
    """Small models gain nothing from threads, and tests share the machine."""
    torch.set_num_threads(1)


@pytest.fixture
def tiny():
    return Tiny()


@pytest.fixture
def made(tmp_path, tiny):
    """Folders of a made-up drafter, its target and three rows."""
    return {
        "draft": write_drafter(tmp_path / "draft", tiny),
        "target": write_target(tmp_path / "target", tiny),
        "rows": write_rows(tmp_path / "rows", tiny),
    }
