"""Tables in memory: pandas' DataFrame, and the Dataset of Hugging Face's datasets."""

import datetime
import decimal
import functools
import hashlib
import json
import os
import pathlib
import tempfile
from collections.abc import Iterator
from typing import Any

from albert_tf.files.atomic import could_not_write

_ROWS_AT_ONCE = 1000


def as_file(data: Any) -> str | os.PathLike:
    """The path of a file of examples. Tables in memory are written to a JSONL file that is removed when Python ends.

    Args:
        data: a path; a DataFrame; or a Dataset, whose class labels are written by name. Missing values are null.

    Returns:
        A path; files of tables are named after their content, so that equal tables have one file.

    Raises:
        ValueError: `data` is something else, such as a DatasetDict; two columns of a DataFrame have the same name; or
            a value is not text, a number, a date or a list of them.
        OSError: the disk is full.
    """
    if isinstance(data, str | os.PathLike):
        return data
    content = hashlib.sha256()
    handle, name = tempfile.mkstemp(dir=_folder().name)
    path = pathlib.Path(name)
    try:
        with open(handle, "wb") as file:
            for row in _rows(data):
                line = (json.dumps(row, default=_plain) + "\n").encode()
                content.update(line)
                file.write(line)
        return path.replace(path.with_name(f"{type(data).__name__}-{content.hexdigest()[:16]}.jsonl"))
    except OSError as error:
        raise could_not_write(path, error) from None
    finally:
        path.unlink(missing_ok=True)


@functools.cache
def _folder() -> tempfile.TemporaryDirectory:
    return tempfile.TemporaryDirectory(prefix="albert_tf-", ignore_cleanup_errors=True)


def _rows(data: Any) -> Iterator[dict[str, Any]]:
    if all(hasattr(data, name) for name in ("columns", "notna", "iloc")) and not isinstance(data, type):
        return _frame_rows(data)
    if hasattr(data, "features") and hasattr(data, "iter"):
        return _dataset_rows(data)
    raise ValueError(
        "Examples must be a path, a pandas DataFrame or a Dataset, such as dataset['train']. Received: "
        f"{type(data).__name__}."
    )


def _frame_rows(frame: Any) -> Iterator[dict[str, Any]]:
    frame = frame.set_axis(map(str, frame.columns), axis="columns")
    if not frame.columns.is_unique:
        repeated = frame.columns[frame.columns.duplicated()][0]
        raise ValueError(f"The DataFrame has two columns {repeated!r}; rename one of them.")
    for start in range(0, len(frame), _ROWS_AT_ONCE):
        part = frame.iloc[start : start + _ROWS_AT_ONCE]
        yield from part.astype(object).where(part.notna(), None).to_dict("records")


def _dataset_rows(dataset: Any) -> Iterator[dict[str, Any]]:
    features = dataset.features or {}
    if getattr(dataset, "format", {}).get("type") != "custom":  # set_transform
        dataset = dataset.with_format(None)
    for part in dataset.iter(_ROWS_AT_ONCE):
        for values in zip(*part.values()):
            yield {name: _named(value, features.get(name)) for name, value in zip(part, values)}


def _named(value: Any, feature: Any) -> Any:
    """A value with its class labels by name; None for the label of a row without one, -1."""
    if value is None or isinstance(value, str):
        return value
    if hasattr(feature, "int2str"):
        return feature.names[value] if value >= 0 else None
    if isinstance(feature, dict) and isinstance(value, dict):
        return {name: _named(each, feature.get(name)) for name, each in value.items()}
    if isinstance(value, list):
        inner = feature[0] if isinstance(feature, list) else getattr(feature, "feature", None)
        return [_named(each, inner) for each in value]
    return value


def _plain(value: Any) -> Any:
    """NumPy's values as Python's, and dates and decimals as text."""
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, datetime.date | datetime.time | datetime.timedelta | decimal.Decimal):
        return str(value)
    raise ValueError(
        f"A table in memory must have text, numbers, dates and lists of them. Received: {str(value)[:40]} "
        f"({type(value).__name__}); convert that column, or leave it out."
    )
