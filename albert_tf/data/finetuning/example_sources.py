"""Where examples come from: a path, a URL, a folder of a data set's splits, or tables in memory."""

import dataclasses
import datetime
import decimal
import functools
import hashlib
import json
import os
import pathlib
import re
import tempfile
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from albert_tf.data.finetuning.class_labels import with_names
from albert_tf.data.finetuning.separated import check_names
from albert_tf.data.finetuning.table_format import TableFormat
from albert_tf.data.finetuning.tables import TABLE_SUFFIXES, is_table, listed, read_rows
from albert_tf.files.atomic import could_not_write
from albert_tf.files.encodings import text_lines
from albert_tf.files.origins import IN_MEMORY, name_of, where
from albert_tf.files.text import decompressed
from albert_tf.files.urls import ORIGINS, is_url, local_copy, process_folder

_ROWS_AT_ONCE = 1000
# Names of splits by role, in the order of preference; files to evaluate on have the role "dev", too.
_SPLITS = {"train": ("train",), "dev": ("validation", "valid", "val", "dev", "test")}
_NAMES = {name for names in _SPLITS.values() for name in names}
# The split in the name of a file, such as train-00000-of-00002, KorQuAD_v1.0_dev or dev-v1.1.
_SPLIT = re.compile(rf"(?:^|[-_.])({'|'.join(_NAMES)})(?:[-_.]?v?[\d.]+(?:-of-\d+)?)?$")
_SUFFIXES = (*TABLE_SUFFIXES, ".conll", ".conllu", ".bio", ".iob")
_FASTTEXT = re.compile(r"((?:__label__\S+\s+)+)(.*)")


def as_file(data: Any, role: str = "dev", table: TableFormat | None = None) -> str | os.PathLike:
    """The path of a file of examples. Tables in memory are written to a JSONL file that is removed when Python ends.

    Args:
        data: a path, also of a file compressed with gzip; a URL; a pandas or polars DataFrame; an Arrow table; a
            Dataset of Hugging Face, whose class labels are written by name; a DatasetDict, or the folder where one was
            saved, or a folder with a file for each of its splits, or of texts in a folder for each label; or an
            iterable of dicts. Missing values are null.
        role: which split is taken, `"train"` or `"dev"`: the one for evaluation, preferably "validation".
        table: how the files of a split of several are read.

    Returns:
        A path; files of tables are named after their content, so that equal tables have one file.

    Raises:
        ValueError: `data` is something else; it lacks the split; two columns of a DataFrame have the same name; or a
            value is not text, a number, a date or a list of them.
        OSError: the disk is full.
    """
    if is_url(data):
        data = local_copy(data)
    if isinstance(data, str | os.PathLike):
        if not str(data):
            raise ValueError("A path of examples must not be empty.")
        if pathlib.Path(data).is_dir():
            data = _of_folder(pathlib.Path(data), role, table or TableFormat())
        return _of_file(pathlib.Path(data), table or TableFormat()) or data
    if isinstance(data, Mapping):
        name = _split(data, role, f"The {type(data).__name__}")
        return _written(data[name], f"the split {name!r}")
    return _written(data, _name_of(data))


def _of_folder(folder: pathlib.Path, role: str, table: TableFormat) -> str | os.PathLike:
    """A data set that `datasets` saved, or the file or the shards of a split; other folders as they are."""
    if any((folder / name).is_file() for name in ("dataset_dict.json", "state.json")):
        return _saved_by_datasets(folder, role)
    files: dict[str, list[pathlib.Path]] = {}
    for path in sorted(folder.rglob("*")):
        parts, plain = path.relative_to(folder).parts, _unzipped(path)
        if (
            plain.suffix.lower() in _SUFFIXES
            and path.is_file()
            and not any(part.startswith((".", "_")) for part in parts)
        ):
            match = _SPLIT.search(plain.stem.lower())
            split = match[1] if match else parts[0].lower() if len(parts) > 1 else path.name
            files.setdefault(split if split in _NAMES else path.name, []).append(path)
    if not _NAMES & files.keys():
        return _of_classes(folder, table)
    split = _split(files, role, str(folder))
    shards = files[split]
    if (folder / split).is_dir() and all(path.suffix == ".txt" for path in shards):
        return _of_classes(folder / split, table)
    if len({(path.parent, path.suffix) for path in shards}) > 1 or (
        len(shards) > 1 and not is_table(_unzipped(shards[0]))
    ):
        raise ValueError(f"{folder} has several files of the split {split!r}: {listed(map(str, shards))}; pass one.")
    if len(shards) == 1:
        return shards[0]
    table = dataclasses.replace(table, rename={})  # columns are renamed when the rows are read again
    shards = (_of_file(path, table) or path for path in shards)
    return _written((dict(row.fields) for path in shards for row in read_rows(path, table)), f"the files of {folder}")


def _unzipped(path: pathlib.Path) -> pathlib.Path:
    """What a file is called without the suffix of gzip."""
    return path.with_suffix("") if path.suffix.lower() == ".gz" else path


def _of_classes(folder: pathlib.Path, table: TableFormat) -> pathlib.Path:
    """Texts in a folder for each label; other folders, such as those of RACE, whose texts are JSON, as they are."""
    files = sorted(folder.glob("[!._]*/*.txt"))
    if not files or next(text_lines(files[0], table.encoding), "").lstrip()[:1] in "{":
        return folder
    rows = ({"text": "".join(text_lines(file, table.encoding)), "label": file.parent.name} for file in files)
    return _written(rows, f"the files of {folder}")


def _of_file(path: pathlib.Path, table: TableFormat) -> pathlib.Path | None:
    """A file of another form as a table: one that gzip compressed, or one of fastText's lines; None for others."""
    if path.suffix.lower() == ".gz" and path.is_file():
        copy = pathlib.Path(tempfile.mkdtemp(dir=process_folder()), path.stem)
        with copy.open("wb") as file:
            file.writelines(decompressed(path))
        ORIGINS[copy] = name_of(path)
        return _of_file(copy, table) or copy
    is_text = path.suffix.lower() == ".txt" and path.is_file()
    if not is_text or not next(text_lines(path, table.encoding), "").startswith("__label__"):
        return None
    rows = (_labelled(path, *line) for line in enumerate(text_lines(path, table.encoding), start=1))
    return _written(rows, f"the lines of {name_of(path)}")


def _labelled(path: pathlib.Path, number: int, line: str) -> dict[str, Any]:
    if (match := _FASTTEXT.fullmatch(line.strip())) is None:
        raise ValueError(f"{where(path, number)}, has no label, unlike the first: begin it with __label__.")
    labels = [label.removeprefix("__label__") for label in match[1].split()]
    return {"label": labels if len(labels) > 1 else labels[0], "text": match[2]}


def _saved_by_datasets(folder: pathlib.Path, role: str) -> pathlib.Path:
    try:
        from datasets import load_from_disk
    except ImportError:
        raise ValueError(f"{folder} is a data set of `datasets`; pip install datasets to read it.") from None
    try:
        data = load_from_disk(str(folder))
    except Exception as error:  # damaged Arrow files raise errors of several libraries
        reason = " ".join(str(error).split())[:200]
        raise ValueError(f"{folder} is not a data set, or is damaged ({reason}); save it again.") from None
    if not isinstance(data, Mapping):
        return _written(data, f"the data set {folder}")
    name = _split(data, role, str(folder))
    return _written(data[name], f"the split {name!r} of {folder}")


def _split(splits: Collection[Any], role: str, where: str) -> str:
    wanted = _SPLITS.get(role, _SPLITS["dev"])
    matches = [name for name in wanted if name in splits]
    if not matches:
        raise ValueError(f"{where} has no split {' or '.join(wanted)}, only {listed(splits)}; pass one of its splits.")
    return matches[0]


def _written(data: Any, origin: str) -> pathlib.Path:
    """Writes the rows of a table in memory to a file, whose rows are then called those of `origin`."""
    content = hashlib.sha256()
    handle, name = tempfile.mkstemp(dir=process_folder())
    path = pathlib.Path(name)
    try:
        with open(handle, "wb") as file:
            for number, row in enumerate(_rows(data)):
                line = _line(row, number, origin)
                content.update(line)
                file.write(line)
        final = path.replace(path.with_name(f"{type(data).__name__}-{content.hexdigest()[:16]}.jsonl"))
    except OSError as error:
        raise could_not_write(path, error) from None
    finally:
        path.unlink(missing_ok=True)
    ORIGINS[final] = origin
    IN_MEMORY.add(final)
    return final


def _line(row: Any, number: int, origin: str) -> bytes:
    try:
        return (json.dumps(row, default=functools.partial(_plain, number, origin)) + "\n").encode()
    except (RecursionError, TypeError) as error:
        reason = "nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise ValueError(f"row {number} of {origin} cannot be written as JSON ({reason}); convert it.") from None


def _name_of(data: Any) -> str:
    known = ("DataFrame", "Dataset", "IterableDataset", "Table")
    return f"the {type(data).__name__}" if type(data).__name__ in known else "the examples"


def _rows(data: Any) -> Iterator[Any]:
    if not isinstance(data, type):
        if all(hasattr(data, name) for name in ("columns", "notna", "iloc")):
            return _pandas_rows(data)
        if hasattr(data, "features") and hasattr(data, "iter"):
            return _dataset_rows(data)
        if hasattr(data, "iter_slices"):  # polars
            return (row for part in data.iter_slices(_ROWS_AT_ONCE) for row in part.to_dicts())
        if hasattr(data, "to_batches"):  # Arrow
            check_names(f"The {type(data).__name__}", data.schema.names)
            return (row for part in data.to_batches(_ROWS_AT_ONCE) for row in part.to_pylist())
        if isinstance(data, Iterable) and not hasattr(data, "dtype"):
            return _dicts(data)
    raise ValueError(
        "Examples must be a path, a URL, a DataFrame, a Dataset, a DatasetDict or an iterable of dicts. Received: "
        f"{type(data).__name__}."
    )


def _dicts(rows: Iterable[Any]) -> Iterator[Any]:
    for number, row in enumerate(rows):
        is_pair = isinstance(row, list | tuple) and len(row) == 2 and isinstance(row[1], Mapping)  # of spaCy
        if not isinstance(row, Mapping) and not is_pair:
            raise ValueError(
                f"Examples must be dicts of columns, or a path or a table. Received: {str(row)[:40]!r} "
                f"({type(row).__name__}) as row {number}."
            )
        yield dict(row) if isinstance(row, Mapping) else list(row)


def _pandas_rows(frame: Any) -> Iterator[dict[str, Any]]:
    frame = frame.set_axis(map(str, frame.columns), axis="columns")
    check_names("The DataFrame", frame.columns)
    for start in range(0, len(frame), _ROWS_AT_ONCE):
        part = frame.iloc[start : start + _ROWS_AT_ONCE]
        yield from part.astype(object).where(part.notna(), None).to_dict("records")


def _dataset_rows(dataset: Any) -> Iterator[dict[str, Any]]:
    features = dataset.features.to_dict() if dataset.features else {}
    if getattr(dataset, "format", {}).get("type") != "custom":  # set_transform
        dataset = dataset.with_format(None)
    rows = (dict(zip(part, values)) for part in dataset.iter(_ROWS_AT_ONCE) for values in zip(*part.values()))
    for number, row in enumerate(rows):
        yield with_names(row, features, f"row {number} of the Dataset")


def _plain(number: int, origin: str, value: Any) -> Any:
    """NumPy's values as Python's, and dates and decimals as text."""
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, datetime.date | datetime.time | datetime.timedelta | decimal.Decimal):
        return str(value)
    raise ValueError(
        f"Row {number} of {origin}: a table in memory must have text, numbers, dates and lists of them. Received: "
        f"{str(value)[:40]} ({type(value).__name__}); convert that column, or leave it out."
    )
