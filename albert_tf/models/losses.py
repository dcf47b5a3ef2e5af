"""Losses and accuracies as sums and weights, so that they can be added up over replicas before they are divided.

Letters: B batch, L sequence, P predictions, V vocabulary, C classes.
"""

from typing import Any, NamedTuple

from keras import ops


class WeightedMean(NamedTuple):
    """A mean whose sum and weight are kept apart: `total / (weight + epsilon)`, float32 scalars.

    Totals and weights add up over replicas and microbatches; a plain sum has weight 0 and epsilon 1. In a loss the mean
    counts `factor` times; it is reported without that.
    """

    total: Any
    weight: Any
    epsilon: float = 0.0
    factor: float = 1.0

    def mean(self):
        """The mean; 0 where nothing was counted."""
        return ops.divide_no_nan(self.total, self.weight + self.epsilon)

    def times(self, factor: float) -> "WeightedMean":
        """The same mean times a factor."""
        return self._replace(total=self.total * factor)


# The reference adds this to the number of masked tokens, so that a batch without any gives 0 and not NaN.
MASKED_LM_EPSILON = 1e-5
# A label that counts for nothing, as in Hugging Face's data.
IGNORED_LABEL = -100


def cross_entropy(labels, logits):
    """Negative log probability of each label: int [...] and float [..., C] give float32 [...]."""
    return ops.sparse_categorical_crossentropy(ops.cast(labels, "int32"), ops.cast(logits, "float32"), from_logits=True)


def weighted_mean(values, weights=None, epsilon: float = 0.0) -> WeightedMean:
    """The mean of `values` under as many `weights`; every weight is 1 where none are given."""
    values = ops.cast(values, "float32")
    # Weights [B, 1] beside values [B] would otherwise spread to [B, B].
    weights = ops.ones_like(values) if weights is None else ops.reshape(ops.cast(weights, "float32"), ops.shape(values))
    return WeightedMean(ops.sum(values * weights), ops.sum(weights), epsilon)


def correct(labels, logits):
    """1.0 where the largest logit is the label's: int [...] and float [..., C] give float32 [...]."""
    return ops.cast(ops.equal(ops.argmax(logits, axis=-1), ops.cast(labels, "int32")), "float32")


def weights_of(label: str, sample_weight):
    """The weights for one of several labels: Keras repeats an array of weights for each of them, by name."""
    return sample_weight.get(label) if isinstance(sample_weight, dict) else sample_weight


def label_loss(labels, logits, sample_weight=None) -> WeightedMean:
    """Mean cross entropy of the labels int [B] or [B, L] that are not `IGNORED_LABEL`; logits float [..., C].

    Weights are those of rows [B] or [B, 1], or, where labels are [B, L], also of labels.
    """
    labels, weights = _labels_and_weights(labels, logits, sample_weight)
    return weighted_mean(cross_entropy(labels, logits), weights)


def label_accuracy(labels, logits) -> WeightedMean:
    """Share of the labels, as in `label_loss`, that have the largest logit; like Keras' metrics it ignores weights."""
    labels, weights = _labels_and_weights(labels, logits, None)
    return weighted_mean(correct(labels, logits), weights)


def _labels_and_weights(labels, logits, sample_weight):
    labels = ops.reshape(ops.cast(labels, "int32"), ops.shape(logits)[:-1])
    counted = ops.not_equal(labels, IGNORED_LABEL)
    weights = ops.cast(counted, "float32")
    if sample_weight is not None:
        given, rank = ops.cast(sample_weight, "float32"), len(labels.shape)
        is_of_labels = len(given.shape) == rank > 1
        weights = weights * (given if is_of_labels else ops.reshape(given, (-1, *[1] * (rank - 1))))
    # Class 0 stands in for what is ignored, because the cross entropy of a class that does not exist is an error.
    return ops.where(counted, labels, 0), weights
