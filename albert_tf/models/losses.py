"""Losses and accuracies as sums and weights, so that they can be added up over replicas before they are divided.

Letters: B batch, P predictions, V vocabulary, C classes.
"""

from typing import Any, NamedTuple

import keras
from keras import ops


class Term(NamedTuple):
    """A mean that is still in two parts: `total / (weight + epsilon)`. Both parts are float32 scalars."""

    total: Any
    weight: Any
    epsilon: float = 0.0

    def mean(self):
        """The mean; 0 where nothing was counted."""
        return ops.divide_no_nan(self.total, self.weight + self.epsilon)


# The reference adds this to the number of masked tokens, so that a batch without any gives 0 and not NaN.
MASKED_LM_EPSILON = 1e-5


def cross_entropy(labels, logits):
    """Negative log probability of each label: int [...] and float [..., C] give float32 [...]."""
    return ops.sparse_categorical_crossentropy(ops.cast(labels, "int32"), ops.cast(logits, "float32"), from_logits=True)


def weighted_mean(values, weights=None, epsilon: float = 0.0) -> Term:
    """The mean of `values` under as many `weights`, in two parts; every weight is 1 where none are given."""
    values = ops.cast(values, "float32")
    # Weights [B, 1] beside values [B] would otherwise spread to [B, B].
    weights = ops.ones_like(values) if weights is None else ops.reshape(ops.cast(weights, "float32"), ops.shape(values))
    return Term(ops.sum(values * weights), ops.sum(weights), epsilon)


def correct(labels, logits):
    """1.0 where the largest logit is the label's: int [...] and float [..., C] give float32 [...]."""
    return ops.cast(ops.equal(ops.argmax(logits, axis=-1), ops.cast(labels, "int32")), "float32")


_CROSS_ENTROPIES = {
    "binary_crossentropy": keras.losses.BinaryCrossentropy,
    "categorical_crossentropy": keras.losses.CategoricalCrossentropy,
    "sparse_categorical_crossentropy": keras.losses.SparseCategoricalCrossentropy,
}


def on_logits(loss):
    """A loss for `compile` that takes logits, which is what the models of this room give.

    Keras' own default takes probabilities, and would train on logits without a word.
    """
    named = _CROSS_ENTROPIES.get(loss if isinstance(loss, str) else getattr(loss, "__name__", ""))
    if named is not None:
        return named(from_logits=True)
    if getattr(loss, "from_logits", True) is False:
        raise ValueError(
            f"`loss` must take logits. Received: loss={type(loss).__name__}(from_logits=False); pass from_logits=True."
        )
    return loss
