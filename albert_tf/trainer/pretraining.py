"""Pretraining: a recipe and an output folder become a model that has learnt from text."""

import contextlib
import dataclasses
import functools
import json
import pathlib
import time
from typing import Any

import keras
import numpy as np
import rich.console
import tensorflow as tf

from albert_tf import checkpoints
from albert_tf.atomic_files import atomic_write, exclusive_lock
from albert_tf.data import name_damage
from albert_tf.models import AlbertForPreTraining
from albert_tf.tokenization import AlbertTokenizer
from albert_tf.trainer.batches import data_facts, heldout_batches, sequence_length, train_batches
from albert_tf.trainer.callbacks import GradientLog, MetricsLog, ProgressLine, SaveState, StopAtBadLoss
from albert_tf.trainer.checkpoint_files import SavedState, newest_whole
from albert_tf.trainer.devices import Devices, connect, naming_full_memory, shared_evenly
from albert_tf.trainer.fitting import Fitting
from albert_tf.trainer.recipe import Recipe
from albert_tf.trainer.run_folder import check_folder, write_recipe
from albert_tf.trainer.speed import SpeedLog
from albert_tf.trainer.state import TrainingState
from albert_tf.trainer.tensorboard import TensorBoardLog
from albert_tf.trainer.texts import prepare_texts, with_folders

METRICS_FILE = "metrics.jsonl"
RESULTS_FILE = "results.json"
MODEL_FOLDER = "model"


@dataclasses.dataclass(frozen=True)
class PretrainReport:
    """What a run came to.

    Attributes:
        model_folder: the trained model and its tokenizer, in Hugging Face layout.
        metrics_file: one JSON line for each interval.
        results: means over the held-out examples, `unigram_entropy` of their masked tokens in nats among them; empty
            where there are none.
        num_train_steps: updates made in all.
        finished: whether those are all that the recipe asks for; otherwise the run was told to stop, and goes on when
            it is called again.
        is_chief: whether this process wrote it all; others of several workers only help.
        seconds: wall time of this call.
    """

    model_folder: pathlib.Path
    metrics_file: pathlib.Path
    results: dict[str, float]
    num_train_steps: int
    finished: bool
    is_chief: bool
    seconds: float


def pretrain(
    recipe: Recipe,
    output: str | pathlib.Path,
    show_progress: bool = True,
    skip_corrupt: bool = False,
    allow_changed: bool = False,
) -> PretrainReport:
    """Runs a recipe, or takes it up where it stopped.

    Told to stop by SIGTERM or Ctrl-C, it saves its state at the end of the step and returns a report that is not
    finished.

    Args:
        recipe: Recipe.
        output: folder of the run. The same recipe goes on there; another one is refused.
        show_progress: bool. Whether to show a progress bar on stderr.
        skip_corrupt: bool. Whether to leave damaged shards out with a warning; otherwise they stop the run.
        allow_changed: bool. Whether a run may go on with a recipe that differs from the one it began with.

    Returns:
        PretrainReport. The folder holds `recipe.json`, `checkpoints/`, `metrics.jsonl`, TensorBoard's `logs/`, and at
        the end `model/` and `results.json`.

    Raises:
        ValueError: where folder, examples, vocabulary, recipe and workers do not fit each other, another run writes to
            the folder, or the loss is not finite.
        OSError: where the disk is full, or a worker has not come.
        RuntimeError: where a worker has gone, or a step does not fit into memory.
    """
    begun = time.monotonic()
    tokenizer = _tokenizer(recipe)
    tokenizer.check_fits(recipe.config.vocab_size)
    output = pathlib.Path(output)
    prepare_texts(recipe, output)
    run = _Run(recipe, with_folders(recipe, output), output, tokenizer, show_progress, skip_corrupt, allow_changed)
    saved = newest_whole(run.checkpoints)
    if saved is not None and saved.step > recipe.training.num_train_steps:
        raise ValueError(
            f"`num_train_steps` must not be less than the updates made. Received: {recipe.training.num_train_steps}, "
            f"and {saved.prefix} after {saved.step}; raise it, or start in another folder."
        )
    devices = connect(recipe.training.strategy, lambda: run.facts(saved))
    batch_size, folder = recipe.training.batch_size, contextlib.ExitStack()
    with devices.naming_lost_workers(), naming_full_memory(batch_size), name_damage(*run.sources), folder:
        state = _train(run, devices, saved, folder)
        finished = state.step == recipe.training.num_train_steps
        results = _finish(run, devices, state.model) if finished else {}
        devices.wait_for_all()  # a worker that left early would look like one that was lost
    model, metrics, seconds = run.output / MODEL_FOLDER, run.output / METRICS_FILE, time.monotonic() - begun
    return PretrainReport(model, metrics, results, state.step, finished, devices.is_chief, seconds)


@dataclasses.dataclass(frozen=True)
class _Run:
    """What a run is made of before there are devices: the recipe as it was given, and with folders for its texts."""

    given: Recipe
    recipe: Recipe
    output: pathlib.Path
    tokenizer: AlbertTokenizer
    show_progress: bool
    skip_corrupt: bool
    allow_changed: bool

    @property
    def checkpoints(self) -> pathlib.Path:
        """Folder of the checkpoints."""
        return self.output / "checkpoints"

    def facts(self, saved: SavedState | None) -> dict[str, Any]:
        """What has to be the same at every worker."""
        recipe = self.recipe.model_dump(mode="json", exclude={"data": True, "model": {"weights"}})
        if self.recipe.weights is not None and saved is None:
            recipe["weights"] = checkpoints.read(self.recipe.weights).digest()
        checkpoint = None if saved is None else f"{saved.prefix.name} {saved.about['sha256']}"
        return {"recipe": recipe, "data": self.data_facts, "checkpoint": checkpoint, "tensorflow": tf.__version__}

    @functools.cached_property
    def data_facts(self) -> dict[str, str]:
        """What tells these data from others, wherever they lie."""
        return data_facts(self.recipe, self.tokenizer)

    @property
    def sources(self) -> list[pathlib.Path]:
        """The folders that are read."""
        data = self.recipe.data
        return [data.source] if data.heldout is None else [data.source, data.heldout]

    def train(self, devices: Devices, first_step: int):
        """Batches to train on, each host's own rows of them."""
        return devices.distribute(
            lambda shard: train_batches(self.recipe, self.tokenizer, self.skip_corrupt, first_step, shard)
        )

    def heldout(self) -> tf.data.Dataset | None:
        """All held-out examples, on every host."""
        return heldout_batches(self.recipe, self.tokenizer)


def _train(run: _Run, devices: Devices, saved: SavedState | None, folder: contextlib.ExitStack) -> TrainingState:
    """Trains to the end, or until told to stop; `folder` keeps other runs out of the run's own."""
    recipe, training = run.recipe, run.recipe.training
    keras.utils.set_random_seed(training.seed)  # before the data are opened: it enters the order of examples too
    # Before the folder is claimed: what does not fit leaves no trace.
    train, heldout = run.train(devices, 0 if saved is None else saved.step), run.heldout()
    if devices.is_chief:
        check_folder(run.output, run.given.model_dump(mode="json"), run.allow_changed)
        _describe(run, devices)
    with devices.strategy.scope():
        model = AlbertForPreTraining(recipe.config, objective=recipe.data.objective, dtype=training.dtype_policy)
        if recipe.weights is not None and saved is None:
            checkpoints.assign(checkpoints.read(recipe.weights), model.variables_by_path(), recipe.new_head)
        model.compile(
            optimizer=recipe.optimizer.build(training.num_train_steps, training.batch_size),
            gradient_accumulation_steps=training.gradient_accumulation_steps,
            remat=training.remat,
            steps_per_execution=training.steps_per_execution,
            # A TPU compiles all by itself.
            jit_compile=False if training.strategy == "tpu" else training.jit_compile,
        )
        about = {"recipe": run.given.model_dump(mode="json"), "data": run.data_facts}
        state = TrainingState(run.checkpoints, model, training, about)
        state.restore(saved, run.allow_changed)
    if devices.is_chief:
        folder.enter_context(exclusive_lock(run.output))
        write_recipe(run.output, run.given.model_dump(mode="json"))
        if state.step < training.num_train_steps:  # those of an earlier end, where a recipe was made longer
            (run.output / RESULTS_FILE).unlink(missing_ok=True)
    fitting = Fitting(state, training, devices, _callbacks(run, state, devices))
    fitting.run(train, lambda step: run.train(devices, step), heldout)
    return state


def _describe(run: _Run, devices: Devices) -> None:
    optimizer, batch_size = run.recipe.optimizer, run.recipe.training.batch_size
    optimizer.warn_if_unscaled(batch_size)
    if run.show_progress:
        console = rich.console.Console(stderr=True)
        console.print(devices.describe(), markup=False, highlight=False)
        if optimizer.learning_rate_scaling is not None:
            console.print(optimizer.describe_peak(batch_size))


def _callbacks(run: _Run, state: TrainingState, devices: Devices) -> list[Any]:
    training, file = run.recipe.training, run.output / METRICS_FILE
    stop = StopAtBadLoss(training.stop_above_best, file)
    if not devices.is_chief:
        return [stop]
    tokens_per_step = training.batch_size * sequence_length(run.recipe)
    callbacks: list[Any] = [
        GradientLog(),
        SpeedLog(tokens_per_step),
        # Metrics first: lines beyond the checkpoint that a run goes on from are dropped, but lost ones stay lost.
        MetricsLog(file),
        TensorBoardLog(run.output / "logs", training.evaluate_every if training.histograms else None),
        stop,
        SaveState(state, training),
    ]
    if run.show_progress:
        lines_every = max(training.log_every, training.num_train_steps // 20)
        callbacks.append(ProgressLine("pretrain", training.num_train_steps, tokens_per_step, lines_every))
    return callbacks


def _finish(run: _Run, devices: Devices, model) -> dict[str, float]:
    """Evaluates the trained model, which all workers do together, and writes it, which the chief does."""
    model.optimizer.finalize_variable_values(model.trainable_variables)  # averages, where the recipe asks for them
    heldout, results = run.heldout(), {}
    if heldout is not None:
        logs = model.evaluate(shared_evenly(heldout), return_dict=True, verbose=0)
        results = {**{name: float(value) for name, value in logs.items()}, "unigram_entropy": unigram_entropy(heldout)}
    if devices.is_chief:
        model.save_pretrained(run.output / MODEL_FOLDER)
        run.tokenizer.save_pretrained(run.output / MODEL_FOLDER)
        atomic_write(run.output / RESULTS_FILE, (json.dumps(results, indent=2) + "\n").encode())
    return results


def unigram_entropy(dataset) -> float:
    """Entropy in nats of the masked tokens' own frequencies: no model that ignores context can have a lower loss."""
    counts: dict[int, float] = {}
    for _, labels in dataset:
        weights, ids = labels["masked_lm_weights"].numpy(), labels["masked_lm_ids"].numpy()
        for token, count in zip(*np.unique(ids[weights > 0], return_counts=True)):
            counts[int(token)] = counts.get(int(token), 0.0) + float(count)
    shares = np.array(list(counts.values())) / sum(counts.values())
    return float(-(shares * np.log(shares)).sum())


def _tokenizer(recipe: Recipe) -> AlbertTokenizer:
    folder = recipe.data.tokenizer
    return AlbertTokenizer.english() if folder is None else AlbertTokenizer.from_pretrained(folder)
