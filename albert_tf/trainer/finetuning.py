"""Fine-tuning: trains a task from a pretrained model and a file of examples, resumes, and keeps the best weights."""

import contextlib
import dataclasses
import math
import pathlib
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import keras
import numpy as np

from albert_tf.checkpoints.checkpoint import digest
from albert_tf.costs import activation_values
from albert_tf.data.finetuning.batches import LastBatch, TrainingExamples, steps_per_epoch, training_dataset
from albert_tf.data.finetuning.text_counts import TextCounts, count_texts
from albert_tf.files.atomic import exclusive_lock, write_json
from albert_tf.files.hub import model_folder
from albert_tf.files.json import finite, has_file
from albert_tf.files.origins import name_of
from albert_tf.files.urls import location
from albert_tf.inference.folder import ModelFolder
from albert_tf.layers.kernels import runs_on_cpu
from albert_tf.layers.seeds import seeded
from albert_tf.models.base import AlbertBase
from albert_tf.models.task_settings import facts_of
from albert_tf.optimizers.rules import assign_rules
from albert_tf.tasks.learned import Evaluation, LearnedTask, learned_task
from albert_tf.tasks.settings import write_settings
from albert_tf.tokenization import AlbertTokenizer
from albert_tf.trainer.callbacks import MetricsLog, ProgressLine, SaveState, StopAtBadLoss
from albert_tf.trainer.checkpoint_files import latest_valid_checkpoint
from albert_tf.trainer.devices import Devices, connect, explain_out_of_memory
from albert_tf.trainer.finetune_callbacks import Evaluate, FirstTenth, index_of_best, is_exhausted
from albert_tf.trainer.finetune_report import FinetuneReport, read_report
from albert_tf.trainer.fit_loop import FitLoop, TrainingStopped, removed_at_end
from albert_tf.trainer.optimizer_recipe import OptimizerRecipe
from albert_tf.trainer.recipe import MAX_COUNT, TrainingRecipe
from albert_tf.trainer.run_folder import (
    CHECKPOINTS_FOLDER,
    IDS_FOLDER,
    LOGS_FOLDER,
    METRICS_FILE,
    REPORT_FILE,
    check_folder,
    identity,
    read_metrics,
    run_folder,
    write_recipe,
)
from albert_tf.trainer.run_state import TrainingState
from albert_tf.trainer.starting_model import LARGE, default_rate, load_teacher, load_tokenizer, make_model, max_length
from albert_tf.trainer.task_options import FinetuneOptions
from albert_tf.trainer.tensorboard import TensorBoardLog
from albert_tf.trainer.throughput import SpeedLog

_RESULTS = ("threshold", "no_answer_threshold")  # settings that are chosen on the examples to evaluate on


def finetune(options: FinetuneOptions, show_progress: bool = False) -> FinetuneReport:
    """Trains a model on `options.train`, evaluates it on `options.dev` and writes its folder.

    A run that was interrupted or killed is resumed by the same call, from its last evaluation, or on SIGTERM and Ctrl-C
    from the current step, and ends with the same bits on one device.

    Args:
        options: FinetuneOptions.
        show_progress: whether to show a progress bar on stderr.

    Returns:
        FinetuneReport. If the folder already holds the same run, finished, its report is returned.

    Raises:
        ValueError: files, vocabulary, checkpoint and options do not match; the folder belongs to another run, or
            another process is writing to it; or the loss is not finite.
        TrainingStopped: SIGTERM or Ctrl-C was received before the last update; the state of the run was saved.
        RuntimeError: a step does not fit in memory.
    """
    output = location(options.output)
    models = {name: model_folder(path) for name in ("pretrained", "teacher") if (path := getattr(options, name))}
    devices = connect(options.strategy)
    with run_folder(output, devices.is_chief) as folder:
        options = options.model_copy(update={**models, "output": folder})
        report = _finetune_on(devices, options, show_progress)
    return report.model_copy(update={"folder": output})


def _finetune_on(devices: Devices, options: FinetuneOptions, show_progress: bool) -> FinetuneReport:
    kind: Any = learned_task(options.task)
    task = kind(None, options.settings)
    train, dev = task.read(options.train), task.read_dev(options.dev)
    arguments = task.model_arguments(train)
    keras.utils.set_random_seed(options.seed)
    with devices.strategy.scope():
        with seeded(options.seed):
            model = make_model(options, arguments)
        options = options.model_copy(update={"learning_rate": options.learning_rate or default_rate(model.config)})
        tokenizer = load_tokenizer(options)
        teacher = load_teacher(options, model, tokenizer)
    learnt = {"max_length": max_length(options, model, tokenizer), **task.learnt_settings(train)}
    options = options.model_copy(update=learnt)
    task = kind(tokenizer, task.settings.with_facts(**{**facts_of(model), "task": options.task, **learnt}))
    task.stored_ids = options.output / IDS_FOLDER
    with contextlib.ExitStack() as stack:
        if devices.is_chief:
            stack.enter_context(exclusive_lock(options.output))
        recipe = _recipe(options, arguments, model, tokenizer, teacher)
        check_folder(options.output, recipe)
        if devices.is_chief:
            stack.enter_context(removed_at_end(options.output / IDS_FOLDER))
        stack.enter_context(devices.explain_worker_failure())
        saved = latest_valid_checkpoint(options.output / CHECKPOINTS_FOLDER)
        devices.check_agreement({"recipe": recipe, "checkpoint": None if saved is None else saved.metadata})
        if has_file(options.output / REPORT_FILE):
            return read_report(options.output)
        stack.enter_context(explain_out_of_memory(options.batch_size))
        if show_progress:
            print(f"train: {train.form}\ndev: {dev.form}", file=sys.stderr)
            if options.freeze:
                frozen = model.count_params() - sum(math.prod(v.shape) for v in model.trainable_variables)
                print(f"frozen: {frozen:,} of {model.count_params():,} weights", file=sys.stderr)
        with count_texts() as of_dev:
            current = ModelFolder(tokenizer, task.settings, model=model, traces_first=True)
            evaluate = task.evaluator(current.compute, dev)
        with count_texts() as of_train:
            examples = task.training_examples(train)
        counts = {"train": of_train, "dev": of_dev}
        run = _FinetuneRun(options, task, devices, model, teacher, recipe, examples, evaluate, counts)
        return run.finish(tokenizer, train, dev, run.train(show_progress))


@dataclasses.dataclass(frozen=True)
class _FinetuneRun:
    """The parts of a run."""

    options: FinetuneOptions
    task: LearnedTask
    devices: Devices
    model: AlbertBase
    teacher: AlbertBase | None
    recipe: dict[str, Any]
    examples: TrainingExamples
    evaluate: Callable[[], Evaluation]
    counts: Mapping[str, TextCounts]
    begun: float = dataclasses.field(default_factory=time.monotonic)
    evaluations: dict[int, Evaluation] = dataclasses.field(default_factory=dict)  # by number, the last and the best one
    first_losses: list[float] = dataclasses.field(default_factory=list)

    @property
    def last_batch(self) -> LastBatch:
        """What becomes of an epoch's last batch; equal parts, and few shapes for XLA, need full batches."""
        is_divided = self.devices.strategy.num_replicas_in_sync * self.options.gradient_accumulation_steps > 1
        # A teacher is imitated on all rows, and rows are compared with each other in the ranking of sentences.
        if self.teacher is not None or getattr(self.model, "objective", "") == "ranking":
            return "dropped" if is_divided else "short"
        return "filled" if is_divided or not runs_on_cpu() else "short"

    @property
    def training(self) -> TrainingRecipe:
        """Length and intervals; an interval ends with an evaluation."""
        options = self.options
        steps = steps_per_epoch(len(self.examples.lengths), options.batch_size, self.last_batch)
        interval = -(-steps // options.evaluations_per_epoch)
        total = -(-steps * options.epochs // interval) * interval
        if total >= MAX_COUNT:
            raise ValueError(
                f"`epochs` must give less than {MAX_COUNT:,} updates. Received: epochs={options.epochs:,}."
            )
        return TrainingRecipe(
            num_train_steps=total,
            batch_size=options.batch_size,
            gradient_accumulation_steps=options.gradient_accumulation_steps,
            log_every=interval,
            evaluate_every=interval,
            save_every=interval,
            keep_checkpoints=1,
            best_metric=self.task.main_score,
            dtype_policy=options.dtype_policy,
            remat=options.remat,
        )

    def train(self, show_progress: bool) -> TrainingState:
        """Trains to the end; raises TrainingStopped if interrupted."""
        options, training, model = self.options, self.training, self.model
        lengths, sequences = self.examples.lengths, getattr(self.examples, "num_choices", 1)
        has_scores = self.devices.keeps_scores(training.dtype_policy)
        values = activation_values(model.config, round(lengths.mean()), 0, has_scores) * sequences
        self.devices.check_memory(training, values * min(1.0, len(lengths) / options.batch_size))
        if self.devices.is_chief:
            write_recipe(options.output, self.recipe)
        with self.devices.strategy.scope():
            model.compile(
                _optimizer(options, training.num_train_steps),
                gradient_accumulation_steps=training.gradient_accumulation_steps,
                remat=training.remat,
                jit_compile=options.jit_compile,
                teacher=self.teacher,
            )
            folder, metrics_file = options.output / CHECKPOINTS_FOLDER, options.output / METRICS_FILE
            state = TrainingState(folder, model, training, {"recipe": self.recipe}, metrics_file, higher_is_better=True)
            state.restore(latest_valid_checkpoint(folder))
        rows = len(lengths) / steps_per_epoch(len(lengths), options.batch_size, self.last_batch)
        tokens_per_step = round(lengths.mean() * min(options.batch_size, rows) * sequences)  # without copies
        history = self.scores()[: state.step // training.log_every]
        callbacks: list[Any] = [
            StopAtBadLoss(cure="give another output folder"),
            SpeedLog(tokens_per_step),
            Evaluate(self, history),
        ]
        if 100 <= training.num_train_steps == training.log_every and not state.step:  # fewer losses are noise
            callbacks.append(FirstTenth(training.num_train_steps, self.first_losses))
        if self.devices.is_chief:
            callbacks += [
                MetricsLog(metrics_file, state.metrics_lines),
                TensorBoardLog(options.output / LOGS_FOLDER),
                SaveState(state, training),
            ]
            if show_progress:
                every = max(1, training.num_train_steps // 20)
                callbacks.append(ProgressLine("finetune", training.num_train_steps, tokens_per_step, every))
        if not is_exhausted(history, options.patience):
            FitLoop(state, training, self.devices, callbacks).run(self._data(state.step), self._data, None)
        if state.step < training.num_train_steps and not is_exhausted(history, options.patience):
            raise TrainingStopped(state.step, state.stopped_by)
        return state

    def finish(self, tokenizer: AlbertTokenizer, train: Any, dev: Any, state: TrainingState) -> FinetuneReport:
        """Writes the model with the weights to keep, and the report."""
        options, history, steps = self.options, self.scores(), state.step
        if len(history) * self.training.log_every != steps:
            raise ValueError(
                f"{options.output / METRICS_FILE} lacks evaluations of the run; restore it from a copy, or give "
                "another output folder."
            )
        best_index = len(history) - 1
        if options.keep == "best" and not all(map(math.isnan, history)):
            best_index = index_of_best(history)
            best = state.writer.checkpoint((best_index + 1) * self.training.log_every)
            problem = "it was not found" if best is None else best.corruption()
            if problem is not None:
                raise ValueError(
                    f"The best weights, of evaluation {best_index + 1}, cannot be restored: {problem}. Restore the "
                    "checkpoint from a copy, or give another output folder."
                )
            state.restore(best)
        evaluation = self.evaluations.get(best_index) or self.evaluate()
        results: dict[str, Any] = {name: getattr(evaluation, name, None) for name in _RESULTS}
        report = FinetuneReport(
            folder=pathlib.Path(name_of(options.output)),
            scores=evaluation.scores,
            main_score=self.task.main_score,
            score_by_evaluation=tuple(history),
            kept_evaluation=best_index + 1,
            constant_score=evaluation.constant_score,
            **results,
            tags_words=self.options.tag_words,
            cut_examples=self.counts["train"].cut,
            train_examples=len(train),
            dev_examples=len(dev),
            steps=steps,
            trained_parameters=self.trained_parameters,
            notes=tuple(self._notes(train, dev, evaluation)),
            seconds=round(time.monotonic() - self.begun, 3),
        )
        if self.devices.is_chief:
            self.model.save_pretrained(options.output)
            tokenizer.save_pretrained(options.output)
            write_settings(options.output, self.task.settings.with_facts(**results))
            self.task.write_predictions(options.output / self.task.predictions_file, dev, evaluation)
            # Written last: its presence marks the run as finished.
            write_json(options.output / REPORT_FILE, finite(report.model_dump(), str), ensure_ascii=False)
            shutil.rmtree(options.output / CHECKPOINTS_FOLDER)
        self.devices.barrier()
        return report

    @property
    def trained_parameters(self) -> int:
        """Number of weights that have a learning rate."""
        variables, rules = self.model.trainable_variables, self.options.learning_rate_rules or [(".*", 1.0)]
        factors = assign_rules(rules, [variable.path for variable in variables])
        return sum(math.prod(variable.shape) for variable in variables if factors[variable.path])

    def scores(self) -> list[float]:
        """The main score at each evaluation so far."""
        return [entry[f"val_{self.task.main_score}"] for entry in read_metrics(self.options.output / METRICS_FILE)]

    def _notes(self, train: Any, dev: Any, evaluation: Evaluation) -> Iterator[str]:
        yield from self.task.notes(train)
        for name, counts in self.counts.items():
            yield from (f"{name}: {sentence}" for sentence in counts.sentences())
        yield from evaluation.notes
        train_keys, dev_keys = (np.fromiter(map(hash, self.task.keys(data)), np.int64) for data in (train, dev))
        if shared := int(np.isin(dev_keys, train_keys).sum()):
            yield (
                f"{shared:,} of the {len(dev):,} examples to evaluate on are also in the training examples; scores are "
                "too high."
            )
        intervals = [entry["loss"] for entry in read_metrics(self.options.output / METRICS_FILE)]
        losses = [*self.first_losses, *intervals]
        problems = ["all predictions are the same"] if evaluation.is_constant else []
        problems += ["the loss did not fall"] if len(losses) > 1 and min(losses[1:]) >= losses[0] else []
        if problems:
            advice = (
                "a learning_rate of about 1e-3, more epochs and more examples, and pretraining until the held-out "
                "masked-LM loss is below the unigram entropy"
                if self.model.config.hidden_size < LARGE
                else f"a learning_rate below {self.options.learning_rate:g}, a higher warmup_proportion and, in "
                "version 2, dropout 0"
            )
            yield f"Nothing was learnt: {' and '.join(problems)}. Models of this size need {advice}."

    def _data(self, step: int) -> Any:
        arguments = self.examples, self.options.batch_size, self.options.seed, step, self.last_batch
        # In the order of the seed, on every device: soon the first windows have had batches of all frequent lengths.
        multiple = 8 if runs_on_cpu() else None
        return self.devices.distribute(lambda shard: training_dataset(*arguments, shard, multiple))


def _optimizer(options: FinetuneOptions, steps: int) -> Any:
    recipe = OptimizerRecipe(
        name=options.optimizer,
        learning_rate=options.learning_rate,
        num_warmup_steps=round(options.warmup_proportion * steps),
        weight_decay=options.weight_decay,
        learning_rate_rules=options.learning_rate_rules,
    )
    return recipe.build(steps, options.batch_size)


def _recipe(
    options: FinetuneOptions,
    arguments: dict[str, Any],
    model: AlbertBase,
    tokenizer: AlbertTokenizer,
    teacher: AlbertBase | None,
) -> dict[str, Any]:
    """All options, with hashes of files instead of their paths."""
    left_out = {"output", "pretrained", "teacher", "train", "dev", "add_tokens"}
    values = options.model_dump(mode="json", exclude=left_out)
    files = {name: identity(getattr(options, name)) for name in ("train", "dev")}
    models = {"pretrained": {**_identity(model), "vocab_hash": tokenizer.vocab_hash}}
    models |= {} if teacher is None else {"teacher": _identity(teacher)}
    return {**values, **files, "labels": arguments.get("labels"), **models}


def _identity(model: AlbertBase) -> dict[str, Any]:
    arrays = {path: variable.numpy() for path, variable in model.variables_by_path().items()}
    return {"config": model.config.to_dict(), "weights_sha256": digest(arrays)}
