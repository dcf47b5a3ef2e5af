"""Predictions for the rows of a table or the lines of a text."""

import dataclasses
import itertools
import json
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import numpy as np

    from albert_tf.data.finetuning.table_format import TableFormat

ROWS_AT_ONCE = 4096
_Example = tuple[int, int, str, str | None]  # its number, its line, its text, the second one of a pair
_DELIMITERS = {".tsv": "\t", ".csv": ","}


class Source(NamedTuple):
    """Texts to label."""

    data: str  # a file, a folder, a URL, or - for standard input
    form: str | None  # format of standard input
    options: Mapping[str, Any]  # those of `TableSettings` that are not as in the fine-tuning of the model


def predict_table(model: Any, folder: Path, source: Source, output: Path) -> int:
    """Writes a row of predictions for each row of a table; returns their number.

    Args:
        model: Pipeline.
        folder: of the model.
        source: Source.
        output: file, or - for standard output.

    Raises:
        ValueError: model, table and output do not fit each other; the message names the row.
    """
    from albert_tf.data.finetuning.example_sources import as_file
    from albert_tf.data.finetuning.text_counts import report_together
    from albert_tf.files.atomic import atomic_open, check_output

    _check_output(model.task, output, source)
    count = 0
    with tempfile.TemporaryDirectory(prefix="albert_tf-", ignore_cleanup_errors=True) as scratch:
        path = Path("/dev/stdin" if source.data == "-" else as_file(source.data))
        if str(output) != "-":
            check_output("--output", output, source.data, path)
        form, unit, has_pairs, examples = _read(path, source, _trained(model), Path(scratch))
        lines = _lines(model, examples, output.suffix, unit, has_pairs)
        with report_together():
            if str(output) == "-":
                sys.stdout.writelines(lines)
            else:
                with atomic_open(output) as file:
                    for line in lines:
                        file.write(line.encode("utf-8", "surrogatepass"))
                        count += 1
    print(form, file=sys.stderr)
    return count - (output.suffix in _DELIMITERS)


def compare(model: Any, texts: list[str], pairs: list[str]) -> "np.ndarray":
    """Cosine similarities of the embeddings of texts and their pairs, [B]."""
    import numpy as np

    from albert_tf.data.finetuning.text_counts import report_together
    from albert_tf.metrics import cosines

    with report_together():
        return cosines(np.array(model(texts)), np.array(model(pairs)))


def _check_output(task: str, output: Path, source: Source) -> None:
    is_embedding, suffix = task == "sentence_embedding", output.suffix
    if not is_embedding and task != "sequence_classification":
        raise ValueError(
            "`--data` needs a model that labels or embeds texts, answers questions, finds entities or chooses; pass "
            "texts with [MASK] one by one."
        )
    if is_embedding and (suffix in _DELIMITERS) == ("pair_column" not in source.options):
        raise ValueError(
            "`--output` of embeddings must be .jsonl or -, and of the similarities of pairs .tsv or .csv. Received: "
            f"{output}, pair_column={source.options.get('pair_column')!r}."
        )
    if suffix not in ("", ".jsonl", *_DELIMITERS) or (suffix == "" and str(output) != "-"):
        raise ValueError(f"`--output` must end in .tsv, .csv or .jsonl, or be -. Received: {output}.")


# === Tables ===


def _read(
    path: Path, source: Source, trained: Mapping[str, Any], scratch: Path
) -> tuple[str, str, bool, Iterator[_Example]]:
    """What a table was recognised as, what its rows are counted in, whether it has pairs, and its examples."""
    from albert_tf.data.finetuning.table_format import TableFormat
    from albert_tf.data.finetuning.tables import describe_table
    from albert_tf.files.origins import unit_of

    options = {**trained, **source.options}
    path = path if source.form is None else _standard_input(source.form, source, scratch)
    if source.form == "text":
        options |= {"text_column": "text", "pair_column": None, "rename_columns": {}}
    text, pair = options["text_column"], options["pair_column"]
    renames = source.options.get("rename_columns")
    if renames is None:
        renames = {theirs: ours for theirs, ours in options["rename_columns"].items() if ours in (text, pair)}
    table = TableFormat(options["header"], False, options.get("encoding"), options.get("delimiter"), renames)
    count = sum(1 for _ in _examples(path, table, text, pair))  # a damaged row is refused before any prediction
    unit = "line" if unit_of(path) == "line" else "row"
    form = ", ".join([f"{count:,} texts", *describe_table(path, table)])
    return form, unit, pair is not None, _examples(path, table, text, pair)


def _trained(model: Any) -> dict[str, Any]:
    """The columns of the model's fine-tuning, or the defaults."""
    defaults = {"text_column": "text", "pair_column": None, "header": True, "rename_columns": {}}
    if model.task == "sentence_embedding":  # which embeds single sentences, not pairs
        return defaults
    return {name: getattr(model.model.settings, name, default) for name, default in defaults.items()}


def _examples(path: Path, table: "TableFormat", text_column: str, pair_column: str | None) -> Iterator[_Example]:
    """The examples of a table. Rows that are left out have numbers, too, so that numbers are those of the table."""
    from albert_tf.data.finetuning.tables import read_rows

    for row in read_rows(path, table):
        pair = None if pair_column is None else row.text(pair_column, "--pair-column")
        yield row.index, row.line, row.text(text_column, "--text-column"), pair


def _standard_input(form: str, source: Source, scratch: Path) -> Path:
    """Standard input as a file in a folder, with the suffix of its format; lines of text become a table in memory."""
    from albert_tf.data.finetuning.example_sources import as_file
    from albert_tf.files.encodings import text_lines
    from albert_tf.files.urls import ORIGINS

    path = scratch / f"input.{form}"
    with path.open("wb") as file:
        shutil.copyfileobj(sys.stdin.buffer, file)
    ORIGINS[path] = "standard input"
    if form != "text":
        return path
    if source.options.keys() - {"encoding"}:
        raise ValueError("`--format text` has one text in each line; leave out the options of columns and tables.")
    lines = text_lines(path, source.options.get("encoding"))
    return Path(as_file({"text": line.rstrip("\r\n")} for line in lines))


# === Predictions ===


def _lines(model: Any, examples: Iterator[_Example], suffix: str, unit: str, has_pairs: bool) -> Iterator[str]:
    from albert_tf.data.finetuning.separated import separated_line

    delimiter, settings = _DELIMITERS.get(suffix), model.model.settings
    names = ["text", "text_pair"] if has_pairs else ["text"]
    if delimiter is not None:
        yield separated_line(["index", "prediction", *_probability_names(settings), unit, *names], delimiter)
    while part := list(itertools.islice(examples, ROWS_AT_ONCE)):
        numbers, lines, *columns = zip(*part, strict=True)
        texts = [list(column) for column in columns[: len(names)]]
        is_compared = has_pairs and model.task == "sentence_embedding"
        predictions = compare(model, *texts) if is_compared else model(*texts)
        for number, line, prediction, *row in zip(numbers, lines, predictions, *texts):
            if delimiter is None:
                fields = {unit: line, **dict(zip(names, row)), **_fields(prediction)}
                yield json.dumps(fields, ensure_ascii=False) + "\n"
            else:
                yield separated_line([number, *_cells(settings, prediction), line, *row], delimiter)


def _probability_names(settings: Any) -> list[str]:
    problem = getattr(settings, "problem", None)
    if problem == "multi_label":
        return [f"probability of {label}" for label in settings.labels]
    return ["probability"] if problem == "classification" else []


def _cells(settings: Any, prediction: Any) -> list[Any]:
    """The cells of a prediction: the label, labels or number, then those of the columns `_probability_names`."""
    from albert_tf.data.finetuning.classification import join_labels
    from albert_tf.inference import ClassPrediction, LabelsPrediction

    if isinstance(prediction, LabelsPrediction):
        labels = join_labels(prediction.labels, settings.label_separator)
        return [labels, *(f"{value:.6f}" for value in prediction.probabilities.values())]
    if not isinstance(prediction, ClassPrediction):
        return [f"{prediction:.4f}"]  # a similarity
    return [prediction.score] if prediction.label is None else [prediction.label, f"{prediction.score:.6f}"]


def _fields(prediction: Any) -> dict[str, Any]:
    """A prediction in a JSON line."""
    if hasattr(prediction, "tolist"):
        return {"embedding": prediction.tolist()}
    return {name: value for name, value in dataclasses.asdict(prediction).items() if value not in (None, {})}
