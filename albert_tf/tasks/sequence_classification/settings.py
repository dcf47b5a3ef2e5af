"""Settings of the classification of texts, and of regression.

Letters: C labels.
"""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

import numpy as np
import pydantic

from albert_tf.data.finetuning.classification import Columns
from albert_tf.files.json import nearest
from albert_tf.tasks.settings import TableSettings
from albert_tf.tasks.table import WindowsName

DEFAULT_THRESHOLD = 0.5
Threshold = float | Mapping[str, float]
_OF_SEVERAL_LABELS = ("label_columns", "label_separator", "threshold")
_OF_ONE_LABEL = ("class_weights", "label_smoothing", "positive_label")


class ClassificationSettings(TableSettings):
    """What a classifier of texts and of pairs of texts reads and predicts.

    Args:
        label_columns: where a text may have any number of labels, columns with 1 for those that it has and 0 for the
            others, which are named like the labels; instead of `label_column`.
        problem: `"classification"`, `"multi_label"` if a text may have any number of labels, or `"regression"` if
            labels are numbers, such as ranks.
        label_separator: between the labels of a text in a table; in JSON they may also be a list.
        threshold: where a text may have any number of labels, it has those with probabilities above this: a number, or
            numbers by label, 0.5 for the others. None: the number with the best F1 of all decisions on `dev`.
            `"per_label"`: for each label that with its best F1; labels of few texts get that of all.
        positive_label: of two labels, the one that F1 is of; None: the second.
        labels: class names in order of their ids. None: the labels in the training examples, sorted.
        windows: for labels and numbers of single texts, split longer ones into windows, too. Each is trained on as a
            text with the same label; to predict, the logits of the windows of a text are joined by their `"mean"`, or
            by their `"max"`, which suits several labels per text. None: the ends of longer texts are left out.
        doc_stride: distance in tokens of the starts of two windows of a text or passage. None: 128, or a third of
            `max_length` if that is less.
        class_weights: `"balanced"` weighs training examples so that all classes count alike; or weights by
            label, such as `{"spam": 5.0}`, where other labels have 1.
        label_smoothing: share of each label's probability that is spread evenly over all labels in training.
    """

    label_columns: tuple[str, ...] = ()
    problem: Literal["classification", "multi_label", "regression"] = "classification"
    label_separator: str = pydantic.Field(default=",", min_length=1)
    threshold: float | dict[str, float] | Literal["per_label"] | None = None
    positive_label: str | None = None
    labels: tuple[str, ...] | None = None
    windows: WindowsName | None = None
    doc_stride: int | None = pydantic.Field(default=None, ge=1)
    class_weights: Literal["none", "balanced"] | dict[str, Annotated[float, pydantic.Field(ge=0)]] = "none"
    label_smoothing: float = pydantic.Field(default=0.0, ge=0, lt=1)

    @pydantic.field_validator("threshold", mode="before")
    @classmethod
    def _check_threshold(cls, value):
        if value not in (None, "per_label") and not is_threshold(value):
            raise ValueError(
                "`threshold` must be a number from 0 to 1, such numbers by label, or 'per_label'. Received: "
                f"threshold={value!r}."
            )
        return value

    def check(self) -> None:
        super().check()
        several = "unless problem='multi_label', where a text may have any number of labels"
        rules = [
            ("labels", self.problem != "regression", "where a number is predicted"),
            ("windows", self.pair_column is None, "for pairs of texts, whose ends are left out"),
            ("doc_stride", self.windows is not None, "without `windows`, whose starts it is the distance of"),
            *((name, self.problem == "multi_label", several) for name in _OF_SEVERAL_LABELS),
            *((name, self.problem == "classification", "unless texts have one label each") for name in _OF_ONE_LABEL),
        ]
        for name, is_read, reason in rules:
            value = getattr(self, name)
            if not is_read and value not in (ClassificationSettings.model_fields[name].default, ()):
                raise ValueError(f"`{name}` must be left out {reason}. Received: {name}={value!r}.")
        columns = self.label_columns
        if columns and (self.label_column != "label" or len(set(columns)) < len(columns)):
            raise ValueError(
                "`label_columns` must name different columns, instead of `label_column`. Received: label_columns="
                f"{columns}, label_column={self.label_column!r}."
            )
        if self.labels is not None and isinstance(self.threshold, dict):
            thresholds_of(self.threshold, self.labels)  # raises

    @property
    def columns(self) -> Columns:
        separator = self.label_separator if self.problem == "multi_label" else None
        return Columns(self.text_column, self.pair_column, self.label_column, separator, self.label_columns)

    @property
    def takes_pairs(self) -> bool | None:
        """Whether the model was trained on pairs of texts; None: that is not recorded."""
        return self.pair_column is not None if "pair_column" in self.model_fields_set else None

    def entries(self):
        unknown = {"pair_column"} if self.takes_pairs is None else set()
        return {name: value for name, value in super().entries().items() if name not in unknown}

    @property
    def thresholds(self) -> np.ndarray:
        """The threshold of each label, float32 [C]."""
        threshold = DEFAULT_THRESHOLD if self.threshold in (None, "per_label") else self.threshold
        return thresholds_of(threshold, self.labels or ())

    @classmethod
    def recorded(cls, values, source, **facts):
        values = {**values, **facts}
        if values.get("problem") == "multi_label" and values.get("threshold") is None:
            values["threshold"] = DEFAULT_THRESHOLD
        return super().recorded(values, source)

    def changed(self, **changes: Any):
        """As of all settings; thresholds by label leave those of other labels as they are."""
        if changes.get("pair_column") and self.takes_pairs is False:
            raise ValueError("The classifier was trained on single texts, but received pairs; remove the pair column.")
        threshold = changes.get("threshold")
        if threshold == "per_label":
            raise ValueError("`threshold` must be numbers where nothing is trained. Received: threshold='per_label'.")
        if isinstance(threshold, Mapping) and is_threshold(threshold):
            before = dict(zip(self.labels or (), self.thresholds.tolist()))
            changes["threshold"] = {**before, **threshold}
        return super().changed(**changes)


def thresholds_of(threshold: Threshold, labels: Sequence[str]) -> np.ndarray:
    """The threshold of each label, float32 [C]; raises ValueError if it names another label."""
    by_label = threshold if isinstance(threshold, Mapping) else dict.fromkeys(labels, threshold)
    for name in by_label:
        if name not in labels:
            raise ValueError(f"`threshold` must name labels of the model. Received: {name!r}{nearest(name, labels)}")
    return np.array([by_label.get(label, DEFAULT_THRESHOLD) for label in labels], np.float32)


def is_threshold(value: Any) -> bool:
    """Whether it is a number from 0 to 1, or such numbers by label."""
    numbers = value.values() if isinstance(value, Mapping) else [value]
    return all(type(number) in (int, float) and 0 <= number <= 1 for number in numbers)
