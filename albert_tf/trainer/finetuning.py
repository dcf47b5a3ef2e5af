"""Fine-tuning: trains a classifier from a pretrained model and a table of labelled texts.

Letters: N examples, C classes.
"""

import dataclasses
import pathlib
import time
from typing import Any, Literal

import keras
import numpy as np
import pydantic

from albert_tf import checkpoints
from albert_tf.atomic_files import atomic_write, exclusive_lock
from albert_tf.costs import activation_values
from albert_tf.data.finetuning.classification import (
    Columns,
    EncodedTexts,
    LabelledTexts,
    encode_texts,
    read_texts,
    training_dataset,
)
from albert_tf.data.manifest import HashedFile
from albert_tf.json_files import read_json
from albert_tf.metrics import ClassificationScores, RegressionScores
from albert_tf.models import AlbertForSequenceClassification
from albert_tf.tokenization import AlbertTokenizer
from albert_tf.trainer.callbacks import MetricsLog, ProgressLine, StopAtBadLoss
from albert_tf.trainer.devices import check_memory, explain_out_of_memory
from albert_tf.trainer.evaluation import MAIN_SCORES, Evaluation, Evaluator, targets_of, write_predictions
from albert_tf.trainer.fit_loop import StopSignal, TrainingStopped, fit
from albert_tf.trainer.optimizer_recipe import OptimizerRecipe
from albert_tf.trainer.run_folder import METRICS_FILE, REPORT_FILE, check_folder, write_recipe
from albert_tf.trainer.throughput import SpeedLog

PREDICTIONS_FILE = "dev_predictions.tsv"


class FinetuneOptions(pydantic.BaseModel):
    """One fine-tuning run.

    The defaults suit base and large models and a few thousand examples. The largest models need lower learning rates
    (1e-5), very small ones higher rates (1e-3) and more epochs.

    Args:
        pretrained: folder with a checkpoint of any format and its vocabulary.
        train: table of training examples; see `albert_tf.data.finetuning.tables` for the file formats.
        dev: table of examples to evaluate on.
        output: folder to write.
        from_scratch: use only config and vocabulary of `pretrained`, not its weights, as a baseline.
        text_column, pair_column, label_column: columns of both tables; `pair_column` is for pairs of texts.
        header: whether the first row names the columns; otherwise columns are numbers from 0.
        problem: `"classification"`, or `"regression"` if labels are numbers.
        labels: class names in order of their ids. None: the labels in `train`, sorted.
        epochs: passes over `train`.
        batch_size: examples per update.
        learning_rate: the peak, followed by linear decay to 0.
        warmup_proportion: fraction of all updates for linear warm-up.
        weight_decay: biases and layer normalisation are excluded.
        learning_rate_rules: pairs of a regular expression and a learning rate factor. The first expression found in a
            variable's path decides; together they must cover every variable. None: one rate for all.
        optimizer: `"adamw"` or `"lamb"`.
        max_length: maximum number of ids; longer texts are truncated. None: the model's maximum.
        keep: whether to keep the weights of the epoch with the best score on `dev`, or the last ones.
        seed: for new weights, dropout and the order of examples.
    """

    model_config = pydantic.ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    pretrained: pathlib.Path
    train: pathlib.Path
    dev: pathlib.Path
    output: pathlib.Path
    from_scratch: bool = False
    text_column: str = "text"
    pair_column: str | None = None
    label_column: str = "label"
    header: bool = True
    problem: Literal["classification", "regression"] = "classification"
    labels: tuple[str, ...] | None = None
    epochs: int = pydantic.Field(default=3, ge=1)
    batch_size: int = pydantic.Field(default=32, ge=1)
    learning_rate: float = pydantic.Field(default=3e-5, gt=0)
    warmup_proportion: float = pydantic.Field(default=0.1, ge=0, lt=1)
    weight_decay: float = pydantic.Field(default=0.01, ge=0)
    learning_rate_rules: tuple[tuple[str, float], ...] | None = None
    optimizer: Literal["adamw", "lamb"] = "adamw"
    max_length: int | None = pydantic.Field(default=None, ge=3)
    keep: Literal["best", "last"] = "best"
    seed: int = pydantic.Field(default=0, ge=0, lt=2**32)

    @property
    def columns(self) -> Columns:
        """The columns to read from both tables."""
        return Columns(self.text_column, self.pair_column, self.label_column, self.header)


class FinetuneReport(pydantic.BaseModel):
    """Result of a run.

    Attributes:
        folder: model and tokenizer in Hugging Face layout, `recipe.json`, this report as `metrics.json`,
            `metrics.jsonl` with one line per epoch, and `dev_predictions.tsv`.
        scores: on `dev`, with the weights that were kept.
        main_score: name of the score that epochs are compared by.
        score_by_epoch: the main score after each epoch.
        kept_epoch: epoch of the weights that were kept, counted from 1.
        majority_share: fraction of `dev` with the most frequent label, the accuracy of a constant prediction; None for
            regression.
        full_share: fraction of training texts that fill `max_length`, most of them truncated.
        train_examples, dev_examples: number of examples.
        steps: number of updates.
        seconds: wall time of training and evaluation.
        finished_before: whether the run was already finished, so that its report was only read.
    """

    model_config = pydantic.ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="strings")

    folder: pathlib.Path
    scores: ClassificationScores | RegressionScores
    main_score: str
    score_by_epoch: tuple[float, ...]
    kept_epoch: int
    majority_share: float | None
    full_share: float
    train_examples: int
    dev_examples: int
    steps: int
    seconds: float
    finished_before: bool = False


def finetune(options: FinetuneOptions, show_progress: bool = False) -> FinetuneReport:
    """Trains a classifier on `options.train`, evaluates it on `options.dev` after each epoch and writes its folder.

    Args:
        options: FinetuneOptions.
        show_progress: whether to show a progress bar on stderr.

    Returns:
        FinetuneReport. If the folder already holds the same run, finished, its report is returned.

    Raises:
        ValueError: tables, vocabulary, checkpoint and options do not match; the folder belongs to another run, or
            another process is writing to it; or the loss is not finite.
        TrainingStopped: SIGTERM or Ctrl-C was received before the last update; no weights are written.
        RuntimeError: a step does not fit in memory.
    """
    keras.utils.set_random_seed(options.seed)
    train, dev = read_texts(options.train, options.columns), read_texts(options.dev, options.columns)
    model, tokenizer = _model(options, train), AlbertTokenizer.from_pretrained(_vocabulary_folder(options.pretrained))
    max_length = _max_length(options, model, tokenizer)
    run = _Run(options, model, tokenizer, max_length, train, dev)
    labels, dev_labels = (targets_of(model, texts) for texts in (train, dev))
    with exclusive_lock(options.output):
        recipe = _recipe(options, model, tokenizer, max_length)
        check_folder(options.output, recipe)
        if (options.output / REPORT_FILE).exists():
            return _read_report(options.output)
        return _train(run, recipe, labels, dev_labels, show_progress)


@dataclasses.dataclass(frozen=True)
class _Run:
    """The inputs of a run."""

    options: FinetuneOptions
    model: AlbertForSequenceClassification
    tokenizer: AlbertTokenizer
    max_length: int
    train: LabelledTexts
    dev: LabelledTexts

    def encode(self, texts: LabelledTexts) -> EncodedTexts:
        return encode_texts(self.tokenizer, texts.texts, texts.pairs, self.max_length)


def _train(
    run: _Run, recipe: dict[str, Any], labels: np.ndarray, dev_labels: np.ndarray, show_progress: bool
) -> FinetuneReport:
    begun = time.monotonic()
    options, model = run.options, run.model
    encoded = run.encode(run.train)
    rows, length = min(options.batch_size, len(encoded)), round(encoded.lengths.mean())
    check_memory(options.batch_size, rows * activation_values(model.config, length, num_predictions=0))
    selection = _Selection(Evaluator(model, run.encode(run.dev), dev_labels), options.keep)
    write_recipe(options.output, recipe)
    with StopSignal() as signals, explain_out_of_memory(options.batch_size):
        steps = _fit(options, model, encoded, labels, selection, signals, show_progress)
        kept = selection.kept
        model.set_weights(kept.weights)
        report = FinetuneReport(
            folder=options.output,
            scores=kept.evaluation.scores,
            main_score=MAIN_SCORES[model.problem],
            score_by_epoch=tuple(selection.history),
            kept_epoch=kept.epoch,
            majority_share=kept.evaluation.majority_share,
            full_share=float(np.mean(encoded.lengths == run.max_length)),
            train_examples=len(run.train),
            dev_examples=len(run.dev),
            steps=steps,
            seconds=round(time.monotonic() - begun, 3),
        )
        model.save_pretrained(options.output)
        run.tokenizer.save_pretrained(options.output)
        write_predictions(options.output / PREDICTIONS_FILE, run.dev, kept.evaluation)
        # Written last: its presence marks the run as finished.
        atomic_write(options.output / REPORT_FILE, (report.model_dump_json(indent=2) + "\n").encode())
    return report


def _fit(
    options: FinetuneOptions,
    model: AlbertForSequenceClassification,
    encoded: EncodedTexts,
    labels: np.ndarray,
    selection: "_Selection",
    signals: StopSignal,
    show_progress: bool,
) -> int:
    steps_per_epoch = -(-len(encoded) // options.batch_size)
    steps = steps_per_epoch * options.epochs
    optimizer = OptimizerRecipe(
        name=options.optimizer,
        learning_rate=options.learning_rate,
        num_warmup_steps=round(options.warmup_proportion * steps),
        weight_decay=options.weight_decay,
        learning_rate_rules=options.learning_rate_rules,
    )
    # XLA would recompile the step for every batch length.
    model.compile(optimizer.build(steps, options.batch_size), jit_compile=False)
    tokens_per_step = round(encoded.lengths.mean() * options.batch_size)
    callbacks: list[Any] = [_StopOnSignal(signals, steps), StopAtBadLoss(), SpeedLog(tokens_per_step), selection]
    callbacks.append(MetricsLog(options.output / METRICS_FILE))
    if show_progress:
        callbacks.append(ProgressLine("finetune", steps, tokens_per_step, lines_every=max(1, steps // 20)))
    data = training_dataset(encoded, labels, options.batch_size, options.seed, options.epochs)
    fit(model, data, callbacks, epochs=options.epochs, steps_per_epoch=steps_per_epoch)
    return steps


class _StopOnSignal(keras.callbacks.Callback):
    """Stops training before the next update once a signal was received."""

    def __init__(self, signals: StopSignal, steps: int):
        super().__init__()
        self.signals, self.steps = signals, steps

    def on_train_batch_begin(self, batch, logs=None):
        if self.signals.received:
            step = int(self.model.optimizer.iterations.numpy())
            raise TrainingStopped(
                f"Interrupted at step {step:,} of {self.steps:,}; no weights were written, and the same command starts "
                "from step 0."
            )


@dataclasses.dataclass(frozen=True)
class _Kept:
    epoch: int
    evaluation: Evaluation
    weights: list[np.ndarray]


class _Selection(keras.callbacks.Callback):
    """Evaluates the model after each epoch and keeps the weights of the best one, or of the last."""

    def __init__(self, evaluator: Evaluator, keep: str):
        super().__init__()
        self.evaluator, self.keep = evaluator, keep
        self.history: list[float] = []

    def on_epoch_end(self, epoch, logs=None):
        evaluation = self.evaluator.run()
        score = evaluation.main_score
        if logs is not None:
            logs[f"val_{MAIN_SCORES[evaluation.problem]}"] = score
        # Pearson's correlation is NaN if all predictions are equal; any number is better.
        best = np.nanmax([-np.inf, *self.history])
        if not self.history or self.keep == "last" or score > best:
            self.kept = _Kept(epoch + 1, evaluation, self.evaluator.model.get_weights())
        self.history.append(score)


def _model(options: FinetuneOptions, train: LabelledTexts) -> AlbertForSequenceClassification:
    if options.problem == "regression":
        head = {"num_labels": 1, "problem": "regression", "labels": None}
    else:
        names = train.label_names() if options.labels is None else options.labels
        if len(names) < 2:
            raise ValueError(
                f"A classifier must have at least two labels. Received: {list(names)} for {options.train}."
            )
        head = {"problem": "classification", "labels": names}
    if options.from_scratch:
        return AlbertForSequenceClassification(checkpoints.read(options.pretrained).config, **head)
    return AlbertForSequenceClassification.from_pretrained(options.pretrained, new_head=True, **head)


def _vocabulary_folder(pretrained: pathlib.Path) -> pathlib.Path:
    return pretrained if pretrained.is_dir() else pretrained.parent  # `pretrained` may be a checkpoint's prefix


def _max_length(options: FinetuneOptions, model: AlbertForSequenceClassification, tokenizer: AlbertTokenizer) -> int:
    config = model.config
    tokenizer.check_fits(config.vocab_size)
    if options.max_length is not None and options.max_length > config.max_position_embeddings:
        raise ValueError(
            f"`max_length` must not exceed the model's `max_position_embeddings`. Received: "
            f"max_length={options.max_length}, max_position_embeddings={config.max_position_embeddings}."
        )
    return options.max_length or config.max_position_embeddings


def _recipe(
    options: FinetuneOptions, model: AlbertForSequenceClassification, tokenizer: AlbertTokenizer, max_length: int
) -> dict[str, Any]:
    """All options, with hashes instead of file names, so that the recipe does not depend on paths."""
    values = options.model_dump(mode="json", exclude={"output", "pretrained", "train", "dev"})
    files = {name: HashedFile.of(getattr(options, name)).model_dump() for name in ("train", "dev")}
    started_from = {
        "config": model.config.to_dict(),
        "weights_sha256": checkpoints.digest(
            {path: variable.numpy() for path, variable in model.variables_by_path().items()}
        ),
        "vocab_hash": tokenizer.vocab_hash,
    }
    return {**values, **files, "labels": model.labels, "max_length": max_length, "pretrained": started_from}


def _read_report(folder: pathlib.Path) -> FinetuneReport:
    cure = "remove it to train again"
    values = read_json(folder / REPORT_FILE, cure=cure)
    try:
        report = FinetuneReport.model_validate(values)
    except pydantic.ValidationError:
        raise ValueError(f"{folder / REPORT_FILE} is not the report of a fine-tuning run; {cure}.") from None
    return report.model_copy(update={"finished_before": True, "folder": folder})
