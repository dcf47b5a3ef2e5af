"""What the model of a run, finished or not, makes of masked pieces in its held-out examples.

Letters: B batch, P predictions, K best pieces, V vocabulary.
"""

import dataclasses
import pathlib
from typing import Any

import numpy as np
import tensorflow as tf
from keras import ops

from albert_tf.models import AlbertForPreTraining
from albert_tf.tokenization import AlbertTokenizer
from albert_tf.trainer.batches import heldout_batches
from albert_tf.trainer.checkpoint_files import newest_whole
from albert_tf.trainer.recipe import Recipe
from albert_tf.trainer.texts import with_folders

TOP = 3


@dataclasses.dataclass(frozen=True)
class Guess:
    """One masked piece.

    Attributes:
        truth: the piece that was there, as it is read; a space begins a word.
        pieces: the likeliest ones, best first.
        probabilities: theirs.
    """

    truth: str
    pieces: tuple[str, ...]
    probabilities: tuple[float, ...]


@dataclasses.dataclass(frozen=True)
class GuessedText:
    """A held-out example in its order: text that the model saw, and guesses at what it did not."""

    parts: tuple[str | Guess, ...]


def guess_heldout(run: pathlib.Path, recipe: Recipe, count: int = 8) -> list[GuessedText]:
    """Lets the model of a run guess at the first of its held-out examples.

    Args:
        run: the run's folder; where it holds no model yet, the newest checkpoint is taken.
        recipe: Recipe of the run.
        count: how many examples.

    Returns:
        As many texts, fewer where there are fewer, none where the recipe names no held-out examples.

    Raises:
        ValueError: there is neither model nor checkpoint, or vocabulary or examples are not there any more.
    """
    recipe = with_folders(recipe, run)
    if recipe.data.heldout is None:
        return []
    model, vocabulary = _model(run, recipe)
    tokenizer = AlbertTokenizer.english() if vocabulary is None else AlbertTokenizer.from_pretrained(vocabulary)
    examples: Any = heldout_batches(recipe, tokenizer)
    batch = next(iter(examples.unbatch().batch(count)))
    inputs, labels = tf.nest.map_structure(lambda tensor: tensor.numpy(), batch)
    logits = model(inputs, training=False)["masked_lm_logits"]  # [B, P, V]
    shares = ops.convert_to_numpy(ops.softmax(ops.cast(logits, "float32")))
    shown = _as_read(tokenizer)
    return [
        _guessed(
            shown,
            inputs["input_ids"][row, : inputs["attention_mask"][row].sum()],
            {
                int(position): _guess(shown, truth, shares[row, place])
                for place, (position, truth) in enumerate(
                    zip(inputs["masked_lm_positions"][row], labels["masked_lm_ids"][row])
                )
                if labels["masked_lm_weights"][row, place] > 0
            },
        )
        for row in range(len(inputs["input_ids"]))
    ]


def _model(run: pathlib.Path, recipe: Recipe) -> tuple[AlbertForPreTraining, pathlib.Path | None]:
    """The model, and where its vocabulary is."""
    folder = run / "model"
    if (run / "results.json").is_file() and (folder / "config.json").is_file():
        return AlbertForPreTraining.from_pretrained(folder), folder
    saved = newest_whole(run / "checkpoints")
    if saved is None:
        raise ValueError(f"A run must have saved a model or a checkpoint. Received: {run} with neither; let it go on.")
    model = AlbertForPreTraining(recipe.config, objective=recipe.data.objective)
    try:
        reader = tf.train.load_checkpoint(str(saved.prefix))
        for place, variable in enumerate(model.variables):
            variable.assign(reader.get_tensor(f"model/{place}"))
    except tf.errors.OpError:
        raise ValueError(
            f"A checkpoint must stay while it is read. Received: {saved.prefix}, which the run has removed; try again."
        ) from None
    return model, recipe.data.tokenizer


def _as_read(tokenizer: AlbertTokenizer) -> list[str]:
    """Each piece of a vocabulary without its marks, after a space where it begins a word."""
    begins, special = tokenizer.start_of_word, (tokenizer.cls_token_id, tokenizer.sep_token_id)
    return [
        f" {piece} "
        if index in special
        else " " * bool(begins[index]) + (piece.removeprefix("▁").removeprefix("##") or piece)
        for index, piece in enumerate(tokenizer.pieces)
    ]


def _guess(shown: list[str], truth: int, shares: np.ndarray) -> Guess:
    best = np.argsort(-shares, kind="stable")[:TOP]  # [K]
    return Guess(shown[truth], tuple(shown[index] for index in best), tuple(shares[best].tolist()))


def _guessed(shown: list[str], ids: np.ndarray, guesses: dict[int, Guess]) -> GuessedText:
    parts: list[str | Guess] = []
    for position, index in enumerate(ids):
        part: str | Guess = guesses[position] if position in guesses else shown[index]
        if isinstance(part, str) and parts and isinstance(parts[-1], str):
            parts[-1] += part
        else:
            parts.append(part)
    return GuessedText(tuple(parts))
