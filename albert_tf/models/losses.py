"""Losses and accuracies as weighted means, whose totals and weights can be summed over replicas before division.

Letters: B batch, L sequence, P predictions, V vocabulary, C classes.
"""

import contextlib
import contextvars
from collections.abc import Iterator
from typing import Any, NamedTuple

from keras import ops

from albert_tf.data.finetuning.encoded import IGNORED_LABEL


class WeightedMean(NamedTuple):
    """The mean `total / (weight + epsilon)` of float32 scalars, not yet divided.

    Totals and weights are summed over replicas and microbatches. A plain sum has weight 0 and epsilon 1.
    """

    total: Any
    weight: Any
    epsilon: float = 0.0

    def mean(self):
        """The mean, or 0 if there is nothing to divide by."""
        return ops.divide_no_nan(self.total, self.weight + self.epsilon)

    def times(self, factor: float) -> "WeightedMean":
        """The same mean times a factor."""
        return self._replace(total=self.total * factor)


_COUNTED: contextvars.ContextVar[Any] = contextvars.ContextVar("counted", default=None)


@contextlib.contextmanager
def counting(rows: Any) -> Iterator[None]:
    """Within it, means leave out the rows where `rows` [B] is 0, not 1: copies that fill a batch. None: all count."""
    token = _COUNTED.set(rows)
    try:
        yield
    finally:
        _COUNTED.reset(token)


# Added to the number of masked tokens, as in the reference.
MASKED_LM_EPSILON = 1e-5


def cross_entropy(labels, logits, label_smoothing: float = 0.0):
    """Negative log probability of each label: int [...] and float [..., C] give float32 [...].

    `label_smoothing` is the share of a label's probability that is spread evenly over all classes.
    """
    if label_smoothing:
        targets = ops.one_hot(ops.cast(labels, "int32"), logits.shape[-1], dtype="float32")
        targets = targets * (1 - label_smoothing) + label_smoothing / logits.shape[-1]
        return ops.categorical_crossentropy(targets, ops.cast(logits, "float32"), from_logits=True)
    return ops.sparse_categorical_crossentropy(ops.cast(labels, "int32"), ops.cast(logits, "float32"), from_logits=True)


def weighted_mean(values, weights=None, epsilon: float = 0.0, sample_weight=None) -> WeightedMean:
    """The sum of `values` times `weights` times sample weights, over the sum of `weights`.

    As in Keras, sample weights do not change what the sum is divided by, so that they count in batches of any size.
    Rows that are not `counting` are in neither sum.

    Args:
        values: tensor [B] or [B, L].
        weights: numbers of the same size, such as 0 where a token is not counted. None: all 1.
        epsilon: float. Added to the sum of the weights.
        sample_weight: numbers per row, [B] or [B, 1], or per value. None: all 1.
    """
    values = ops.cast(values, "float32")
    # Reshaped, because weights [B, 1] and values [B] would broadcast to [B, B].
    weights = ops.ones_like(values) if weights is None else ops.reshape(ops.cast(weights, "float32"), ops.shape(values))
    if (counted := _COUNTED.get()) is not None:
        weights = weights * as_factors(counted, weights)
    weighted = values * weights
    if sample_weight is not None:
        weighted = weighted * as_factors(sample_weight, weighted)
    return WeightedMean(ops.sum(weighted), ops.sum(weights), epsilon)


def as_factors(sample_weight, values):
    """Sample weights [B], [B, 1] or of the shape of `values` [B] or [B, ...], in a shape that broadcasts to it."""
    sample_weight, rank = ops.cast(sample_weight, "float32"), len(values.shape)
    if len(sample_weight.shape) == rank > 1:
        return sample_weight
    return ops.reshape(sample_weight, (-1, *[1] * (rank - 1)))


def correct(labels, logits):
    """1.0 where the label has the largest logit, else 0.0: int [...] and float [..., C] give float32 [...]."""
    return ops.cast(ops.equal(ops.argmax(logits, axis=-1), ops.cast(labels, "int32")), "float32")


def weights_for(label: str, sample_weight):
    """The sample weights for one of several labels; Keras may pass them as a dict."""
    return sample_weight.get(label) if isinstance(sample_weight, dict) else sample_weight


def label_loss(labels, logits, sample_weight=None, label_smoothing: float = 0.0) -> WeightedMean:
    """Mean cross entropy of labels int [B] or [B, L] except `IGNORED_LABEL`, with logits float [..., C].

    Sample weights are per row, [B] or [B, 1], or per label, [B, L].
    """
    labels, counted = _counted_labels(labels, logits)
    return weighted_mean(cross_entropy(labels, logits, label_smoothing), counted, sample_weight=sample_weight)


def label_accuracy(labels, logits) -> WeightedMean:
    """Fraction of labels, as in `label_loss`, that have the largest logit; unweighted, like Keras' metrics."""
    labels, counted = _counted_labels(labels, logits)
    return weighted_mean(correct(labels, logits), counted)


def _counted_labels(labels, logits):
    """The labels in the shape of the logits' rows, and 1.0 for those that are not ignored, 0.0 for others."""
    labels = ops.reshape(ops.cast(labels, "int32"), ops.shape(logits)[:-1])
    counted = ops.not_equal(labels, IGNORED_LABEL)
    # Ignored labels become class 0, because the cross entropy of a missing class is an error.
    return ops.where(counted, labels, 0), ops.cast(counted, "float32")


def masked_lm_mean(value_of, y, logits, sample_weight=None, epsilon=0.0):
    """The mean of `value_of(labels, logits)` over the masked tokens, by `masked_lm_weights`, not yet divided."""
    values, sample_weight = value_of(y["masked_lm_ids"], logits), weights_for("masked_lm_ids", sample_weight)
    return weighted_mean(values, y["masked_lm_weights"], epsilon, sample_weight)
