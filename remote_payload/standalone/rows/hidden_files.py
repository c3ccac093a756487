"""speculators' `hs_i.safetensors`: token_ids [T] and hidden_states [T, n, H], the target's final state last.

Rows of a capture have the same form, with the teacher's choices beside the states instead of a final state among them.

The file's tensors are mapped into memory, not read. Names: https://github.com/vllm-project/speculators,
`src/speculators/train/data.py`.
"""

from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open

from remote_payload.schema.standalone import DataDialectFacts
from remote_payload.standalone.file_kind import is_pointer
from remote_payload.standalone.rows.values import POINTER_WORDS, RowError, first_line

DIALECT = DataDialectFacts(
    name="speculators",
    evidence=("files hs_i.safetensors hold `token_ids` and `hidden_states`, the final state last",),
)

ANSWERS = "answers"
"""(T,) of the rows that a capture wrote: the target's greedy choice after each token, -1 = unknown."""
SERVED = DataDialectFacts(
    name="served",
    evidence=(f"files hs_i.safetensors hold `{ANSWERS}` beside `hidden_states`: `run capture` fetched them",),
)


def load_tensors(path: Path) -> dict[str, Any]:
    """Every tensor of a safetensors file, mapped. Raises RowError, OSError."""
    if is_pointer(path):
        raise RowError(POINTER_WORDS)
    try:
        with safe_open(path, framework="pt") as file:
            return {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a mapping
    except SafetensorError as error:
        raise RowError(f"it is not a whole safetensors file: {first_line(error)}") from None


def shapes(path: Path) -> dict[str, tuple[int, ...]]:
    """The shape of each tensor, from the file's header alone. Raises RowError, OSError."""
    try:
        with safe_open(path, framework="pt") as file:
            return {
                name: tuple(file.get_slice(name).get_shape())
                for name in file.keys()  # noqa: SIM118 - not a mapping
            }
    except SafetensorError as error:
        raise RowError(f"it is not a whole safetensors file: {first_line(error)}") from None
