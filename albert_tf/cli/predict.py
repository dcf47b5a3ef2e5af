"""`albert-tf predict`: predictions for texts."""

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from albert_tf.cli.paths import check_data, existing_model
from albert_tf.cli.predict_tables import Source, compare, predict_table
from albert_tf.cli.settings import TABLE_SETTINGS, Settings, read_settings
from albert_tf.cli.tables import AsJson, print_json, print_table
from albert_tf.files.urls import location
from albert_tf.inference.progress import progress_line

NAME = "predict"
MAX_ANSWERS = 5
# Tasks whose files are read as for fine-tuning.
_OF_FILES = ("question_answering", "token_classification", "multiple_choice")
_MASKED = ("masked_lm", "pretraining")
_LONG_PAIRS = ("question_answering", "multiple_choice")  # passages, and choices that are answers
_NUMBERS = ("cosine", "pseudo-log-likelihood")
_OF_MODELS = ("threshold", "windows")
# Tasks that need pairs, and what these are.
_PAIRS = {
    "sentence_embedding": ", to compare them; --data writes embeddings",
    "question_answering": ": the passage that has the answer",
}
_Engine = Annotated[
    Literal["keras", "tensorflow", "onnxruntime", "openvino"] | None,
    typer.Option(help="keras for weights, tensorflow for a SavedModel, the others for ONNX; default: what is there."),
]
_Precision = Annotated[
    Literal["float32", "bfloat16", "float16", "int8"] | None,
    typer.Option(help="Weights: float32 or bfloat16. ONNX: of one of its files; default: the most exact one."),
]
_Data = Annotated[
    str | None,
    typer.Option(
        help="Texts to label: a file (.tsv, .csv, .jsonl, ...) or URL; - is stdin. Other tasks as `evaluate`."
    ),
]
_Format = Annotated[
    Literal["text", "tsv", "csv", "json", "jsonl"] | None,
    typer.Option("--format", help="Of --data -; text is one text in each line.  [default: by the first line]"),
]
_Output = Annotated[
    Path, typer.Option(help="File for their labels, beside the columns: .tsv, .csv or .jsonl; - is .jsonl on stdout.")
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
    data: _Data = None,
    form: _Format = None,
    output: _Output = Path("-"),
    text_column: Annotated[str | None, typer.Option(help="Column with the text.  [default: as in training]")] = None,
    pair_column: Annotated[str | None, typer.Option(help="Column with the second text of a pair.")] = None,
    settings: Settings = None,
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

    Example: albert-tf predict runs/sentences "A man eats." --pair "Someone is eating."
    """
    if (data is None) == (not texts):
        raise ValueError("Either texts or `--data` must be given; pass a text in quotes, or a file.")
    options = read_settings(settings, (*_OF_MODELS, *TABLE_SETTINGS))
    model_options = {name: options.pop(name) for name in _OF_MODELS if name in options}
    model_options |= {"engine": engine, "precision": precision}
    columns = {"text_column": text_column, "pair_column": pair_column}
    options |= {name: column for name, column in columns.items() if column is not None}
    if options:
        from albert_tf.tasks.sequence_classification.settings import ClassificationSettings

        ClassificationSettings.validated(options)
    words = None if targets is None else [word.strip() for word in targets.split(",")]
    masked = {name: value for name, value in (("top", top), ("targets", words)) if value is not None}
    if data is not None and (as_json or pair):
        raise ValueError(
            "`--json` and `--pair` are only for texts; with `--data`, --output in .jsonl is JSON lines, and "
            "--pair-column names the second texts."
        )
    if data is None and (str(output) != "-" or form is not None or options):
        raise ValueError("`--output` and the options of columns and tables are only for `--data`; leave them out.")
    if data != "-" and form is not None:
        raise ValueError(f"`--format` is only for `--data -`; a file's suffix tells its format. Received: {data}.")
    if (masked or pll) and (data is not None or (masked and pll)):
        raise ValueError("`--top` and `--targets`, or `--pll`, are for single texts, not for `--data`; leave them out.")
    location(output)  # raises if it is a URL that cannot be reached
    folder = existing_model(folder)
    if data is None:
        _predict_texts(folder, texts or [], pair or [], model_options, as_json, masked, pll)
        return
    if data != "-":
        check_data(data)
    with progress_line("predict", shown=str(output) != "-"):  # predictions on standard output are progress enough
        count = _predict_file(folder, Source(data, form, options), output, model_options)
    if str(output) != "-":
        typer.echo(f"{count:,} predictions in {output}")


def _predict_texts(
    folder: Path,
    texts: list[str],
    pairs: list[Any],
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
        task, pairs = model.task, [pairs] if model.task == "multiple_choice" else pairs
        if pll:
            task, predictions = "pseudo-log-likelihood", model.pseudo_log_likelihood(texts)
        elif task == "sentence_embedding":
            task, predictions = "cosine", compare(model, texts, pairs)
        else:
            task = "sentence_order" if pairs and task in _MASKED else task
            predictions = model(*([texts, pairs] if pairs else [texts]), **masked)
    predictions = list(predictions)
    if as_json:
        rows = zip(texts, pairs or texts, predictions)
        print_json([{"text": a, **({"pair": b} if pairs else {}), "prediction": answer} for a, b, answer in rows])
    else:
        _print_predictions(task, texts, pairs, predictions)


def _print_predictions(task: str, texts: list[str], pairs: list[Any], predictions: list[Any]) -> None:
    """Prints a table with the answers for each text, the best one first."""
    names = ("text", "pair") if pairs and task not in _LONG_PAIRS else ("text",)
    rows = []
    for *inputs, prediction in zip(texts, pairs or texts, predictions):
        answers = _answers(task, prediction, inputs[1]) or [("none", None)]
        for number, (answer, value) in enumerate(answers):
            shown = [""] * len(names) if number else inputs[: len(names)]
            rows.append((*shown, answer, "" if value is None else f"{value:.4f}"))
    marks = {"▁": "▁ begins a word", "##": "## continues one"} if task in _MASKED else {}
    title = ", ".join(text for mark, text in marks.items() if any(mark in row[-2] for row in rows))
    is_number = task in _NUMBERS or getattr(predictions[0], "label", "") is None
    print_table(title, (*names, "prediction", "value" if is_number else "probability"), rows, len(names) + 1)


def _answers(task: str, prediction: Any, pair: Any) -> list[tuple[str, float | None]]:
    """The answers for a text with their probabilities; of a task that predicts a number, its name and the number."""
    if task == "sequence_classification":
        ranked = sorted(prediction.probabilities.items(), key=lambda answer: -answer[1])
        if hasattr(prediction, "labels"):
            return [answer for answer in ranked if answer[0] in prediction.labels]
        return ranked[:MAX_ANSWERS] or [("score", prediction.score)]
    if task == "question_answering":
        return [(prediction.text or "no answer", prediction.score)]
    if task == "token_classification":
        return [(f"{entity.text} ({entity.label})", entity.score) for entity in prediction]
    if task == "multiple_choice":
        return list(zip(pair, prediction))
    if task == "sentence_order":
        return [("text comes first", prediction) if prediction >= 0.5 else ("pair comes first", 1 - prediction)]
    if task in _MASKED:
        return [
            (piece if len(prediction) == 1 else f"{number}: {piece}", probability)
            for number, mask in enumerate(prediction, start=1)
            for piece, probability in zip(mask.pieces, mask.probabilities)
        ]
    return [(task, prediction)]


def _check_pairs(task: str, texts: list[str], pairs: list[str]) -> None:
    if task == "multiple_choice":
        if len(texts) != 1 or len(pairs) < 2:
            raise ValueError("One text must be given, the context, and `--pair` for each of its choices; or `--data`.")
    elif len(pairs) != len(texts) and (pairs or task in _PAIRS):
        raise ValueError(
            f"`--pair` must be given once for each text{_PAIRS.get(task, '')}. Received: {len(texts)} texts, "
            f"{len(pairs)} pairs."
        )


def _predict_file(folder: Path, source: Source, output: Path, model_options: dict[str, Any]) -> int:
    """Writes the predictions for a file; returns their number."""
    from albert_tf.inference.pipeline import pipeline

    model = pipeline(folder, **model_options)
    if model.task not in _OF_FILES:
        return predict_table(model, folder, source, output)
    from albert_tf.trainer.evaluation import predict_folder

    if source.data == "-" or str(output) == "-":
        raise ValueError(f"`--data` and `--output` must be files for {model.task}, not standard input and output.")
    if source.options.keys() & {"text_column", "pair_column", "header"}:
        raise ValueError(
            f"`text_column`, `pair_column` and `header` are of tables, which {model.task} does not read; leave them "
            "out."
        )
    return predict_folder(folder, source.data, output, loaded=model.model, show_progress=True, **source.options)
