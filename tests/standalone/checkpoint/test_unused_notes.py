"""Keys of config.json that the tensors or the layer class give the lie to are noted; sound configs are not."""

import pytest

from tests.standalone.checkpoint.writing import Scene, notes

KEYS = {
    "quantization_config": {"quant_method": "fp8"},
    "torch_dtype": "float8_e4m3fn",
    "dtype": 7,
    "model_type": "gemma3_text",
    "residual_multiplier": 0.2,
    "attn_logit_softcapping": 30.0,
}
SILENT = {"quantization_config": None, "torch_dtype": "torch.bfloat16", "dtype": "auto", "model_type": "llama",
          "residual_multiplier": 1.0, "attn_logit_softcapping": None}  # fmt: skip


@pytest.mark.parametrize("key", KEYS)
def test_a_key_that_is_not_followed(tmp_path, key):
    scene = Scene(tmp_path)
    silent = notes(scene.load(**{key: SILENT[key]}))
    assert key not in silent
    assert notes(scene.load(**{key: KEYS[key]})) - silent == {key}
