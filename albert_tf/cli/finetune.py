"""`albert-tf finetune`: trains a task from a pretrained model."""

import sys
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from albert_tf.cli.data_options import Delimiter, Encoding, Renames, table_options
from albert_tf.cli.paths import check_exists, checkpoint_folder
from albert_tf.cli.tables import Quiet, print_scores, print_table, shown_score, wrapped
from albert_tf.files.urls import location
from albert_tf.progress import progress_line

NAME = "finetune"
KEPT = "the state of the last evaluation was kept; the same command resumes"


def _panel(panel: str, help: str, default: Any = None) -> Any:
    return typer.Option(help=help, rich_help_panel=panel, show_default=False if default is None else str(default))


_files = partial(_panel, "Files")
_task = partial(_panel, "Task")
_columns = partial(_panel, "Columns of tables")
_passages = partial(_panel, "Questions about passages")
_sentences = partial(_panel, "Sentence embeddings")
_training = partial(_panel, "Training")
_device = partial(_panel, "Devices and memory")


def run(
    pretrained: Annotated[Path | None, typer.Argument(help="Folder of a pretrained model, or its name.")] = None,
    train: Annotated[str | None, _files("Training examples: a table, folder or URL.  [required]")] = None,
    dev: Annotated[str | None, _files("Other examples, to evaluate on after each epoch.  [required]")] = None,
    output: Annotated[Path | None, _files("Folder to write; an interrupted run is resumed.  [required]")] = None,
    add_tokens: Annotated[Path | None, _files("File of tokens to add to the vocabulary, one a line.")] = None,
    recipe: Annotated[Path | None, _files("TOML file of options; those given here override it.")] = None,
    task: Annotated[str | None, _task("What to train; see above.", "sequence_classification")] = None,
    problem: Annotated[str | None, _task("classification, multi_label or regression.", "classification")] = None,
    main_score: Annotated[str | None, _task("Score that chooses the weights.", "accuracy or pearson")] = None,
    max_length: Annotated[int | None, _task("Maximum number of tokens.", "the model's")] = None,
    windows: Annotated[str | None, _task("Read long texts in windows, and join these: mean or max.")] = None,
    labels: Annotated[str | None, _task("Names of the labels or tags in order: a,b,c.", "those in the data")] = None,
    positive_label: Annotated[str | None, _task("Of two labels, the one that F1 is of.", "the second")] = None,
    text_column: Annotated[str | None, _columns("Column with the text.", "text")] = None,
    pair_column: Annotated[str | None, _columns("Column with the second text of a pair.")] = None,
    label_column: Annotated[str | None, _columns("Column with the label.", "label")] = None,
    label_columns: Annotated[str | None, _columns("Columns of 0 and 1, one for each label: a,b,c.")] = None,
    header: Annotated[bool | None, _columns("Whether the first row names the columns; else use numbers.", True)] = None,
    rename_columns: Renames = None,
    encoding: Encoding = None,
    delimiter: Delimiter = None,
    doc_stride: Annotated[int | None, _passages("Tokens between the starts of two windows.", "128 or less")] = None,
    max_question_length: Annotated[int | None, _passages("Longer questions are cut.", "64, or 128 of choices")] = None,
    max_answer_length: Annotated[int | None, _passages("Maximum number of tokens of an answer.", 30)] = None,
    scorer: Annotated[str | None, _passages("squad, or korquad, whose F1 counts characters.", "squad")] = None,
    misplaced_answers: Annotated[str | None, _passages("Answers not in passages: refuse or drop.", "refuse")] = None,
    objective: Annotated[str | None, _sentences("similarity, ranking or triplet.", "similarity")] = None,
    negative_column: Annotated[str | None, _sentences("Column of sentences that differ.")] = None,
    largest_label: Annotated[float | None, _sentences("Similarities are from 0 to this number.", 1)] = None,
    epochs: Annotated[int | None, _training("Passes over the training examples.", 3)] = None,
    batch_size: Annotated[int | None, _training("Examples per batch.", 32)] = None,
    learning_rate: Annotated[float | None, _training("Peak learning rate.", "3e-5, small models 1e-3")] = None,
    warmup_proportion: Annotated[float | None, _training("Fraction of updates for warm-up.", 0.1)] = None,
    dropout: Annotated[float | None, _training("Of hidden states and attention.", "the model's")] = None,
    head_dropout: Annotated[float | None, _training("Of the head's input.", "the model's, mostly 0.1")] = None,
    weight_decay: Annotated[float | None, _training("Weight decay, except for biases and layer norms.", 0.01)] = None,
    optimizer: Annotated[str | None, _training("adamw or lamb.", "adamw")] = None,
    num_hidden_layers: Annotated[int | None, _training("Calls of the shared block.", "the model's")] = None,
    teacher: Annotated[Path | None, _training("Fine-tuned model to imitate; by default also the start.")] = None,
    from_scratch: Annotated[bool | None, _training("Start from random weights.", False)] = None,
    freeze: Annotated[list[str] | None, _training("Parts not to train, by name: encoder; may be repeated.")] = None,
    class_weights: Annotated[str | None, _training("Weights of labels: balanced, or spam=5,ham=1.", "none")] = None,
    evaluations_per_epoch: Annotated[int | None, _training("How often to evaluate and save.", 1)] = None,
    keep: Annotated[str | None, _training("Weights to keep: best (evaluation) or last.", "best")] = None,
    patience: Annotated[int | None, _training("Evaluations without a better score before stopping.", "none")] = None,
    seeds: Annotated[int | None, _training("Number of runs, with seeds counted up.", 1)] = None,
    seed: Annotated[int | None, _training("Seed for new weights, dropout and shuffling.", 0)] = None,
    strategy: Annotated[str | None, _device("one_device, mirrored, multi_worker or tpu.", "one_device")] = None,
    dtype_policy: Annotated[str | None, _device("float32, mixed_bfloat16 or mixed_float16.", "float32")] = None,
    gradient_accumulation_steps: Annotated[int | None, _device("Parts of a batch, computed in turn.", 1)] = None,
    remat: Annotated[str | None, _device("Recompute activations: none or block.", "none")] = None,
    quiet: Quiet = False,
) -> None:
    """Trains a model on a task and writes it with its scores and predictions for the dev examples.

    Tasks: sequence_classification, token_classification, multiple_choice, question_answering,
    question_answering_beam, whose head also scores "no answer", and sentence_embedding.

    Example: albert-tf finetune model --train train.tsv --dev dev.tsv --output out

    Example: albert-tf finetune --teacher out --num-hidden-layers 6 --train train.tsv --dev dev.tsv --output fast

    Example: albert-tf finetune model --task question_answering --train train-v1.1.json --dev dev-v1.1.json --output out
    """
    _finetune(_merged(recipe, _given(locals())), seeds, not quiet)


def _merged(recipe: Path | None, given: dict[str, Any]) -> dict[str, Any]:
    """The options of the recipe and of the command line, which may not set what the recipe's grid does."""
    from albert_tf.files.json import read_toml

    read = {} if recipe is None else read_toml(recipe, "correct the recipe")
    grid = read.get("grid")
    if twice := [name for name in given if isinstance(grid, dict) and name in grid]:
        raise ValueError(f"`{twice[0]}` must not be given, because the recipe's [grid] sets it; remove one of the two.")
    return {**read, **given}


def _given(arguments: dict[str, Any]) -> dict[str, Any]:
    """The options of the run that were given on the command line."""
    if all(arguments[name] is None for name in ("pretrained", "teacher", "recipe")):
        raise ValueError("A model's folder or name must be given: albert-tf finetune MODEL --train TABLE ...")
    table = ("rename_columns", "encoding", "delimiter")
    own = ("recipe", "seeds", "quiet", *table)
    given = {name: value for name, value in arguments.items() if value not in (None, []) and name not in own}
    given |= table_options(*(arguments[name] for name in table))
    for name in {"labels", "label_columns"} & given.keys():
        given[name] = [label.strip() for label in given[name].split(",")]
    if "=" in (weights := given.get("class_weights", "")):
        given["class_weights"] = _weights_by_label(weights)
    if "remat" in given and given["remat"].isdecimal():
        given["remat"] = int(given["remat"])
    return given


def _weights_by_label(text: str) -> dict[str, float]:
    try:
        weights = [part.rsplit("=", 1) for part in text.split(",")]
        return {label.strip(): float(weight) for label, weight in weights}
    except ValueError:
        raise ValueError(
            f"`--class-weights` must be balanced, or numbers by label such as spam=5,ham=1. Received: {text}; names "
            "with a comma can be given in a recipe."
        ) from None


def _finetune(values: dict[str, Any], seeds: int | None, show_progress: bool) -> None:
    from albert_tf.files.validation import checked
    from albert_tf.trainer import FinetuneOptions

    grid = values.pop("grid", {})
    if not isinstance(grid, dict) or not all(isinstance(choices, list) and choices for choices in grid.values()):
        raise ValueError("`grid` in a recipe must be a table of lists, such as learning_rate = [1e-5, 3e-5].")
    options = checked(FinetuneOptions, values)
    if seeds is not None:
        if seeds < 1:
            raise ValueError(f"`--seeds` must be at least 1. Received: {seeds}.")
        if "seed" in grid:
            raise ValueError("Either `seed` in the recipe's grid or `--seeds` must be given. Received: both.")
        grid = {**grid, "seed": list(range(options.seed, options.seed + seeds))}
    check_exists(options.train, options.dev, *filter(None, [options.add_tokens]))
    location(options.output)  # raises if it is a URL that cannot be reached
    names = [name for name in ("pretrained", "teacher") if getattr(options, name) is not None]
    options = options.model_copy(update={name: checkpoint_folder(getattr(options, name)) for name in names})
    with progress_line("start", shown=show_progress):  # TensorFlow is imported only after the options were checked
        from albert_tf.trainer import finetune, finetune_grid

    if grid:
        _print_grid(finetune_grid(options, grid, show_progress), "seed" in grid)
    else:
        _print_report(finetune(options, show_progress))


def _print_report(report: Any) -> None:
    if report.finished_before:
        typer.echo("This run has already finished; these are its results.")
    rows = []
    if report.baseline_score is not None:
        rows.append((f"{report.main_score} of TF-IDF and a linear model", shown_score(report.baseline_score)))
    by_label = report.threshold if isinstance(report.threshold, dict) else {"": report.threshold}
    rows += [(f"threshold {name}".strip(), f"{value:.4f}") for name, value in by_label.items() if value is not None]
    rows.append((f"evaluation kept, by {report.main_score}", str(report.kept_evaluation)))
    title = f"{report.steps:,} updates"
    print_scores(title, report.scores, report.constant_score, "metrics.json", rows, report.notes)
    typer.echo(f"model in {report.folder}")


def _print_grid(reports: list[Any], has_seeds: bool) -> None:
    """Prints the score of each run and, with seeds, mean and deviation of each setting."""
    import re

    import numpy as np

    scores: dict[str, list[float]] = {}
    rows = []
    for report in reports:
        name, score = report.folder.name, report.score_by_evaluation[report.kept_evaluation - 1]
        rows.append((name, shown_score(score)))
        setting = re.sub(r"(^|_)seed-\d+", "", name).lstrip("_") if has_seeds else name
        scores.setdefault(setting, []).append(score)
    for setting, found in scores.items() if has_seeds else ():
        rows.append((f"{setting} mean".strip(), shown_score(float(np.mean(found)))))
        if len(found) > 1:
            rows.append((f"{setting} standard deviation".strip(), shown_score(float(np.std(found, ddof=1)))))
    print_table(f"{len(reports)} runs", ("run", reports[0].main_score), rows)
    if len(scores) > 1:
        means = [np.mean(found) for found in scores.values()]
        best = list(scores)[int(np.argmax(np.nan_to_num(means, nan=-np.inf)))]
        note = f"best: {best}; a score chosen among {len(scores)} is too high by chance, so confirm it on other data"
        typer.echo(wrapped(note, sys.stdout))
    for note in dict.fromkeys(note for report in reports for note in report.notes):
        typer.echo(wrapped(note, sys.stdout))
