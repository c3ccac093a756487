"""Numbers of single tensors: random ones stand near 1, trained ones far from it, equal rows are counted."""

import pytest
import torch

from remote_payload.standalone.checkpoint.load import load_checkpoint
from remote_payload.standalone.checkpoint.shared_tensors import identical, mean_cosine
from remote_payload.standalone.checkpoint.tensor_statistics import duplicate_rows, statistics_of
from tests.standalone.checkpoint.writing import DEMO, Scene


def drawn(*shape, std=0.02):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(0)) * std


@pytest.mark.parametrize("shape", [(64, 192), (128, 384), (640, 128), (1500, 1100)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_initial_numbers(shape, dtype):
    found = statistics_of("x", drawn(*shape).to(dtype))
    assert found.std == pytest.approx(0.02, rel=0.03)
    assert found.spectral_excess == pytest.approx(1, abs=0.06)
    assert found.row_norm_spread == pytest.approx(1, abs=0.12)
    assert found.constant is None


@pytest.mark.parametrize("factor", [1e-30, 1e22, 1e36])
def test_extreme_numbers_are_numbers(factor):
    found, plain = statistics_of("x", drawn(64, 192) * factor), statistics_of("x", drawn(64, 192))
    assert found.std == pytest.approx(0.02 * factor, rel=0.03)
    assert found.spectral_excess == pytest.approx(plain.spectral_excess, rel=1e-4)
    assert found.row_norm_spread == pytest.approx(plain.row_norm_spread, rel=1e-3)


@pytest.mark.parametrize("name", ["drafter_std", "drafter_embed"])
def test_trained_matrices(name):
    checkpoint = load_checkpoint(DEMO / name, DEMO / "target")
    matrices = [item for item in checkpoint.facts.statistics if item.spectral_excess is not None]
    assert len(matrices) == 9
    assert all(item.spectral_excess > 1.5 for item in matrices)
    assert all(item.row_norm_spread > 1.9 for item in matrices)
    assert all(item.duplicate_rows == 0 for item in matrices)


def test_singular_value_against_the_slow_way():
    matrix = drawn(50, 80) + torch.outer(drawn(50), drawn(80)) * 30
    found = statistics_of("x", matrix)
    slow = torch.linalg.matrix_norm(matrix, 2) / (matrix.std(correction=0) * (50**0.5 + 80**0.5))
    assert found.spectral_excess == pytest.approx(float(slow), rel=1e-3)


@pytest.mark.parametrize("value", [0.0, 1.0])
def test_constants(value):
    assert statistics_of("x", torch.full((64,), value)).constant == value
    assert statistics_of("x", torch.full((5000, 3), value)).constant == value
    almost = torch.full((5000, 3), value)
    almost[4321, 1] += 1
    assert statistics_of("x", almost).constant is None


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_equal_rows(dtype):
    matrix = drawn(9000, 40).to(dtype)
    assert duplicate_rows(matrix) == 0
    matrix[[5, 17, 8000]] = matrix[3].clone()
    matrix[[30, 31]] = matrix[29].clone()
    matrix[31, 39] += 1  # the same beginning, another end
    assert duplicate_rows(matrix) == 4


def test_only_the_head_is_searched_for_equal_rows(tmp_path):
    scene = Scene(tmp_path)
    head, fc = (scene.tensors[name].clone() for name in ("lm_head.weight", "fc.weight"))
    head[1], fc[1] = head[0].clone(), fc[0].clone()
    found = {item.name: item for item in scene.load({"lm_head.weight": head, "fc.weight": fc}).facts.statistics}
    assert (found["lm_head.weight"].duplicate_rows, found["fc.weight"].duplicate_rows) == (1, 0)
    assert "d2t" not in found


def test_alike_and_identical():
    theirs = drawn(6000, 8)
    rows = torch.arange(0, 6000, 2)
    assert identical(theirs[rows], theirs, rows)
    assert not identical(theirs[rows], theirs, rows.roll(1))
    assert identical(theirs.bfloat16().float(), theirs.bfloat16())
    assert mean_cosine(theirs[rows] * 3, theirs, rows) == pytest.approx(1)
    assert mean_cosine(-theirs, theirs) == pytest.approx(-1)
    assert mean_cosine(theirs, theirs, torch.full((6000,), -1)) is None
    assert mean_cosine(torch.zeros(4, 8), theirs[:4]) is None
