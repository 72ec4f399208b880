"""Writes the Parquet files of parquet_test.cpp beside itself. Needs pyarrow; made with 26.0.1."""
import datetime
import decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

HERE = Path(__file__).parent


def write(name, table, **options):
    path = HERE / name
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, path, **options)


# As Hugging Face stores a set: parts in a folder `data`.
def reviews(rows):
    return pa.table({"id": pa.array([row[0] for row in rows], pa.int32()), "review": [row[1] for row in rows], "stars": [row[2] for row in rows],
                     "mood": pa.array([row[3] for row in rows]).dictionary_encode(), "tags": [["one", "two"] for _ in rows]})


GOOD = [(1, "Good, and cheap", 5.0, "glad"), (2, 'She said "no"\nand left', 0.5, "angry")]
write("reviews/data/train-00000-of-00002.parquet", reviews(GOOD))
write("reviews/data/train-00001-of-00002.parquet", reviews([(3, "plain", 3.0, "calm")]), compression="zstd")
write("reviews/data/validation-00000-of-00001.parquet", reviews([(4, "cheap", 4.0, "glad")]), compression="gzip")

# The usual names; several groups of rows, and more rows than are decoded at once.
count = 2500
write("pairs.parquet", pa.table({"sentence1": [f"row {i % 7}" for i in range(count)], "sentence2": pa.array(["x"] * count, pa.large_string()),
                                 "label": pa.array([i % 3 for i in range(count)], pa.int64())}), row_group_size=700)

# One column of each type; the second row has no values.
broken = pa.Array.from_buffers(pa.string(), 2, [None, pa.array([0, 3, 3], pa.int32()).buffers()[1], pa.py_buffer(b"a\xffb")])
write("types.parquet", pa.table({
    "text": ["caf\u00e9 \U0001f600\t\u0000.", None], "large": pa.array(["large", None], pa.large_string()), "view": pa.array(["view", None], pa.string_view()),
    "coded": pa.array(["coded", None]).dictionary_encode(), "broken": broken, "truth": [True, None], "i8": pa.array([-8, None], pa.int8()),
    "i64": pa.array([-2**63, None], pa.int64()), "u8": pa.array([200, None], pa.uint8()), "u64": pa.array([2**64 - 1, None], pa.uint64()),
    "f32": pa.array([0.1, None], pa.float32()), "f64": pa.array([1e-7, None], pa.float64()), "whole": pa.array([3.0, None], pa.float64()),
    "decimal": pa.array([decimal.Decimal("1.50"), None], pa.decimal128(5, 2)), "day": pa.array([datetime.date(2024, 2, 29), None]),
    "nothing": pa.nulls(2), "bytes": pa.array([b"\x00\x01", None]), "list": [["a"], None], "parts": [{"text": "a", "n": 1}, None]}))
write("nested.parquet", pa.table({"answers": [["a"], ["b"]], "picture": pa.array([b"\x00", b"\x01"])}))
write("no_rows.parquet", pa.table({"text": pa.array([], pa.string()), "label": pa.array([], pa.int64())}))
