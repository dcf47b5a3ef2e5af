"""Base classes of classifiers: loss, accuracy and class names.

Letters: B batch, L sequence, C classes.
"""

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from numbers import Integral
from typing import Any

from albert_tf.checkpoints.checkpoint import Checkpoint
from albert_tf.config import AlbertConfig
from albert_tf.models.base import AlbertBase
from albert_tf.models.losses import label_accuracy, label_loss

# Classifiers whose heads have the same shape, and what they label.
_LABELLED = {"AlbertForSequenceClassification": "texts", "AlbertForTokenClassification": "tokens"}


class AlbertClassifier(AlbertBase):
    """Base class of models with `logits` [B, C] or [B, L, C], one score per class.

    Labels are int [B] or [B, L]; labels of -100 are ignored by loss and accuracy.
    """

    imitated = {"logits": "classes"}

    def loss_terms(self, y, outputs, sample_weight=None):
        return {"cross_entropy": label_loss(y, outputs["logits"], sample_weight)}

    def reported_terms(self) -> tuple[str, ...]:
        return ("cross_entropy", "accuracy")

    def metric_terms(self, y, outputs):
        return {"accuracy": label_accuracy(y, outputs["logits"])}


class NamedClassifier(AlbertClassifier):
    """Base class of classifiers with a fixed set of named classes.

    Args:
        config: AlbertConfig.
        num_labels: int. Number of classes; optional if `labels` is given.
        labels: sequence of str. Class names in order of their ids.
    """

    def __init__(
        self, config: AlbertConfig, num_labels: int | None = None, labels: Sequence[str] | None = None, **kwargs
    ):
        super().__init__(config, **kwargs)
        self.labels = label_names(num_labels, labels)
        self.num_labels = len(self.labels)

    def get_config(self):
        return {**super().get_config(), "num_labels": self.num_labels, "labels": list(self.labels)}

    def head_settings(self) -> dict[str, Any]:
        return {
            "id2label": {str(number): label for number, label in enumerate(self.labels)},
            "label2id": {label: number for number, label in enumerate(self.labels)},
        }

    @classmethod
    def arguments_from_file(cls, settings, arguments):
        # The head settings of the file do not apply to other classes.
        from_file = cls.settings_from_file(settings)
        count, labels = arguments.get("num_labels"), arguments.get("labels")
        if count is not None or labels is not None:
            count = len(label_names(count, labels))
        is_same = count in (None, len(from_file.get("labels", ())))
        theirs, ours = from_file.get("problem"), arguments.get("problem")
        is_same = is_same and (ours in (None, theirs) or (theirs is None and ours != "regression"))
        return {**from_file, **arguments} if is_same else arguments

    @classmethod
    def settings_from_file(cls, settings):
        names = settings.get("id2label", {})
        return {"labels": [names[key] for key in sorted(names, key=int)]} if names else {}

    def matching(self, checkpoint, new_head):
        names = list(self.settings_from_file(dict(checkpoint.settings)).get("labels", ()))
        head = [path for path in checkpoint.arrays if path.startswith("classifier/")]
        if not head or len(names) != self.num_labels:
            return checkpoint
        arrays = dict(checkpoint.arrays)
        if reason := self.other_head(checkpoint):
            if not new_head:
                raise ValueError(
                    f"The classifier of {checkpoint.source} {reason}. Pass new_head=True to initialise a new one."
                )
            arrays = {path: array for path, array in arrays.items() if path not in head}
        elif set(names) == set(self.labels):
            columns = [names.index(label) for label in self.labels]
            arrays |= {path: arrays[path][..., columns] for path in head}
        return dataclasses.replace(checkpoint, arrays=arrays)

    def other_head(self, checkpoint: Checkpoint) -> str:
        """Why a classifier with the same number of labels does not fit this model; "" if it does."""
        others = [name for name in checkpoint.settings.get("architectures", ()) if name != self.architecture]
        labelled = next((_LABELLED[name] for name in others if name in _LABELLED), None)
        if labelled and self.architecture in _LABELLED:
            return f"labels {labelled}, but the model labels {_LABELLED[self.architecture]}"
        names = self.settings_from_file(dict(checkpoint.settings))["labels"]
        is_named = names != list(label_names(len(names))) and len(set(names)) == len(names)
        if is_named and set(names) != set(self.labels):
            return (
                f"has the labels {names}, but the model has {list(self.labels)}; if these are new names of the same "
                "classes, write them to `id2label` in its config.json"
            )
        return ""


def label_names(num_labels: int | None, labels: Sequence[str] | None = None) -> tuple[str, ...]:
    """The class names; by default LABEL_0, LABEL_1 and so on. Raises ValueError if they do not fit the number."""
    if num_labels is not None and (
        isinstance(num_labels, bool) or not isinstance(num_labels, Integral) or num_labels < 1
    ):
        raise ValueError(f"`num_labels` must be an integer of at least 1. Received: num_labels={num_labels!r}.")
    if labels is None:
        if num_labels is None:
            raise ValueError("`num_labels` or `labels` must be given. Received: neither.")
        return tuple(f"LABEL_{number}" for number in range(num_labels))
    # A set has no order, and that of a dict need not be that of its ids.
    has_order = isinstance(labels, Iterable) and not isinstance(labels, str | set | frozenset | Mapping)
    names = tuple(labels) if has_order else ()
    if not names or not all(isinstance(name, str) for name in names) or len(set(names)) < len(names):
        raise ValueError(f"`labels` must be a list of different names, one per class. Received: labels={labels!r}.")
    if num_labels not in (None, len(names)):
        raise ValueError(
            f"`labels` must have length `num_labels`. Received: num_labels={num_labels}, labels={list(names)}."
        )
    return names
