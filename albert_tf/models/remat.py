"""Rematerialisation: layer calls that are computed again in the backward pass, so that activations need not be kept.

Letters: B batch, L sequence, D hidden.
"""

from collections.abc import Callable, Sequence
from typing import Any

import keras
from keras import tree


def recomputed(function: Callable, hidden, weights, variables: Sequence, layers: Sequence[keras.layers.Layer]):
    """`function(hidden, weights)`, whose gradient computes it again, with the same dropout.

    The function is made pure for it: the variables that it reads come in as tensors, and so do the states of its
    random generators, which go on afterwards as if each layer had drawn for itself.

    Args:
        function: gives [B, L, D].
        hidden: float tensor [B, L, D].
        weights: nested structure of the float tensors that it uses beside variables.
        variables: the trainable variables that it reads.
        layers: every layer that it calls, as often as it is called.

    Returns:
        Float tensor [B, L, D], with the values and gradients of a plain call.
    """
    generators = [generator for layer in layers for generator in _generators(layer)]
    states = [(generator.state, generator.state.value * 1) for generator in set(generators)]
    tensors = [hidden, *tree.flatten(weights), *(variable.value * 1 for variable in variables)]

    def pure(*tensors):
        given = tensors[1 : len(tensors) - len(variables)]
        mapping = [*states, *zip(variables, tensors[len(tensors) - len(variables) :])]
        with keras.StatelessScope(mapping):
            return function(tensors[0], tree.pack_sequence_as(weights, list(given)))

    outputs = keras.remat(pure)(*tensors)
    for generator in generators:
        generator.next()  # each draws once in a call
    return outputs


def _generators(layer) -> list[keras.random.SeedGenerator]:
    """The generators of all dropouts in a layer that are on."""
    parts = layer._flatten_layers()
    return [part.seed_generator for part in parts if getattr(part, "seed_generator", None) is not None]


def remat_span(remat: Any) -> int:
    """How many layer calls are computed again together; 0: none.

    Raises:
        ValueError: `remat` is neither `"none"`, `"block"` nor a number of layer calls.
    """
    if remat in ("none", "block"):
        return int(remat == "block")
    if isinstance(remat, bool) or not isinstance(remat, int) or remat < 1:
        raise ValueError(
            '`remat` must be "none", "block" or a number of layer calls. Received: '
            f'remat={remat!r}; "block" saves the most memory.'
        )
    return remat
