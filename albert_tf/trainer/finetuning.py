"""Fine-tuning: trains a task from a pretrained model, in a folder from which an interrupted run resumes.

On one device, `connect` returns TensorFlow's default strategy, and `fit` takes the batches as they are. On eight of one
machine (`strategy="mirrored"`), or of a TPU, this process keeps a copy of the variables on each, and a step divides its
batch among them; evaluation is on one. Of several machines each runs this file and reads its own rows; all evaluate,
and the chief alone writes the folder.
"""

import contextlib
import dataclasses
import functools
import math
import pathlib
import shutil
import sys
import time
from collections.abc import Iterator
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
from albert_tf.tasks.learned import Evaluation, LearnedTask, learned_task
from albert_tf.tasks.settings import write_settings
from albert_tf.trainer.callbacks import MetricsLog, ProgressLine, SaveState, SpeedLog, StopAtBadLoss, TensorBoardLog
from albert_tf.trainer.checkpoint_files import SavedCheckpoint, latest_valid_checkpoint
from albert_tf.trainer.devices import Devices, connect, explain_out_of_memory
from albert_tf.trainer.finetune_callbacks import Evaluate
from albert_tf.trainer.finetune_report import FinetuneReport, read_report
from albert_tf.trainer.fit_loop import fit
from albert_tf.trainer.run_folder import (
    CHECKPOINTS_FOLDER,
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
        RuntimeError: a worker was lost, or a step does not fit in memory.
    """
    begun = time.monotonic()
    output, devices = location(options.output), connect(options.strategy)
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(run_folder(output, devices.is_chief))
        run = _read(options, folder, devices, show_progress)
        if devices.is_chief:
            stack.enter_context(exclusive_lock(folder))
        check_folder(folder, run.recipe)
        stack.enter_context(devices.explain_worker_failure())
        saved = _starting_point(run, devices)
        if has_file(folder / REPORT_FILE):
            return read_report(folder).model_copy(update={"folder": output})
        stack.enter_context(explain_out_of_memory(options.batch_size))
        if show_progress:
            for name, data in run.examples.items():
                print(f"{name}: {data.form}", file=sys.stderr)
        report = _finish(run, devices, _train(run, devices, saved), begun)
        devices.barrier()  # a worker that exits early would be reported as lost
    return report.model_copy(update={"folder": output})


@dataclasses.dataclass(frozen=True)
class _FinetuneRun:
    """The arguments of a run, and what was read of the files that they name."""

    options: FinetuneOptions
    folder: pathlib.Path  # on this machine
    show_progress: bool
    task: LearnedTask
    examples: dict[str, Any]  # to train on and to evaluate on, by the name of the option
    model: AlbertBase
    teacher: AlbertBase | None
    recipe: dict[str, Any]  # what makes it this run, as JSON values


def _read(options: FinetuneOptions, folder: pathlib.Path, devices: Devices, show_progress: bool) -> _FinetuneRun:
    """Reads the examples and makes the models; nothing is written."""
    models = {name: model_folder(path) for name in ("pretrained", "teacher") if (path := getattr(options, name))}
    options = options.model_copy(update=models)  # downloaded once, and of one revision
    task: LearnedTask = learned_task(options.task)(load_tokenizer(options), options.settings)  # others are learnt below
    # Tables, URLs and folders are files already, see `FinetuneOptions`.
    examples = {"train": task.read(options.train), "dev": task.read_dev(options.dev)}
    arguments = task.model_arguments(examples["train"])
    keras.utils.set_random_seed(options.seed)
    with devices.strategy.scope():
        with seeded(options.seed):
            model = make_model(options, options.task, task.tokenizer, {**arguments, "dtype": options.dtype_policy})
        teacher = load_teacher(options, model, task.tokenizer)
    chosen = {"max_length": max_length(task, model), **task.learnt_settings(examples["train"])}
    task.settings = task.settings.with_facts(**{**facts_of(model), "task": options.task, **chosen})
    chosen["learning_rate"] = options.learning_rate or default_rate(model.config)
    # All options and what was chosen for those that are None, but hashes instead of paths.
    paths = {"output", "pretrained", "teacher", "train", "dev", "add_tokens"}
    files = {name: identity(getattr(options, name)) for name in examples}
    weights = {"pretrained": {**_identity(model), "vocab_hash": task.tokenizer.vocab_hash}}
    weights |= {} if teacher is None else {"teacher": _identity(teacher)}
    recipe = {**options.model_dump(mode="json", exclude=paths), **chosen, "labels": arguments.get("labels")}
    return _FinetuneRun(options, folder, show_progress, task, examples, model, teacher, {**recipe, **files, **weights})


def _identity(model: AlbertBase) -> dict[str, Any]:
    arrays = {path: variable.numpy() for path, variable in model.variables_by_path().items()}
    return {"config": model.config.to_dict(), "weights_sha256": digest(arrays)}


def _starting_point(run: _FinetuneRun, devices: Devices) -> SavedCheckpoint | None:
    # A run starts from the first of these that there is:
    # 1. its report, if it has finished, and nothing is trained;
    # 2. its newest intact checkpoint;
    # 3. the weights of `pretrained`, which may be those of the teacher, with a new head, unless `from_scratch`;
    # 4. random weights; `_read` has made the model with one of these two.
    is_finished = has_file(run.folder / REPORT_FILE)
    saved = None if is_finished else latest_valid_checkpoint(run.folder / CHECKPOINTS_FOLDER)
    devices.check_agreement({"recipe": run.recipe, "checkpoint": None if saved is None else saved.metadata})
    return saved


@dataclasses.dataclass(frozen=True)
class _Trained:
    """What training leaves."""

    state: TrainingState
    evaluations: Evaluate
    counts: dict[str, TextCounts]  # of the examples, by name


def _train(run: _FinetuneRun, devices: Devices, saved: SavedCheckpoint | None) -> _Trained:
    """Trains to the end; raises TrainingStopped if interrupted."""
    options, task, model = run.options, run.task, run.model
    with count_texts() as of_dev:
        current = ModelFolder(task.tokenizer, task.settings, model=model, traces_first=True)
        evaluate = task.evaluator(current.compute, run.examples["dev"])
    with count_texts() as of_train:
        train = task.training_examples(run.examples["train"])
    steps = steps_per_epoch(len(train.lengths), options.batch_size, _last_batch(run, devices))
    training = options.training_recipe(steps, task.main_score)  # an interval between evaluations is an epoch of Keras
    # A row of multiple choice has several sequences; a batch has at most all examples.
    sequences, share = getattr(train, "num_choices", 1), min(1.0, len(train.lengths) / options.batch_size)
    has_scores = devices.keeps_scores(training.dtype_policy)
    values = activation_values(model.config, round(train.lengths.mean()), 0, has_scores)
    devices.check_memory(training, values * sequences * share)
    if devices.is_chief:
        write_recipe(run.folder, run.recipe)
    with devices.strategy.scope():
        optimizer = options.optimizer_recipe(training.num_train_steps, run.recipe["learning_rate"])
        built = optimizer.build(training.num_train_steps, training.batch_size)
        model.compile(built, teacher=run.teacher, **training.compile_arguments())
        metadata = {"recipe": run.recipe}
        state = TrainingState(run.folder / CHECKPOINTS_FOLDER, model, training, metadata, higher_is_better=True)
        state.restore(saved)
    log, num_evaluations = f"val_{task.main_score}", state.step // training.log_every
    entries = read_metrics(run.folder / METRICS_FILE)[:num_evaluations]  # later ones are of a process that was killed
    history = [entry[log] for entry in entries if log in entry]
    if len(history) < num_evaluations:
        raise ValueError(
            f"{run.folder / METRICS_FILE} lacks evaluations of the run; restore it from a copy, or give another output "
            "folder."
        )
    evaluations = Evaluate(evaluate, log, history, options, devices)
    if not evaluations.is_exhausted:
        rows = min(options.batch_size, len(train.lengths) / steps)  # without copies
        tokens_per_step = round(train.lengths.mean() * rows * sequences)
        callbacks = _callbacks(run, state, devices, evaluations, tokens_per_step)
        batches = functools.partial(_batches, run, devices, train)
        fit(state, devices, callbacks, batches(state.step), batches)
    return _Trained(state, evaluations, {"train": of_train, "dev": of_dev})


def _last_batch(run: _FinetuneRun, devices: Devices) -> LastBatch:
    """What becomes of an epoch's last batch; equal parts, and few shapes for XLA, need full batches."""
    is_divided = devices.strategy.num_replicas_in_sync * run.options.gradient_accumulation_steps > 1
    # A teacher is imitated on all rows, and rows are compared with each other in the ranking of sentences.
    if run.teacher is not None or getattr(run.model, "objective", "") == "ranking":
        return "dropped" if is_divided else "short"
    return "filled" if is_divided or not runs_on_cpu() else "short"


def _batches(run: _FinetuneRun, devices: Devices, train: TrainingExamples, step: int) -> Any:
    """Training batches from a step on, sharded over hosts."""
    arguments = train, run.options.batch_size, run.options.seed, step, _last_batch(run, devices)
    # In the order of the seed, on every device: soon the first windows have had batches of all frequent lengths.
    multiple = 8 if runs_on_cpu() else None
    return devices.distribute(lambda shard: training_dataset(*arguments, shard, multiple))


def _callbacks(
    run: _FinetuneRun, state: TrainingState, devices: Devices, evaluations: Evaluate, tokens_per_step: int
) -> list[Any]:
    """In this order: scores are in the logs before they are written, and are written before the state that has them."""
    callbacks: list[Any] = [StopAtBadLoss(cure="give another output folder"), SpeedLog(tokens_per_step), evaluations]
    if not devices.is_chief:
        return callbacks
    callbacks += [MetricsLog(run.folder / METRICS_FILE), TensorBoardLog(run.folder / LOGS_FOLDER), SaveState(state)]
    if run.show_progress:
        total = state.training.num_train_steps
        callbacks.append(ProgressLine("finetune", total, tokens_per_step, max(1, total // 20)))
    return callbacks


def _finish(run: _FinetuneRun, devices: Devices, trained: _Trained, begun: float) -> FinetuneReport:
    """Restores and evaluates the weights to keep; the chief writes the model and the report."""
    task, evaluations = run.task, trained.evaluations
    steps = trained.state.step  # which restoring sets back
    _restore_best(run, trained)
    evaluation = evaluations.kept or evaluations.evaluate()
    # Settings that are chosen on the examples to evaluate on.
    chosen: dict[str, Any] = {name: getattr(evaluation, name, None) for name in ("threshold", "no_answer_threshold")}
    report = FinetuneReport(
        folder=pathlib.Path(name_of(run.folder)),
        scores=evaluation.scores,
        main_score=task.main_score,
        score_by_evaluation=tuple(evaluations.history),
        kept_evaluation=evaluations.index_to_keep + 1,
        constant_score=evaluation.constant_score,
        **chosen,
        cut_examples=trained.counts["train"].cut,
        train_examples=len(run.examples["train"]),
        dev_examples=len(run.examples["dev"]),
        steps=steps,
        trained_parameters=sum(math.prod(variable.shape) for variable in run.model.trainable_variables),
        notes=tuple(_notes(run, trained, evaluation)),
        seconds=round(time.monotonic() - begun, 3),
    )
    devices.barrier()  # the chief removes checkpoints, from which others may still restore the best weights
    if devices.is_chief:
        run.model.save_pretrained(run.folder)
        task.tokenizer.save_pretrained(run.folder)
        write_settings(run.folder, task.settings.with_facts(**chosen))
        task.write_predictions(run.folder / task.predictions_file, run.examples["dev"], evaluation)
        # Written last: its presence marks the run as finished.
        write_json(run.folder / REPORT_FILE, finite(report.model_dump(), str), ensure_ascii=False)
        shutil.rmtree(run.folder / CHECKPOINTS_FOLDER)
    return report


def _restore_best(run: _FinetuneRun, trained: _Trained) -> None:
    """Restores the weights to keep, unless they are the last ones."""
    state, index, interval = trained.state, trained.evaluations.index_to_keep, trained.state.training.log_every
    step = (index + 1) * interval
    if step == state.step:
        return
    best = state.writer.checkpoint(step)
    problem = "it was not found" if best is None else best.corruption()
    if problem is not None:
        raise ValueError(
            f"The best weights, of evaluation {index + 1}, cannot be restored: {problem}. Restore the checkpoint from "
            "a copy, or give another output folder."
        )
    state.restore(best)


def _notes(run: _FinetuneRun, trained: _Trained, evaluation: Evaluation) -> Iterator[str]:
    """Sentences about mistakes in the data and about a model that learnt nothing."""
    train, dev = run.examples["train"], run.examples["dev"]
    yield from run.task.notes(train)
    for name, counts in trained.counts.items():
        yield from (f"{name}: {sentence}" for sentence in counts.sentences())
    yield from evaluation.notes
    train_keys, dev_keys = (np.fromiter(map(hash, run.task.keys(data)), np.int64) for data in (train, dev))
    if shared := int(np.isin(dev_keys, train_keys).sum()):
        yield (
            f"{shared:,} of the {len(dev):,} examples to evaluate on are also in the training examples; scores are too "
            "high."
        )
    losses = [entry["loss"] for entry in read_metrics(run.folder / METRICS_FILE)]
    problems = ["all predictions are the same"] if evaluation.is_constant else []
    problems += ["the loss did not fall"] if len(losses) > 1 and min(losses[1:]) >= losses[0] else []
    if problems:
        advice = (
            "a learning_rate of about 1e-3, more epochs and more examples, and pretraining until the held-out "
            "masked-LM loss is below the unigram entropy"
            if run.model.config.hidden_size < LARGE
            else f"a learning_rate below {run.recipe['learning_rate']:g}, a higher warmup_proportion and, in version 2,"
            " dropout 0"
        )
        yield f"Nothing was learnt: {' and '.join(problems)}. Models of this size need {advice}."
