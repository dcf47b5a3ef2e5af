"""Fine-tuning of few weights: frozen ones by name, and low-rank updates (LoRA) of attention."""

import re
from collections.abc import Iterable
from typing import Any

import keras

from albert_tf.layers.seeds import next_seed
from albert_tf.models.base import AlbertBase


def add_adapters(model: AlbertBase, rank: int) -> None:
    """Makes low-rank updates of the query and value kernels, and the head, the only weights that are trained.

    Blocks with weights of their own, as with `share="none"`, each get an update; a shared one gets one for all its
    layer calls. The updates are added to the kernels when the model is saved.

    Args:
        model: a task model, before it is compiled.
        rank: of each update, which has `2 * hidden_size * rank` values.

    References:
        LoRA, arXiv 2106.09685.
    """
    encoder: Any = model.encoder  # pyright: ignore[reportAttributeAccessIssue]
    for variable in encoder.weights:
        variable.trainable = False
    for group in encoder.attention_blocks:
        for block in group:
            for dense in (block.query, block.value):
                dense.enable_lora(rank, a_initializer=keras.initializers.HeUniform(next_seed()))


def freeze(model: AlbertBase, patterns: Iterable[str]) -> None:
    """Freezes the variables in whose paths one of the regular expressions is found.

    Raises:
        ValueError: an expression is invalid or is found in no path, or nothing is left to train.
    """
    for pattern in patterns:
        try:
            chosen = [variable for variable in model.weights if re.search(pattern, variable.path)]
        except re.error as error:
            raise ValueError(f"`freeze` must be regular expressions. Received: {pattern!r} ({error}).") from error
        if not chosen:
            names = sorted({variable.path.rpartition("/")[0] or variable.path for variable in model.weights})
            raise ValueError(
                f"`freeze` must be found in the path of a variable. Received: {pattern!r}; the model has "
                f"{', '.join(names)}."
            )
        for variable in chosen:
            variable.trainable = False
    if not model.trainable_variables:
        raise ValueError("`freeze` must leave variables to train. Received: patterns of all of them; freeze fewer.")
