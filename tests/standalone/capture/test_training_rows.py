"""States that a capture's job names and its target, or its drafter's fc, cannot have."""

from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from remote_payload.failure import JobFailure
from remote_payload.schema.capture_job import CaptureJob
from remote_payload.standalone.capture.training_rows import require_possible, sizes_of

TARGET = '{"hidden_size": 8, "vocab_size": 32, "num_hidden_layers": 4}'


@pytest.mark.parametrize(
    ("trained", "states", "told"),
    [
        ((0, 2, 4), (0, 1, 2, 4), None),
        ((0, 2, 5), (0, 2, 4), "`trained`: expected states of a target of 4 layers, 0 (embed) to 4, found: 5"),
        ((0, 2), (0, 2, 4), "`trained`: expected as many states as the drafter's fc.weight takes, 3"),
        (None, (0, 2, 7), "`states`: expected states of a target of 4 layers, 0 (embed) to 4, found: 7"),
    ],
)
def test_states_that_cannot_be_are_refused_before_a_server_is_started(
    tmp_path: Path, trained: tuple[int, ...] | None, states: tuple[int, ...], told: str | None
) -> None:
    save_file({"fc.weight": torch.zeros(8, 24)}, tmp_path / "model.safetensors")
    job = CaptureJob(model="/t", draft=str(tmp_path), rows="/r", states=states, trained=trained)
    sizes = sizes_of(TARGET, None)
    if told is None:
        require_possible(job, sizes)
        return
    with pytest.raises(JobFailure) as refused:
        require_possible(job, sizes)
    assert refused.value.failure.kind == "job"
    assert told in refused.value.failure.message
