"""Tables in memory: pandas' DataFrame, and the Dataset of Hugging Face's datasets."""

import atexit
import functools
import json
import os
import pathlib
import shutil
import tempfile
from collections.abc import Iterator
from typing import Any

_ROWS_AT_ONCE = 1000


def as_file(data: Any) -> str | os.PathLike:
    """The path of a file of examples. Tables in memory are written to a JSONL file that is removed when Python ends.

    Args:
        data: a path; a DataFrame; or a Dataset, whose class labels are written by name. Missing values are null.

    Raises:
        ValueError: `data` is something else, such as a DatasetDict, or two columns of a DataFrame have the same name.
    """
    if isinstance(data, str | os.PathLike):
        return data
    kind = type(data).__name__
    if hasattr(data, "to_dict") and hasattr(data, "notna"):
        rows = _frame_rows(data)
    elif hasattr(data, "features") and hasattr(data, "iter"):
        rows = _dataset_rows(data)
    else:
        raise ValueError(
            f"Examples must be a path, a pandas DataFrame or a Dataset, such as dataset['train']. Received: {kind}."
        )
    path = _folder() / f"{kind}-{len(list(_folder().iterdir())) + 1}.jsonl"
    with path.open("w", encoding="utf-8", newline="\n") as file:
        for row in rows:
            file.write(json.dumps(row, default=_plain) + "\n")
    return path


@functools.cache
def _folder() -> pathlib.Path:
    folder = tempfile.mkdtemp(prefix="albert_tf-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return pathlib.Path(folder)


def _frame_rows(frame: Any) -> Iterator[dict[str, Any]]:
    if not frame.columns.is_unique:
        repeated = frame.columns[frame.columns.duplicated()][0]
        raise ValueError(f"The DataFrame has two columns {repeated!r}; rename one of them.")
    frame = frame.set_axis(map(str, frame.columns), axis="columns")
    for start in range(0, len(frame), _ROWS_AT_ONCE):
        part = frame.iloc[start : start + _ROWS_AT_ONCE]
        yield from part.astype(object).where(part.notna(), None).to_dict("records")


def _dataset_rows(dataset: Any) -> Iterator[dict[str, Any]]:
    # Lists of labels have a feature of their own.
    features = {name: getattr(feature, "feature", feature) for name, feature in (dataset.features or {}).items()}
    names = {name: feature.names for name, feature in features.items() if hasattr(feature, "int2str")}
    for part in dataset.with_format(None).iter(_ROWS_AT_ONCE):
        for values in zip(*part.values()):
            yield {name: _named(value, names.get(name)) for name, value in zip(part, values)}


def _named(value: Any, names: list[str] | None) -> Any:
    """Class labels by name; None for the label of a row without one, -1."""
    if names is None or value is None:
        return value
    if isinstance(value, list):
        return [_named(each, names) for each in value]
    return names[value] if value >= 0 else None


def _plain(value: Any) -> Any:
    """NumPy's values as Python's, and others, such as dates, as text."""
    return value.tolist() if hasattr(value, "tolist") else str(value)
