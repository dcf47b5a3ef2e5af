"""Files of tables and other examples for tests."""

import json
import pathlib
from typing import Any

from albert_tf.data.finetuning.example_sources import as_file


def write(path: pathlib.Path, content: str | bytes) -> pathlib.Path:
    """Writes text, which may have half of a pair of surrogates, or bytes."""
    path.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8", "surrogatepass"))
    return path


def write_rows(folder: pathlib.Path, rows: list[Any], suffix: str = "jsonl") -> pathlib.Path:
    """Writes rows to a file of this suffix, or gives them as they are in memory; "data" is JSON as SQuAD has it."""
    import datasets

    if suffix == "memory":
        return as_file(iter(rows))
    path = folder / f"a.{'json' if suffix == 'data' else suffix}"
    if suffix == "parquet":
        datasets.Dataset.from_list(rows).to_parquet(path)
        return path
    if suffix == "jsonl":
        return write(path, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
    return write(path, "\ufeff" + json.dumps(rows if suffix == "json" else {"version": 1, "data": rows}))
