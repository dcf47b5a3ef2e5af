"""Pretraining: runs a recipe in a folder, from which an interrupted run resumes.

On one device, `connect` returns TensorFlow's default strategy, and `fit` takes the batches as they are. On eight of one
machine (`strategy = "mirrored"`), or of a TPU, this process keeps a copy of the variables on each, and a step divides
its batch among them. Of several machines each runs this file and reads its own rows; the chief alone writes the folder.
"""

import contextlib
import dataclasses
import functools
import pathlib
import sys
import time
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from albert_tf import checkpoints
from albert_tf.checkpoints.checkpoint import assign, with_positions
from albert_tf.checkpoints.vocabulary import with_vocabulary
from albert_tf.costs import activation_values
from albert_tf.data.manifest import Manifest, read_tokenizer_files
from albert_tf.data.sources import name_damage
from albert_tf.files.atomic import atomic_write, exclusive_lock, write_json
from albert_tf.files.json import finite
from albert_tf.files.urls import location
from albert_tf.layers.seeds import seeded
from albert_tf.models import AlbertForPreTraining
from albert_tf.trainer.batches import data_facts, data_sizes, heldout_batches, train_batches
from albert_tf.trainer.callbacks import (
    GradientLog,
    MetricsLog,
    ProgressLine,
    SaveState,
    SpeedLog,
    StopAtBadLoss,
    TensorBoardLog,
)
from albert_tf.trainer.checkpoint_files import SavedCheckpoint, latest_valid_checkpoint
from albert_tf.trainer.devices import Devices, connect, explain_out_of_memory, shared_evenly
from albert_tf.trainer.fit_loop import fit
from albert_tf.trainer.recipe import Recipe
from albert_tf.trainer.run_folder import (
    CHECKPOINTS_FOLDER,
    LOGS_FOLDER,
    METRICS_FILE,
    MODEL_FOLDER,
    RESULTS_FILE,
    check_folder,
    plain_urls,
    run_folder,
    write_recipe,
)
from albert_tf.trainer.run_state import TrainingState


@dataclasses.dataclass(frozen=True)
class PretrainReport:
    """Result of a run.

    Attributes:
        model_folder: the trained model and its tokenizer, in Hugging Face layout.
        metrics_file: one JSON line per interval.
        results: held-out metrics, and `unigram_entropy` of the masked tokens in nats; empty without held-out examples.
        num_train_steps: updates made.
        is_chief: whether this process wrote the folder.
        seconds: wall time of this call.
    """

    model_folder: pathlib.Path
    metrics_file: pathlib.Path
    results: dict[str, float]
    num_train_steps: int
    is_chief: bool
    seconds: float


def pretrain(
    recipe: Recipe,
    output: str | pathlib.Path,
    show_progress: bool = True,
    skip_corrupt: bool = False,
    allow_changed: bool = False,
) -> PretrainReport:
    """Runs a recipe, or resumes an interrupted run.

    Args:
        recipe: Recipe.
        output: path or URL of the folder of the run. It must be new, empty, or belong to a run of the same recipe,
            which is resumed.
        show_progress: whether to show a progress bar on stderr.
        skip_corrupt: whether to skip damaged shards with a warning instead of raising.
        allow_changed: whether to resume a run with a different recipe.

    Returns:
        PretrainReport. The folder holds `recipe.json`, `checkpoints/`, `metrics.jsonl`, TensorBoard's `logs/`, and at
        the end `model/` and `results.json`.

    Raises:
        ValueError: recipe, data, folder and workers do not match, another process is writing to the folder, or the loss
            is not finite.
        TrainingStopped: SIGTERM or Ctrl-C was received before the last update; the state of the run was saved.
        OSError: the disk is full.
        RuntimeError: a worker was lost, or a step does not fit in memory.
    """
    begun = time.monotonic()
    recipe.check_vocabulary()
    output, tokenizer_files = location(output), read_tokenizer_files(recipe.data.source)
    devices = connect(recipe.training.strategy)
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(run_folder(output, devices.is_chief))
        run = _PretrainRun(recipe, folder, show_progress, skip_corrupt, allow_changed)
        if devices.is_chief:
            stack.enter_context(exclusive_lock(run.folder))  # before anything in the folder is read
            check_folder(run.folder, run.values, allow_changed)
        stack.enter_context(devices.explain_worker_failure())
        stack.enter_context(explain_out_of_memory(recipe.training.batch_size))
        stack.enter_context(name_damage(*filter(None, (recipe.data.source, recipe.data.heldout))))
        state = _train(run, devices, _starting_point(run, devices))
        results = _finish(run, devices, state.model, tokenizer_files)
        devices.barrier()  # a worker that exits early would be reported as lost
    model, metrics, seconds = output / MODEL_FOLDER, output / METRICS_FILE, time.monotonic() - begun
    return PretrainReport(model, metrics, results, state.step, devices.is_chief, seconds)


def _starting_point(run: "_PretrainRun", devices: Devices) -> SavedCheckpoint | None:
    # A run starts from the first of these that there is:
    # 1. its newest intact checkpoint;
    # 2. the checkpoint `weights` of [model];
    # 3. random weights.
    saved = latest_valid_checkpoint(run.folder / CHECKPOINTS_FOLDER)
    if saved is not None and saved.step > run.recipe.training.num_train_steps:
        raise ValueError(
            f"{saved.folder} has already been trained for {saved.step} steps, more than num_train_steps = "
            f"{run.recipe.training.num_train_steps}; raise num_train_steps, or use another folder."
        )
    devices.check_agreement(run.shared_facts(saved))
    return saved


@dataclasses.dataclass(frozen=True)
class _PretrainRun:
    """The arguments of a run, and values derived from them."""

    recipe: Recipe
    folder: pathlib.Path  # on this machine
    show_progress: bool
    skip_corrupt: bool
    allow_changed: bool

    @functools.cached_property
    def values(self) -> dict[str, Any]:
        """The recipe as JSON values."""
        return plain_urls(self.recipe.model_dump(mode="json"))

    @functools.cached_property
    def data_facts(self) -> dict[str, str]:
        """Digests that identify the data wherever they are stored."""
        return data_facts(self.recipe)

    @property
    def network(self) -> dict[str, Any]:
        """The fields of the config that a run keeps; it may go on with other dropout."""
        values = self.recipe.config.to_dict()
        return {name: value for name, value in values.items() if not name.endswith(("_prob", "initializer_range"))}

    def shared_facts(self, saved: SavedCheckpoint | None) -> dict[str, Any]:
        """Facts that must be equal on every worker."""
        recipe = self.recipe.model_dump(mode="json", exclude={"data": True, "model": {"weights"}})
        facts: dict[str, Any] = {"recipe": recipe, "examples or vocabulary": self.data_facts}
        if self.recipe.weights is not None and saved is None:
            facts["weights"] = checkpoints.read(self.recipe.weights).digest()
        metadata = None if saved is None else saved.metadata
        return {**facts, "checkpoint": metadata, "TensorFlow's version": tf.__version__}


def _train(run: _PretrainRun, devices: Devices, saved: SavedCheckpoint | None) -> TrainingState:
    """Trains to the end; raises TrainingStopped if interrupted."""
    recipe, training = run.recipe, run.recipe.training
    sizes = data_sizes(recipe)
    has_scores = devices.keeps_scores(training.dtype_policy)
    devices.check_memory(training, activation_values(recipe.config, sizes["L"], sizes["P"], has_scores))
    keras.utils.set_random_seed(training.seed)  # before the data are opened, because it also shuffles the examples
    # Check everything before writing to the folder.
    train, heldout = _batches(run, devices, 0 if saved is None else saved.step), heldout_batches(recipe)
    if devices.is_chief:
        _describe(run, devices)
    with devices.strategy.scope():
        with seeded(training.seed):
            model = AlbertForPreTraining(recipe.config, objective=recipe.data.objective, dtype=training.dtype_policy)
        if recipe.weights is not None and saved is None:
            weights = with_vocabulary(checkpoints.read(recipe.weights), recipe.config)
            weights = with_positions(weights, recipe.config)
            assign(weights, model.variables_by_path(), recipe.new_head)
        built = recipe.optimizer.build(training.num_train_steps, training.batch_size)
        model.compile(built, **training.compile_arguments())
        metadata = {"recipe": run.values, "data": run.data_facts, "network": run.network}
        state = TrainingState(run.folder / CHECKPOINTS_FOLDER, model, training, metadata)
        state.restore(saved, run.allow_changed)
    if devices.is_chief:
        write_recipe(run.folder, run.values)
        if state.step < training.num_train_steps:  # a finished run is being extended: its results are outdated
            (run.folder / RESULTS_FILE).unlink(missing_ok=True)
    fit(state, devices, _callbacks(run, state, devices), train, functools.partial(_batches, run, devices), heldout)
    return state


def _batches(run: _PretrainRun, devices: Devices, step: int) -> Any:
    """Training batches from a step on, sharded over hosts."""
    return devices.distribute(lambda shard: train_batches(run.recipe, run.skip_corrupt, step, shard))


def _describe(run: _PretrainRun, devices: Devices) -> None:
    optimizer, batch_size = run.recipe.optimizer, run.recipe.training.batch_size
    optimizer.warn_if_unscaled(batch_size)
    if run.show_progress:
        print(devices.describe(), file=sys.stderr)
        if optimizer.learning_rate_scaling is not None:
            print(f"learning rate {optimizer.peak(batch_size):.3g}", file=sys.stderr)
        print(_size_of(run.recipe), file=sys.stderr)


def _size_of(recipe: Recipe) -> str:
    """One line on the model and the data."""
    config, training, manifest = recipe.config, recipe.training, Manifest.load(recipe.data.source)
    examples = sum(shard.records for shard in manifest.shards)
    what = f"{examples:,} examples"
    if recipe.data.documents is not None:
        what, examples = f"{manifest.documents:,} documents", manifest.statistics.examples
    passes = training.num_train_steps * training.batch_size / examples
    return (
        f"{config.num_hidden_layers} layers of width {config.hidden_size}, vocabulary of {config.vocab_size:,}: "
        f"{config.num_parameters('pretraining'):,} parameters; {what}, {passes:.3g} passes"
    )


def _callbacks(run: _PretrainRun, state: TrainingState, devices: Devices) -> list[Any]:
    training, file = run.recipe.training, run.folder / METRICS_FILE
    stop = StopAtBadLoss(training.stop_above_best, file)
    if not devices.is_chief:
        return [stop]
    tokens_per_step = training.batch_size * data_sizes(run.recipe)["L"]
    callbacks: list[Any] = [
        GradientLog(),
        SpeedLog(tokens_per_step),
        # Before SaveState: on resume, metrics after the checkpoint are rewritten, but earlier ones are not.
        MetricsLog(file),
        TensorBoardLog(run.folder / LOGS_FOLDER),
        stop,
        SaveState(state),
    ]
    if run.show_progress:
        lines_every = max(training.log_every, training.num_train_steps // 20)
        callbacks.append(ProgressLine("pretrain", training.num_train_steps, tokens_per_step, lines_every))
    return callbacks


def _finish(run: _PretrainRun, devices: Devices, model, tokenizer_files: dict[str, bytes]) -> dict[str, float]:
    """Evaluates the trained model on all workers; the chief writes it."""
    model.optimizer.finalize_variable_values(model.trainable_variables)  # sets averaged weights if `ema_momentum`
    heldout, results = heldout_batches(run.recipe), {}
    if heldout is not None:
        logs = model.evaluate(shared_evenly(heldout), return_dict=True, verbose=0)
        results = {**{name: float(value) for name, value in logs.items()}, "unigram_entropy": unigram_entropy(heldout)}
    if devices.is_chief:
        model.save_pretrained(run.folder / MODEL_FOLDER)
        for name, content in tokenizer_files.items():
            atomic_write(run.folder / MODEL_FOLDER / name, content)
        write_json(run.folder / RESULTS_FILE, finite(results))
    return results


def unigram_entropy(dataset) -> float:
    """Entropy in nats of the distribution of masked tokens: the lowest loss of a model that ignores context."""
    ids = [labels["masked_lm_ids"].numpy()[labels["masked_lm_weights"].numpy() > 0] for _, labels in dataset]
    _, counts = np.unique(np.concatenate(ids), return_counts=True)
    probabilities = counts / counts.sum()
    return float(-(probabilities * np.log(probabilities)).sum())
