"""LAMB: AdamW with layer-wise adaptive learning rates."""

from collections.abc import Iterable
from typing import Any

import keras
from keras import ops

from albert_tf.optimizers.adamw import AdamW, as_list
from albert_tf.optimizers.rules import check_patterns, is_excluded


def trust_ratio(weights, update):
    """The norm of the weights divided by the norm of the update; 1 if either is 0.

    Args:
        weights: tensor. The value of a variable.
        update: tensor of the same shape. The update including decay, before the learning rate.

    Returns:
        Scalar tensor of the dtype of `update`.

    Example:

    >>> import numpy as np
    >>> float(trust_ratio(np.array([3.0, 4.0]), np.array([0.0, 2.0])))
    2.5
    """
    weight_norm = ops.sqrt(ops.sum(ops.square(weights)))
    update_norm = ops.sqrt(ops.sum(ops.square(update)))
    both = ops.logical_and(weight_norm > 0, update_norm > 0)
    one = ops.ones_like(update_norm)
    return ops.where(both, weight_norm / ops.where(both, update_norm, one), one)


@keras.saving.register_keras_serializable(package="albert_tf")
class Lamb(AdamW):
    """Layer-wise adaptive moments, the optimizer that ALBERT is pretrained with.

    One step is `u = m / (sqrt(v) + epsilon) + weight_decay * w`, then `w -= learning_rate * |w| / |u| * u`. The trust
    ratio `|w| / |u|` includes decay, as in the paper and unlike in `keras.optimizers.Lamb`. There is one ratio per
    variable, so a kernel shared by all layers has one; it is 1 if either norm is 0.

    The reference has `bias_correction=False` and `global_clipnorm=1.0`, and otherwise the defaults. The paper and
    `tfa.optimizers.LAMB` have `bias_correction=True`.

    Precision and sparse gradients are as in AdamW.

    Args:
        *args, **kwargs: the arguments of AdamW, of which `learning_rate` is the first.
        exclude_from_layer_adaptation: list of str or None. The same for the trust ratio, which is then 1. `None` means
            the value of `exclude_from_weight_decay`; `()` excludes nothing, unlike in `tfa.optimizers.LAMB`.
        keep_trust_ratios: bool. Whether to keep the ratios of the last step for `trust_ratios`.

    Raises:
        ValueError: a number is out of range, a pattern is not a regular expression, or trust ratios are to be kept of
            two variables with the same path.

    Example:

    >>> import keras, numpy as np
    >>> kernel = keras.Variable([3.0, 4.0], name="kernel")
    >>> optimizer = Lamb(0.1, weight_decay=0.5)
    >>> optimizer.apply([np.array([0.1, -0.2], "float32")], [kernel])
    >>> [round(float(value), 4) for value in kernel.numpy()]
    [2.5358, 3.8143]

    References:
        Large batch optimization for deep learning, arXiv 1904.00962; `lamb_optimizer.py` of google-research/albert.
    """

    def __init__(
        self,
        *args: Any,
        exclude_from_layer_adaptation: Iterable[str] | None = None,
        keep_trust_ratios: bool = False,
        **kwargs: Any,
    ):
        super().__init__(*args, **kwargs)
        self.keep_trust_ratios = keep_trust_ratios
        self._adaptation_exclusions = check_patterns("exclude_from_layer_adaptation", exclude_from_layer_adaptation)

    def build(self, variables):
        if self.built:
            return
        super().build(variables)
        excluded = self._decay_exclusions if self._adaptation_exclusions is None else self._adaptation_exclusions
        self._is_adapted = tuple(not is_excluded(path, excluded) for path in self._paths)
        shown = [path for path, adapted in zip(self._paths, self._is_adapted) if adapted and self.keep_trust_ratios]
        if len(set(shown)) < len(shown):
            twice = next(path for path in shown if shown.count(path) > 1)
            raise ValueError(
                f"`keep_trust_ratios` must be False unless variables have different paths. Received: two variables at "
                f"{twice!r}; create their models under keras.name_scope with different names."
            )
        self._trust_ratios = {path: self.add_variable((), "ones", "float32", name="trust_ratio") for path in shown}

    def trust_ratios(self) -> dict[str, float]:
        """The trust ratios of the last step by path; empty without `keep_trust_ratios`."""
        return {path: float(ratio.numpy()) for path, ratio in self._trust_ratios.items()}

    def _adapt(self, update, weights, index: int):
        if not self._is_adapted[index]:
            return update
        ratio = trust_ratio(weights, update)
        if self.keep_trust_ratios:
            self.assign(self._trust_ratios[self._paths[index]], ratio)
        return ratio * update

    def get_config(self):
        return {
            **super().get_config(),
            "exclude_from_layer_adaptation": as_list(self._adaptation_exclusions),
            "keep_trust_ratios": self.keep_trust_ratios,
        }
