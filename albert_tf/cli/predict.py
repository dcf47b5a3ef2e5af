"""`albert-tf predict`: predictions for texts."""

import csv
import dataclasses
import functools
import io
import itertools
import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from albert_tf.cli.data_options import Delimiter, Encoding, Renames, table_options
from albert_tf.cli.paths import check_data, existing_model
from albert_tf.cli.tables import AsJson, print_json, print_table
from albert_tf.files.urls import location
from albert_tf.progress import progress_line

if TYPE_CHECKING:
    from albert_tf.data.finetuning.tables import FilledRows

NAME = "predict"
MAX_ANSWERS = 5
ROWS_AT_ONCE = 4096
# Tasks whose files are read as for fine-tuning.
_OF_FILES = ("question_answering", "token_classification", "multiple_choice")
_TABLES = (".tsv", ".csv")
_files = functools.partial(typer.Option, rich_help_panel="Files")
_Row = tuple[str, ...]
_Columns = tuple[str | None, str | None, bool | None]  # of the text, of its pair, and whether a header names them
_Example = tuple[int, int, str, str | None]  # its number, its line, its text, the second one of a pair
_Engine = Annotated[
    Literal["keras", "tensorflow", "onnxruntime", "openvino"] | None,
    typer.Option(help="keras for weights, tensorflow for a SavedModel, the others for ONNX; default: what is there."),
]
_Precision = Annotated[
    Literal["float32", "bfloat16", "float16", "int8"] | None,
    typer.Option(help="Weights: float32 or bfloat16. ONNX: of one of its files; default: the most exact one."),
]


def run(
    folder: Annotated[Path, typer.Argument(help="Folder of a fine-tuned, pretrained or exported model, or its name.")],
    texts: Annotated[
        list[str] | None, typer.Argument(help="Texts; for a pretrained model, with [MASK] for one piece.")
    ] = None,
    pair: Annotated[
        list[str] | None,
        typer.Option(help="Second text, one for each text; the passage of a question; each choice of one context."),
    ] = None,
    data: Annotated[
        str | None,
        _files(help="Texts to label: a file (.tsv, .csv, .jsonl, ...) or URL; - is stdin; other tasks as `evaluate`."),
    ] = None,
    output: Annotated[
        Path, _files(help="File for their labels: .tsv or .csv, or .jsonl with probabilities; - is stdout.")
    ] = Path("-"),
    text_column: Annotated[str | None, _files(help="Column with the text.  [default: that of its training]")] = None,
    pair_column: Annotated[str | None, _files(help="Column with the second text of a pair.")] = None,
    header: Annotated[bool | None, _files(help="Whether the first row names the columns; else use numbers.")] = None,
    rename_columns: Renames = None,
    encoding: Encoding = None,
    delimiter: Delimiter = None,
    engine: _Engine = None,
    precision: _Precision = None,
    top: Annotated[int | None, typer.Option(help="Number of candidates for [MASK].  [default: 5]")] = None,
    targets: Annotated[str | None, typer.Option(help="Words that are the only candidates for [MASK]: a,b,c.")] = None,
    pll: Annotated[
        bool, typer.Option("--pll", help="Pseudo-log-likelihood of texts, each token masked in turn.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Predicts what the model was trained for: labels, answers, entities, pieces for [MASK], or the order of segments.

    Example: albert-tf predict runs/task "The text to label."

    Example: albert-tf predict runs/base/model "He put his hand in his [MASK]."

    Example: albert-tf predict runs/task --data test.tsv --output labels.tsv
    """
    if (data is None) == (not texts):
        raise ValueError("Either texts or `--data` must be given; pass a text in quotes, or a file.")
    columns, options = (text_column, pair_column, header), table_options(rename_columns, encoding, delimiter)
    is_default = str(output) == "-" and columns == (None, None, None) and not options
    _check_options(data is not None, as_json or bool(pair), not is_default)
    masked = {} if top is None else {"top": top}
    masked |= {} if targets is None else {"targets": [word.strip() for word in targets.split(",")]}
    if (masked and (data is not None or pll)) or (pll and (data is not None or pair)):
        raise ValueError("`--top`, `--targets` or `--pll` must be given alone, with single texts, not `--data`.")
    location(output)  # raises if it is a URL that cannot be reached
    folder, computed_by = existing_model(folder), {"engine": engine, "precision": precision}
    if data is None:
        _predict_texts(folder, texts or [], pair or [], computed_by, as_json, masked, pll)
        return
    if data != "-":
        check_data(data)
    with progress_line("predict", shown=str(output) != "-"):  # predictions on standard output are progress enough
        count = _predict_file(folder, data, output, columns, options, computed_by)
    if str(output) != "-":
        typer.echo(f"{count:,} predictions in {output}")


def _predict_texts(
    folder: Path,
    texts: list[str],
    pairs: list[str],
    computed_by: dict[str, Any],
    as_json: bool,
    masked: dict,
    pll: bool,
) -> None:
    """Prints the predictions for texts."""
    with progress_line("predict"):
        from albert_tf.inference.pipeline import pipeline  # imports TensorFlow, so only after the paths were checked

        model = pipeline(folder, **computed_by)
        _check_pairs(model.task, texts, pairs)
        ask = functools.partial(model, **masked)
        if pll:
            scores = list(zip(texts, model.model.pseudo_log_likelihood(texts)))
            found = [{"text": text, "prediction": score} for text, score in scores]
            rows = [(text, f"{score:.4f}") for text, score in scores]
            table = print_table, "", ("text", "pseudo-log-likelihood"), rows
            show = functools.partial(*((print_json, found) if as_json else table))
        elif as_json:
            show = functools.partial(print_json, _answers(model, ask, texts, pairs))
        else:
            names, given = _table(model, ask, texts, pairs)
            rows = list(given)
            marks = {"▁": "▁ begins a word", "##": "## continues one"} if "piece" in names else {}
            title = ", ".join(text for mark, text in marks.items() if any(row[-2].startswith(mark) for row in rows))
            show = functools.partial(print_table, title, names, rows, num_text_columns=len(names) - 1)
    show()


def _check_options(has_data: bool, for_texts: bool, for_data: bool) -> None:
    if has_data and for_texts:
        raise ValueError(
            "`--json` and `--pair` are only for texts; with `--data`, --output in .jsonl is JSON lines, and "
            "--pair-column names the second texts."
        )
    if not has_data and for_data:
        raise ValueError("`--output` and the options of columns and tables are only for `--data`; leave them out.")


def _check_pairs(task: str, texts: list[str], pairs: list[str]) -> None:
    if task == "multiple_choice":
        if len(texts) != 1 or len(pairs) < 2:
            raise ValueError("One text must be given, the context, and `--pair` for each of its choices; or `--data`.")
    elif pairs and len(pairs) != len(texts):
        raise ValueError(
            f"`--pair` must be given once for each text. Received: {len(texts)} texts, {len(pairs)} pairs."
        )
    elif not pairs and task == "sentence_embedding":
        raise ValueError("`--pair` must be given for each text, to compare them; --data writes embeddings.")
    elif not pairs and task == "question_answering":
        raise ValueError("`--pair` must be given for each question: the passage that has the answer.")


def _answers(model: Any, ask: Any, texts: list[str], pairs: list[str]) -> list[dict[str, Any]]:
    """The prediction for each text, with the text and its pair, if it has one."""
    if model.task == "multiple_choice":
        return [{"text": texts[0], "pair": pairs, "prediction": ask(texts[0], pairs)}]
    if model.task == "sentence_embedding":
        return [{"text": a, "pair": b, "prediction": float(c)} for a, b, c in _cosine_rows(texts, pairs, ask)]
    predictions = ask(*([texts, pairs] if pairs else [texts]))
    found = [{"text": text, "prediction": prediction} for text, prediction in zip(texts, predictions)]
    return [{**one, "pair": pair} for one, pair in zip(found, pairs)] if pairs else found


def _table(model: Any, ask: Any, texts: list[str], pairs: list[str]) -> tuple[tuple[str, ...], Iterator[_Row]]:
    """Columns and rows of the answers for some texts."""
    given = [texts, pairs] if pairs else [texts]
    if model.task == "sentence_embedding":
        return ("text", "compared with", "cosine"), _cosine_rows(texts, pairs, ask)
    if model.task == "sequence_classification":
        predictions = ask(*given)
        last = "probability" if any(prediction.probabilities for prediction in predictions) else "value"
        return (*("text", "pair")[: len(given)], "label", last), _label_rows(list(zip(*given)), predictions)
    if model.task == "question_answering":
        return ("question", "answer", "probability"), _answer_rows(texts, ask(*given))
    if model.task == "token_classification":
        return ("text", "entity", "probability"), _entity_rows(texts, ask(*given))
    if model.task == "multiple_choice":
        return ("context", "choice", "probability"), _rows((texts[0],), zip(pairs, ask(texts[0], pairs)))
    if pairs:
        return ("comes first", "comes second", "probability"), _order_rows(texts, pairs, ask(*given))
    predictions = ask(*given)
    several = any(len(masks) > 1 for masks in predictions)
    return ("text", *(("[MASK]",) if several else ()), "piece", "probability"), _piece_rows(texts, predictions, several)


def _predict_file(
    folder: Path,
    data: str,
    output: Path,
    columns: _Columns,
    options: dict[str, Any],
    computed_by: dict[str, Any],
) -> int:
    """Writes the predictions for a file; returns their number."""
    from albert_tf.inference.pipeline import pipeline

    model = pipeline(folder, **computed_by)
    if model.task not in _OF_FILES:
        return _label_file(model, data, output, *_as_trained(folder, model.task, data, columns, options))
    from albert_tf.trainer.evaluation import predict_folder

    _check_files(model.task, data, output, columns)
    return predict_folder(folder, data, output, loaded=model.model, show_progress=True, **options)


def _as_trained(
    folder: Path, task: str, data: str, columns: _Columns, options: dict[str, Any]
) -> tuple[_Columns, dict[str, Any]]:
    """The columns and the options of the table; those not given are those of the model's fine-tuning."""
    from albert_tf.files.json import read_json
    from albert_tf.trainer.run_folder import RECIPE_FILE

    if data == "-":
        if columns[1] is not None:
            raise ValueError("`--pair-column` needs a table; standard input has one text in each line.")
        return columns, options
    file = folder / RECIPE_FILE
    is_like_training = file.is_file() and task != "sentence_embedding"  # which embeds single sentences, not pairs
    recipe = read_json(file, cure="restore it, or remove it to use the defaults") if is_like_training else {}
    trained = {"text_column": "text", "pair_column": None, "header": True, **recipe}
    defaults = trained["text_column"], trained["pair_column"], trained["header"]
    chosen: list[Any] = [default if given is None else given for given, default in zip(columns, defaults)]
    text, pair, header = chosen
    renames = {theirs: ours for theirs, ours in trained.get("rename_columns", {}).items() if ours in (text, pair)}
    return (text, pair, header), {"rename_columns": renames, **options}


def _label_file(model: Any, data: str, output: Path, columns: _Columns, options: dict[str, Any]) -> int:
    """Writes the predictions for the rows of a file, some at a time; returns their number, if they go to a file."""
    is_embedding = model.task == "sentence_embedding"
    if not is_embedding and model.task != "sequence_classification":
        raise ValueError(
            "`--data` needs a model that labels or embeds texts, answers questions, finds entities or chooses; pass "
            "texts with [MASK] one by one."
        )
    if is_embedding and (output.suffix in _TABLES) == (columns[1] is None):
        raise ValueError(
            "`--output` of embeddings must be .jsonl or -, and of the similarities of pairs .tsv or .csv. Received: "
            f"{output}, pair_column={columns[1]!r}."
        )
    if output.suffix not in ("", ".tsv", ".csv", ".jsonl") or (output.suffix == "" and str(output) != "-"):
        raise ValueError(f"`--output` must end in .tsv, .csv or .jsonl, or be -. Received: {output}.")
    from albert_tf.files.atomic import atomic_open

    if data == "-":
        form, unit, examples = "", "line", _typed()
    else:
        form, unit, examples = _read(data, columns, options)
    lines = _output_lines(model, examples, output.suffix, unit)
    count = 0
    if str(output) == "-":
        sys.stdout.writelines(lines)
    else:
        with atomic_open(output) as file:
            for line in lines:
                file.write(line.encode("utf-8", "surrogatepass"))
                count += 1
    if form:
        print(form, file=sys.stderr)
    return count - (output.suffix in _TABLES)


def _parts(rows: Iterable[Any]) -> Iterator[list[Any]]:
    """The rows that are predicted at a time."""
    left = iter(rows)
    while part := list(itertools.islice(left, ROWS_AT_ONCE)):
        yield part


def _check_files(task: str, data: str, output: Path, columns: _Columns) -> None:
    if data == "-" or str(output) == "-":
        raise ValueError(f"`--data` and `--output` must be files for {task}, not standard input and output.")
    if columns != (None, None, None):
        raise ValueError(
            f"`--text-column`, `--pair-column` and `--no-header` are of tables, which {task} does not read; leave them "
            "out."
        )


def _typed() -> Iterator[_Example]:
    """The lines of standard input."""
    return ((number, number + 1, line.rstrip("\r\n"), None) for number, line in enumerate(sys.stdin))


def _read(data: str, columns: _Columns, options: dict[str, Any]) -> tuple[str, str, Iterator[_Example]]:
    """What a table was recognised as, what its rows are counted in, and its examples."""
    from albert_tf.data.finetuning.example_sources import as_file
    from albert_tf.data.finetuning.table_format import TableFormat
    from albert_tf.data.finetuning.tables import FilledRows
    from albert_tf.files.origins import unit_of

    path, header = Path(as_file(data)), columns[2] is not False
    renames = options.get("rename_columns", {})
    rows = FilledRows(path, TableFormat(header, False, options.get("encoding"), options.get("delimiter"), renames))
    count = sum(1 for _ in _examples(rows, columns))  # a damaged row is refused before any prediction
    form = ", ".join([f"{count:,} texts", *rows.describe()])
    return form, "line" if unit_of(path) == "line" else "row", _examples(rows, columns)


def _examples(rows: "FilledRows", columns: _Columns) -> Iterator[_Example]:
    """The examples of a table. Rows that are left out have numbers, too, so that numbers are those of the table."""
    text_column, pair_column = columns[0] or "text", columns[1]
    for count, row in enumerate(rows):
        pair = None if pair_column is None else row.text(pair_column, "--pair-column")
        yield count + rows.num_empty, row.line, row.text(text_column, "--text-column"), pair


def _output_lines(model: Any, examples: Iterator[_Example], suffix: str, unit: str) -> Iterator[str]:
    if suffix in _TABLES:
        yield _table_line(suffix, "index", "prediction", unit)
    for part in _parts(examples):
        texts, pairs = [text for *_, text, _ in part], [pair for *_, pair in part if pair is not None]
        for (number, line, text, _), (value, fields) in zip(part, _values(model, texts, pairs)):
            if suffix in _TABLES:
                yield _table_line(suffix, number, value, line)
            else:
                yield json.dumps({unit: line, "text": text, **fields}, ensure_ascii=False) + "\n"


def _table_line(suffix: str, *fields: Any) -> str:
    if suffix == ".tsv":  # as GLUE has it: two columns, no quotes
        return "\t".join(map(str, fields[:2])) + "\n"
    line = io.StringIO()
    csv.writer(line, lineterminator="\n").writerow(fields)
    return line.getvalue()


def _values(model: Any, texts: list[str], pairs: list[str]) -> Iterator[tuple[Any, dict[str, Any]]]:
    """For each text, what a table holds and the fields of a JSON line."""
    if model.task == "sentence_embedding" and pairs:
        for _, _, cosine in _cosine_rows(texts, pairs, model):
            yield cosine, {}
    elif model.task == "sentence_embedding":
        for embedding in model(texts):
            yield None, {"embedding": embedding.tolist()}
    else:
        for prediction in model(*([texts, pairs] if pairs else [texts])):
            fields = {name: value for name, value in dataclasses.asdict(prediction).items() if value not in (None, {})}
            label = prediction.label
            if model.model.settings.problem == "multi_label":
                label = ",".join(name for name, value in prediction.probabilities.items() if value > 0.5)
            yield prediction.score if label is None else label, fields


def _label_rows(texts: list[tuple[str, ...]], predictions) -> Iterator[_Row]:
    """Up to `MAX_ANSWERS` labels per text or pair, most probable first; or the score of a regression."""
    for text, prediction in zip(texts, predictions):
        answers = sorted(prediction.probabilities.items(), key=lambda answer: -answer[1])[:MAX_ANSWERS]
        yield from _rows(text, answers or [("score", prediction.score)])


def _cosine_rows(texts: list[str], pairs: list[str], model: Any) -> Iterator[_Row]:
    import numpy as np

    from albert_tf.metrics import cosines

    found = cosines(np.array(model(texts)), np.array(model(pairs)))
    return ((text, pair, f"{cosine:.4f}") for text, pair, cosine in zip(texts, pairs, found))


def _piece_rows(texts: list[str], predictions, several: bool) -> Iterator[_Row]:
    """The pieces for each [MASK], with its number where a text has several."""
    for text, masks in zip(texts, predictions):
        for number, mask in enumerate(masks, 1):
            place = ("" if number > 1 else text, *((str(number),) if several else ()))
            yield from _rows(place, zip(mask.pieces, mask.probabilities))


def _answer_rows(questions: list[str], predictions) -> Iterator[_Row]:
    for question, answer in zip(questions, predictions):
        yield from _rows((question,), [(answer.text or "no answer", answer.score)])


def _entity_rows(texts: list[str], predictions) -> Iterator[_Row]:
    for text, entities in zip(texts, predictions):
        found = [(f"{entity.text} ({entity.label})", entity.score) for entity in entities]
        yield from _rows((text,), found) if found else [(text, "none", "")]


def _rows(texts: tuple[str, ...], answers: Iterable[tuple[str, float]]) -> Iterator[_Row]:
    for number, (answer, value) in enumerate(answers):
        yield *(("",) * len(texts) if number else texts), answer, f"{value:.4f}"


def _order_rows(texts: list[str], pairs: list[str], probabilities: list[float]) -> Iterator[_Row]:
    for text, pair, probability in zip(texts, pairs, probabilities):
        first, second = (text, pair) if probability >= 0.5 else (pair, text)
        yield first, second, f"{max(probability, 1 - probability):.4f}"
