"""What models that choose among classes share: the loss, the accuracy, and the names of the classes.

Letters: B batch, L sequence, C classes.
"""

from collections.abc import Sequence
from typing import Any

from albert_tf.config import AlbertConfig
from albert_tf.models.base import AlbertBase
from albert_tf.models.losses import label_accuracy, label_loss


class AlbertClassifier(AlbertBase):
    """Base class of models whose `logits` [B, C] or [B, L, C] hold one score for each class.

    Labels are int [B] or [B, L]; those of -100 are left out of loss and accuracy.
    """

    def loss_terms(self, y, outputs, sample_weight=None):
        return {"cross_entropy": label_loss(y, outputs["logits"], sample_weight)}

    def reported_terms(self) -> tuple[str, ...]:
        return ("cross_entropy", "accuracy")

    def metric_terms(self, y, outputs, sample_weight=None):
        return {"accuracy": label_accuracy(y, outputs["logits"], sample_weight)}


class NamedClassifier(AlbertClassifier):
    """Base class of classifiers whose classes are the same for every row, and have names.

    Args:
        config: AlbertConfig.
        num_labels: int. How many classes. May be left out where `labels` are given.
        labels: sequence of str. Names of the classes in order of their ids.
    """

    def __init__(
        self, config: AlbertConfig, num_labels: int | None = None, labels: Sequence[str] | None = None, **kwargs
    ):
        super().__init__(config, **kwargs)
        self.labels = _names(num_labels, labels)
        self.num_labels = len(self.labels)

    def get_config(self):
        return {**super().get_config(), "num_labels": self.num_labels, "labels": list(self.labels)}

    def head_settings(self) -> dict[str, Any]:
        return {
            "id2label": {str(number): label for number, label in enumerate(self.labels)},
            "label2id": {label: number for number, label in enumerate(self.labels)},
        }

    @classmethod
    def arguments_from_file(cls, settings, given):
        """What the file says of its head is of no use to one with other classes."""
        from_file = cls.settings_from_file(settings)
        count = len(given.get("labels") or ()) or given.get("num_labels")
        is_same = count in (None, len(from_file.get("labels", ())))
        is_same = is_same and given.get("problem") in (None, from_file.get("problem"))
        return {**from_file, **given} if is_same else given

    @classmethod
    def settings_from_file(cls, settings):
        names = settings.get("id2label", {})
        return {"labels": [names[key] for key in sorted(names, key=int)]} if names else {}


def _names(num_labels: int | None, labels: Sequence[str] | None) -> tuple[str, ...]:
    if num_labels is None and not labels:
        raise ValueError("`num_labels` or `labels` must be given. Received: neither; say how many classes there are.")
    names = tuple(labels) if labels else tuple(f"LABEL_{number}" for number in range(num_labels or 0))
    if num_labels not in (None, len(names)):
        raise ValueError(
            f"`labels` must name `num_labels` classes. Received: num_labels={num_labels}, labels={list(names)}."
        )
    return names
