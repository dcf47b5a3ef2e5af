"""Pretraining: a recipe and an output folder become a model that has learnt from text."""

import dataclasses
import json
import pathlib
import time
from typing import Any

import keras
import numpy as np
import rich.console
import tensorflow as tf

from albert_tf.checkpoints import write_whole
from albert_tf.data import name_damage
from albert_tf.models import AlbertForPreTraining
from albert_tf.tokenization import AlbertTokenizer
from albert_tf.trainer.batches import heldout_batches, sequence_length, train_batches
from albert_tf.trainer.callbacks import GradientLog, MetricsLog, ProgressLine, SaveState, StopAtBadLoss
from albert_tf.trainer.recipe import Recipe
from albert_tf.trainer.run_folder import claim_folder
from albert_tf.trainer.state import TrainingState

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
        seconds: wall time of this call.
    """

    model_folder: pathlib.Path
    metrics_file: pathlib.Path
    results: dict[str, float]
    num_train_steps: int
    seconds: float


def pretrain(
    recipe: Recipe, output: str | pathlib.Path, show_progress: bool = True, skip_corrupt: bool = False
) -> PretrainReport:
    """Runs a recipe, or takes it up where it stopped.

    Args:
        recipe: Recipe.
        output: folder of the run. The same recipe goes on there; another one is refused.
        show_progress: bool. Whether to show a progress bar on stderr.
        skip_corrupt: bool. Whether to leave damaged shards out with a warning; otherwise they stop the run.

    Returns:
        PretrainReport. The folder holds `recipe.json`, `checkpoints/`, `metrics.jsonl`, TensorBoard's `logs/`, and at
        the end `model/` and `results.json`.

    Raises:
        ValueError: where folder, examples, vocabulary and recipe do not fit each other, or the loss is not finite.
    """
    begun = time.monotonic()
    output = pathlib.Path(output)
    _set_up_keras(recipe)  # first of all: the global seed enters the order of examples too
    tokenizer = _tokenizer(recipe)
    tokenizer.check_fits(recipe.config.vocab_size)
    train = train_batches(recipe, tokenizer, skip_corrupt)
    heldout = heldout_batches(recipe, tokenizer, sequence_length(train))
    claim_folder(output, recipe.model_dump(mode="json"))
    recipe.optimizer.warn_if_unscaled(recipe.training.batch_size)
    if show_progress:
        rich.console.Console(stderr=True).print(recipe.optimizer.describe_peak(recipe.training.batch_size))
    with _strategy(recipe).scope():
        model = AlbertForPreTraining(recipe.config, objective=recipe.data.objective)
        model.compile(
            optimizer=recipe.optimizer.build(recipe.training.num_train_steps, recipe.training.batch_size),
            gradient_accumulation_steps=recipe.training.gradient_accumulation_steps,
            remat=recipe.training.remat,
            steps_per_execution=recipe.training.steps_per_execution,
            jit_compile=recipe.training.jit_compile,
        )
        about = {"recipe": recipe.model_dump(mode="json"), "vocab_hash": tokenizer.vocab_hash}
        state = TrainingState(output / "checkpoints", model, recipe.training.keep_checkpoints, about)
        if first_step := state.restore():
            train = train_batches(recipe, tokenizer, skip_corrupt, first_step)
    _fit(recipe, model, state, train, heldout, output, show_progress)
    model.optimizer.finalize_variable_values(model.trainable_variables)  # averages, where the recipe asks for them
    results = _evaluate(model, heldout) if heldout is not None else {}
    model.save_pretrained(output / MODEL_FOLDER)
    tokenizer.save_pretrained(output / MODEL_FOLDER)
    write_whole(output / RESULTS_FILE, (json.dumps(results, indent=2) + "\n").encode())
    return PretrainReport(output / MODEL_FOLDER, output / METRICS_FILE, results, state.step, time.monotonic() - begun)


def _fit(
    recipe: Recipe, model, state: TrainingState, train, heldout, output: pathlib.Path, show_progress: bool
) -> None:
    training = recipe.training
    done, total = state.step // training.log_every, training.num_train_steps // training.log_every
    if done >= total:
        return
    tokens_per_step = training.batch_size * sequence_length(train)
    callbacks: list[Any] = [
        GradientLog(),
        # Metrics first: lines beyond the checkpoint that a run goes on from are dropped, but lost ones stay lost.
        MetricsLog(output / METRICS_FILE, tokens_per_step),
        StopAtBadLoss(training.stop_above_best, output / METRICS_FILE),
        SaveState(state, training.save_every, training.num_train_steps),
        keras.callbacks.TensorBoard(str(output / "logs"), write_graph=False, profile_batch=0),
    ]
    if show_progress:
        lines_every = max(training.log_every, training.num_train_steps // 20)
        callbacks.append(ProgressLine("pretrain", training.num_train_steps, tokens_per_step, lines_every))
    with name_damage(recipe.data.source):
        model.fit(
            train,
            epochs=total,
            initial_epoch=done,
            steps_per_epoch=training.log_every,
            validation_data=heldout,
            validation_freq=training.evaluate_every // training.log_every,
            callbacks=callbacks,
            shuffle=False,
            verbose=0,
        )


def _evaluate(model, heldout) -> dict[str, float]:
    results = {name: float(value) for name, value in model.evaluate(heldout, return_dict=True, verbose=0).items()}
    return {**results, "unigram_entropy": unigram_entropy(heldout)}


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


def _set_up_keras(recipe: Recipe) -> None:
    keras.utils.set_random_seed(recipe.training.seed)
    keras.config.set_dtype_policy(recipe.training.dtype_policy)


def _strategy(recipe: Recipe):
    if recipe.training.strategy == "mirrored":
        return tf.distribute.MirroredStrategy()
    return tf.distribute.get_strategy()
