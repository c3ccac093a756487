"""Writes `tests/golden/rows/`: Arrow files as `datasets` and pyarrow write them, small enough to keep.

Run once with both installed (they are no dependency of the tests): python -m tests.support.make_prepared
"""

import pyarrow as pa
from datasets import Dataset, Features, List, Value, concatenate_datasets

from tests.support.golden_rows import GOLDEN, MASKS, ROWS


def main() -> None:
    """Write everything."""
    GOLDEN.mkdir(parents=True, exist_ok=True)
    features = Features({"text": Value("string"), "input_ids": List(Value("int32")), "loss_mask": List(Value("bool"))})
    columns = {"text": [f"row {row}" for row in range(5)], "input_ids": ROWS, "loss_mask": MASKS}
    data = Dataset.from_dict(columns, features=features)
    concatenate_datasets([data.select(range(3)), data.select(range(3, 5))]).save_to_disk(
        GOLDEN / "prepared", num_shards=2
    )
    ids, masks = pa.array(ROWS, pa.large_list(pa.int64())), pa.array(MASKS, pa.list_(pa.uint8()))
    table = pa.table({"nested": pa.array([{"a": [1.5], "b": None}] * 5), "input_ids": ids, "loss_mask": masks})
    write("large.arrow", table, batch=2)
    write("compressed.arrow", table, batch=5, options=pa.ipc.IpcWriteOptions(compression="zstd"))
    write("strings.arrow", table.set_column(1, "input_ids", pa.array([[str(i) for i in row] for row in ROWS])))
    write("floats.arrow", table.set_column(1, "input_ids", pa.array([1.5] * 5)))
    write("nulls.arrow", table.set_column(1, "input_ids", pa.array([[1, None]] * 5, pa.list_(pa.int64()))))
    write("no_mask.arrow", table.drop_columns("loss_mask"))
    write("words.arrow", table.set_column(0, "nested", pa.array(["a"] * 5).dictionary_encode()))


def write(name: str, table: pa.Table, batch: int = 5, options: pa.ipc.IpcWriteOptions | None = None) -> None:
    """One stream file."""
    with pa.OSFile(str(GOLDEN / name), "wb") as file, pa.ipc.new_stream(file, table.schema, options=options) as stream:
        stream.write_table(table, max_chunksize=batch)


if __name__ == "__main__":
    main()
