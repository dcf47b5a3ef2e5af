"""`albert-tf predict`: predictions for texts."""

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from albert_tf.cli.paths import check_exists, existing_model
from albert_tf.cli.predict_tables import Source, compare, predict_table
from albert_tf.cli.settings import TABLE_SETTINGS, Settings, read_settings
from albert_tf.cli.tables import print_json
from albert_tf.files.urls import location
from albert_tf.inference.progress import progress_line

NAME = "predict"
# Tasks whose files are read as for fine-tuning.
_OF_FILES = ("question_answering", "token_classification", "multiple_choice")
_OF_MODELS = ("threshold", "windows")
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
    typer.Option("--format", help="Of --data -; text is one text in each line."),
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
) -> None:
    """Predicts what the model was trained for: labels, answers, entities, pieces for [MASK], or the order of segments.

    Prints a line of JSON for each text, or writes a file with a row for each row of `--data`.

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
    if data is not None and pair:
        raise ValueError("`--pair` is only for texts; with `--data`, --pair-column names the second texts.")
    if data is None and (str(output) != "-" or form is not None or options):
        raise ValueError("`--output` and the options of columns and tables are only for `--data`; leave them out.")
    if (data == "-") != (form is not None):
        raise ValueError(
            "`--format` must be given with `--data -`, and only there: text (one in each line), tsv, csv, json or "
            f"jsonl; a file's suffix tells its format. Received: --data {data}, --format {form}."
        )
    if (masked or pll) and (data is not None or (masked and pll)):
        raise ValueError("`--top` and `--targets`, or `--pll`, are for single texts, not for `--data`; leave them out.")
    location(output)  # raises if it is a URL that cannot be reached
    folder = existing_model(folder)
    if data is None:
        _predict_texts(folder, texts or [], pair or [], model_options, masked, pll)
        return
    if data != "-":
        check_exists(data)
    with progress_line("predict", shown=str(output) != "-"):  # predictions on standard output are progress enough
        count = _predict_file(folder, Source(data, form, options), output, model_options)
    if str(output) != "-":
        typer.echo(f"{count:,} predictions in {output}")


def _predict_texts(
    folder: Path, texts: list[str], pairs: list[Any], model_options: dict[str, Any], masked: dict[str, Any], pll: bool
) -> None:
    """Prints the predictions for texts."""
    with progress_line("predict"):
        from albert_tf.inference.pipeline import pipeline  # imports TensorFlow, so only after the paths were checked

        model = pipeline(folder, **model_options)
        if pairs and model.task == "multiple_choice":
            pairs = [pairs]
        if pairs and len(pairs) != len(texts):
            raise ValueError(f"`--pair` must be given once for each text. Received: {len(pairs)} for {len(texts)}.")
        if pll:
            predictions = model.pseudo_log_likelihood(texts)
        elif pairs and model.task == "sentence_embedding":
            predictions = compare(model, texts, pairs)
        else:
            predictions = model(*([texts, pairs] if pairs else [texts]), **masked)
    for text, second, prediction in zip(texts, pairs or texts, list(predictions)):
        print_json({"text": text, **({"pair": second} if pairs else {}), "prediction": prediction}, indent=None)


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
