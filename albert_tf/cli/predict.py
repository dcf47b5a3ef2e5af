"""`albert-tf predict`: predictions for texts."""

import functools
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from albert_tf.cli.data_options import Delimiter, Encoding, Renames, Threshold, table_options, threshold_option
from albert_tf.cli.paths import check_data, existing_model
from albert_tf.cli.predict_tables import Source, compare, predict_table
from albert_tf.cli.tables import AsJson, print_json, print_table
from albert_tf.files.urls import location
from albert_tf.progress import progress_line

NAME = "predict"
MAX_ANSWERS = 5
# Tasks whose files are read as for fine-tuning.
_OF_FILES = ("question_answering", "token_classification", "multiple_choice")
_files = functools.partial(typer.Option, rich_help_panel="Files")
_Row = tuple[str, ...]
_Engine = Annotated[
    Literal["keras", "tensorflow", "onnxruntime", "openvino"] | None,
    typer.Option(help="keras for weights, tensorflow for a SavedModel, the others for ONNX; default: what is there."),
]
_Windows = Annotated[
    Literal["mean", "max"] | None,
    typer.Option(help="Read long texts to label in windows, and join these.  [default: as in training]"),
]
_Precision = Annotated[
    Literal["float32", "bfloat16", "float16", "int8"] | None,
    typer.Option(help="Weights: float32 or bfloat16. ONNX: of one of its files; default: the most exact one."),
]
_Format = Annotated[
    Literal["text", "tsv", "csv", "json", "jsonl"] | None,
    _files("--format", help="Of --data -; text is one text in each line.  [default: by the first line]"),
]
_Output = Annotated[
    Path, _files(help="File for their labels, beside the columns: .tsv, .csv or .jsonl; - is .jsonl on stdout.")
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
    form: _Format = None,
    output: _Output = Path("-"),
    text_column: Annotated[str | None, _files(help="Column with the text.  [default: that of its training]")] = None,
    pair_column: Annotated[str | None, _files(help="Column with the second text of a pair.")] = None,
    header: Annotated[bool | None, _files(help="Whether the first row names the columns; else use numbers.")] = None,
    rename_columns: Renames = None,
    encoding: Encoding = None,
    delimiter: Delimiter = None,
    engine: _Engine = None,
    precision: _Precision = None,
    threshold: Threshold = None,
    windows: _Windows = None,
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

    Example: albert-tf predict runs/sentences "A man eats." --pair "Someone is eating."
    """
    if (data is None) == (not texts):
        raise ValueError("Either texts or `--data` must be given; pass a text in quotes, or a file.")
    source = Source(
        data or "", form, text_column, pair_column, header, table_options(rename_columns, encoding, delimiter)
    )
    is_default = str(output) == "-" and source == Source(data or "", None, None, None, None, {})
    _check_options(data, as_json or bool(pair), not is_default, form)
    masked = _mask_options(top, targets, data, pll)
    location(output)  # raises if it is a URL that cannot be reached
    folder = existing_model(folder)
    model_options = {"engine": engine, "precision": precision, "windows": windows, **threshold_option(threshold)}
    if data is None:
        _predict_texts(folder, texts or [], pair or [], model_options, as_json, masked, pll)
        return
    if data != "-":
        check_data(data)
    with progress_line("predict", shown=str(output) != "-"):  # predictions on standard output are progress enough
        count = _predict_file(folder, source, output, model_options)
    if str(output) != "-":
        typer.echo(f"{count:,} predictions in {output}")


def _predict_texts(
    folder: Path,
    texts: list[str],
    pairs: list[str],
    model_options: dict[str, Any],
    as_json: bool,
    masked: dict[str, Any],
    pll: bool,
) -> None:
    """Prints the predictions for texts."""
    with progress_line("predict"):
        from albert_tf.inference.pipeline import pipeline  # imports TensorFlow, so only after the paths were checked

        model = pipeline(folder, **model_options)
        _check_pairs(model.task, texts, pairs)
        ask = functools.partial(model, **masked)
        if pll:
            scores = list(zip(texts, model.model.pseudo_log_likelihood(texts)))
            objects = [{"text": text, "prediction": score} for text, score in scores]
            rows = [(text, f"{score:.4f}") for text, score in scores]
            as_table = functools.partial(print_table, "", ("text", "pseudo-log-likelihood"), rows)
            show = functools.partial(print_json, objects) if as_json else as_table
        elif as_json:
            show = functools.partial(print_json, _answers(model, ask, texts, pairs))
        else:
            names, given = _table(model, ask, texts, pairs)
            rows = list(given)
            marks = {"▁": "▁ begins a word", "##": "## continues one"} if "piece" in names else {}
            title = ", ".join(text for mark, text in marks.items() if any(row[-2].startswith(mark) for row in rows))
            show = functools.partial(print_table, title, names, rows, num_text_columns=len(names) - 1)
    show()


def _check_options(data: str | None, for_texts: bool, for_data: bool, form: str | None) -> None:
    if data is not None and for_texts:
        raise ValueError(
            "`--json` and `--pair` are only for texts; with `--data`, --output in .jsonl is JSON lines, and "
            "--pair-column names the second texts."
        )
    if data is None and for_data:
        raise ValueError("`--output` and the options of columns and tables are only for `--data`; leave them out.")
    if data != "-" and form is not None:
        raise ValueError(f"`--format` is only for `--data -`; a file's suffix tells its format. Received: {data}.")


def _mask_options(top: int | None, targets: str | None, data: str | None, pll: bool) -> dict[str, Any]:
    """The options of candidates for [MASK] that were given."""
    options: dict[str, Any] = {} if top is None else {"top": top}
    if targets is not None:
        options["targets"] = [word.strip() for word in targets.split(",")]
    if (options or pll) and (data is not None or (options and pll)):
        raise ValueError("`--top` and `--targets`, or `--pll`, are for single texts, not for `--data`; leave them out.")
    return options


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


def _predict_file(folder: Path, source: Source, output: Path, model_options: dict[str, Any]) -> int:
    """Writes the predictions for a file; returns their number."""
    from albert_tf.inference.pipeline import pipeline

    model = pipeline(folder, **model_options)
    if model.task not in _OF_FILES:
        return predict_table(model, folder, source, output)
    from albert_tf.trainer.evaluation import predict_folder

    _check_files(model.task, source, output)
    return predict_folder(folder, source.data, output, loaded=model.model, show_progress=True, **source.options)


def _check_files(task: str, source: Source, output: Path) -> None:
    if source.data == "-" or str(output) == "-":
        raise ValueError(f"`--data` and `--output` must be files for {task}, not standard input and output.")
    if (source.text_column, source.pair_column, source.header) != (None, None, None):
        raise ValueError(
            f"`--text-column`, `--pair-column` and `--no-header` are of tables, which {task} does not read; leave them "
            "out."
        )


def _label_rows(texts: list[tuple[str, ...]], predictions) -> Iterator[_Row]:
    """The labels that apply or, of models of one label, up to `MAX_ANSWERS`, most probable first; or a number."""
    for text, prediction in zip(texts, predictions):
        ranked = sorted(prediction.probabilities.items(), key=lambda answer: -answer[1])
        if hasattr(prediction, "labels"):
            answers = [answer for answer in ranked if answer[0] in prediction.labels]
            yield from _rows(text, answers) if answers else [(*text, "none", "")]
        else:
            yield from _rows(text, ranked[:MAX_ANSWERS] or [("score", prediction.score)])


def _cosine_rows(texts: list[str], pairs: list[str], model: Any) -> Iterator[_Row]:
    cosines = compare(model, texts, pairs)
    return ((text, pair, f"{cosine:.4f}") for text, pair, cosine in zip(texts, pairs, cosines))


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
