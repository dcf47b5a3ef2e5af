"""Other ways to call the encoder's transformer blocks than one after the other.

Calls that are recomputed in the backward pass need not keep their activations. A loop in the graph neither grows with
depth, nor does the time to trace and compile it.

Letters: B batch, L sequence, D hidden.
"""

from collections.abc import Callable, Sequence
from typing import Any

import keras
from keras import ops, tree

from albert_tf.keras_internals import layers_within
from albert_tf.layers.kernels import Plain
from albert_tf.layers.transformer_block import TransformerBlock, halves_of, with_prepared_weights


def call_recomputed(blocks: Sequence[TransformerBlock], hidden, mask, kernels: Plain, span: int):
    """Calls the blocks in training, `span` at a time recomputed in the backward pass: from [B, L, D] to [B, L, D]."""
    calls = list(with_prepared_weights(blocks, kernels, True, for_later_uses))
    for first in range(0, len(calls), span):
        some, weights = zip(*calls[first : first + span])

        def apply(hidden, weights, some=some):
            for block, block_weights in zip(some, weights):
                hidden, _ = block.apply(hidden, mask, block_weights, kernels, training=True)
            return hidden

        hidden = recomputed(apply, hidden, weights, [half for block in some for half in block.halves])
    return hidden


def call_in_loop(blocks: Sequence[TransformerBlock], hidden, mask, kernels: Plain, training: bool):
    """Calls blocks that share all weights in a loop; arguments as in `call_recomputed`."""
    turn = list(with_prepared_weights(list(dict.fromkeys(blocks)), kernels, training))

    def apply(hidden):
        for block, weights in turn:
            hidden, _ = block.apply(hidden, mask, weights, kernels, training)
        return hidden

    return repeat(apply, hidden, len(blocks) // len(turn), halves_of(blocks))


def recomputed(function: Callable, hidden, weights, layers: Sequence[keras.layers.Layer]):
    """Calls `function(hidden, weights)` such that its gradient recomputes it, with the same dropout.

    The function is made pure: variables and the states of random generators are passed as tensors, and generators are
    advanced afterwards as if each layer had drawn.

    Args:
        function: from [B, L, D] to [B, L, D]; values and gradients are those of a plain call.
        weights: nested structure of the float tensors that it uses besides the variables of layer normalisations.
        layers: the layers that it calls, once per call.
    """
    generators = [generator for layer in layers for generator in _generators(layer)]
    states = [(generator.state, generator.state.value * 1) for generator in set(generators)]
    variables, values = _norm_variables(layers)
    tensors = [hidden, *tree.flatten(weights), *values]

    def pure(*tensors):
        flat_weights = tensors[1 : len(tensors) - len(variables)]
        mapping = [*states, *zip(variables, tensors[len(tensors) - len(variables) :])]
        with keras.StatelessScope(mapping):
            return function(tensors[0], tree.pack_sequence_as(weights, list(flat_weights)))

    outputs = keras.remat(pure)(*tensors)
    for generator in generators:
        generator.next()  # each draws once in a call
    return outputs


def repeat(function: Callable, hidden, count: int, layers: Sequence[keras.layers.Layer]):
    """Calls `hidden = function(hidden)` this many times, in a loop of the graph.

    The states of random generators are carried from one turn to the next, so that dropout is that of separate calls.
    Variables are passed as tensors: inside the scope of a turn, JAX would otherwise take them for constants.
    Values and gradients are those of separate calls.

    Args:
        function: from [B, L, D] to [B, L, D], calls `layers`.
    """
    seeds = [generator.state for generator in dict.fromkeys(g for layer in layers for g in _generators(layer))]
    read = list(zip(*_norm_variables(layers)))

    def turn(hidden, states):
        scope: Any = keras.StatelessScope([*read, *zip(seeds, states)])
        with scope:
            hidden = function(hidden)
        return hidden, [scope.get_current_value(seed) for seed in seeds]

    states = [seed.value * 1 for seed in seeds]
    if keras.backend.backend() == "tensorflow":  # XLA needs `maximum_iterations` for gradients, which `ops.scan` lacks
        _, hidden, states = ops.while_loop(
            lambda index, *_: index < count,
            lambda index, *carry: (index + 1, *turn(*carry)),
            (0, hidden, states),
            maximum_iterations=count,
        )
    else:
        (hidden, states), _ = ops.scan(lambda carry, _: (turn(*carry), None), (hidden, states), length=count)
    for seed, state in zip(seeds, states, strict=True):
        seed.assign(state)
    return hidden


def for_later_uses(weights):
    """The same structure of tensors, for later layer calls: the gradients of those are added up on their own.

    TensorFlow adds up the gradients of all uses of a tensor at once and keeps each until then. Those of 24 shared
    layers take 24 times the memory of the weights, so that `recomputed` saves little if batches are small.
    """
    if keras.backend.backend() != "tensorflow":  # PyTorch adds up as it goes, and XLA orders sums itself
        return weights
    import tensorflow as tf

    @tf.custom_gradient
    def pass_on(tensor):
        # Without an operation in between, TensorFlow makes one sum of all sums again.
        return tf.identity(tensor), lambda gradient: tf.raw_ops.Snapshot(input=gradient)

    return tree.map_structure(pass_on, weights)


def _norm_variables(layers) -> tuple[list, list]:
    """The variables that layers read in a call, each once, and their values; all others are in prepared weights."""
    variables = [v for layer in dict.fromkeys(layers) for v in layer.layer_norm.variables]
    return variables, [variable.value * 1 for variable in variables]


def _generators(layer) -> list[keras.random.SeedGenerator]:
    """The generators of all active dropout layers in a layer."""
    return [x.seed_generator for x in layers_within(layer) if getattr(x, "seed_generator", None) is not None]


def remat_span(remat: Any) -> int:
    """The number of layer calls that are recomputed at once, 0 for none; raises ValueError for an invalid `remat`."""
    if remat in ("none", "block"):
        return int(remat == "block")
    if isinstance(remat, bool) or not isinstance(remat, int) or remat < 1:
        raise ValueError(f'`remat` must be "none", "block" or a number of layer calls. Received: remat={remat!r}.')
    return remat


def check_scan(encoder) -> None:
    """Raises ValueError if the layers of an AlbertEncoder cannot be a loop."""
    groups = {"attention": len(encoder.attention_blocks), "ffn": len(encoder.ffn_blocks)}
    if encoder.remat_span or max(groups.values()) > 1:
        raise ValueError(
            '`scan_layers` must be False unless all layers share their weights (share="all", num_hidden_groups=1) '
            f'and remat="none". Received: scan_layers=True, groups of weights {groups}, {encoder.remat_span} layer '
            "calls recomputed at once."
        )
