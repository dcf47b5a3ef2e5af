"""What a program needs to know, besides weights and vocabulary, to turn texts into predictions."""

import dataclasses
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any, get_args

import numpy as np

from albert_tf.files.atomic import sha256
from albert_tf.files.json import nearest, read_json
from albert_tf.tasks import TASKS, Pooling, WindowsName

# In an exported folder, a JSON object with these settings among others.
SETTINGS_FILE = "model.json"
_CURE = "export the model again"
DEFAULT_THRESHOLD = 0.5
Threshold = float | Mapping[str, float]


@dataclasses.dataclass(frozen=True)
class Settings:
    """The task of a model and its options.

    Attributes:
        task: name of a row of `albert_tf.tasks.TASKS`, without the kind of head.
        max_length: maximum number of ids of a row.
        labels: class names in order of their ids.
        problem: of a classifier of texts, as in AlbertForSequenceClassification.
        threshold: where a text may have any number of labels, it has those with probabilities above this: a number, or
            numbers by label, 0.5 for the others.
        label_separator: of such labels in tables.
        takes_pairs: whether a classifier of texts takes pairs.
        normalize: whether sentence embeddings have length 1.
        pooling: how sentence embeddings are made of the outputs for tokens, as in AlbertForSentenceEmbedding.
        dense_size: length of sentence embeddings, if there is a layer after pooling.
        doc_stride: distance in tokens of the starts of two windows of a long text. None: 128, or a third of
            `max_length` if that is less.
        windows: how a classifier of single texts joins the logits of the windows of a long text, `"mean"` or `"max"`.
            None: the ends of long texts are left out.
        max_question_length, max_answer_length: as in fine-tuning; None: the defaults.
        no_answer_threshold: a question is not answered if its score of "no answer" is above this; None: all are.
        tags_words: whether tags were trained on words, not on spans of characters.

    Raises:
        ValueError: a value has a wrong type, or the model cannot read windows.
    """

    task: str
    max_length: int
    labels: tuple[str, ...] = ()
    problem: str = "classification"
    threshold: Threshold = DEFAULT_THRESHOLD
    label_separator: str = ","
    takes_pairs: bool = False
    normalize: bool = False
    pooling: Pooling = "mean"
    dense_size: int | None = None
    doc_stride: int | None = None
    windows: WindowsName | None = None
    max_question_length: int | None = None
    max_answer_length: int | None = None
    no_answer_threshold: float | None = None
    tags_words: bool = False

    def __post_init__(self):
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            is_valid, expected = _CHECKS[field.name]
            if not is_valid(value):
                raise ValueError(f"`{field.name}` must be {expected}. Received: {str(value)[:60]}.")
        thresholds_of(self.threshold, self.labels)  # raises
        if self.windows is not None and (self.task != "sequence_classification" or self.takes_pairs):
            kind = "pairs of texts" if self.takes_pairs else self.task.replace("_", " ")
            raise ValueError(
                f"`windows` must be left out for a model of {kind}; they are for labels and numbers of single texts. "
                f"Received: windows={self.windows!r}."
            )

    @property
    def thresholds(self) -> np.ndarray:
        """The threshold of each label, float32 [C]."""
        return thresholds_of(self.threshold, self.labels)

    def with_threshold(self, threshold: Threshold | None) -> "Settings":
        """The settings with another threshold; numbers by label leave those of other labels as they are.

        Raises:
            ValueError: a text has one label, or a number is not from 0 to 1 or of no label.
        """
        if threshold is None:
            return self
        if self.problem != "multi_label" or self.task != "sequence_classification":
            raise ValueError(
                "`threshold` must be left out unless a text may have any number of labels (problem='multi_label'). "
                f"Received: threshold={threshold}."
            )
        if isinstance(threshold, Mapping):
            threshold = {**dict(zip(self.labels, map(float, self.thresholds))), **threshold}
        return dataclasses.replace(self, threshold=threshold)

    def options(self, *names: str) -> dict[str, Any]:
        """Those of the named options that are not None, for functions that have defaults for the others."""
        return {name: value for name in names if (value := getattr(self, name)) is not None}

    @classmethod
    def read(cls, folder: pathlib.Path) -> "Settings":
        """Reads the settings of an exported model; raises ValueError if they are missing or damaged."""
        file = folder / SETTINGS_FILE
        content = read_json(file, cure=_CURE)
        try:
            values = {field.name: content[field.name] for field in dataclasses.fields(cls) if field.name in content}
            return cls(**{**values, "labels": tuple(values.get("labels", ()))})
        except (AttributeError, TypeError, ValueError) as error:
            raise ValueError(f"{file}: {error} {_CURE[:1].upper()}{_CURE[1:]}.") from None

    def entries(self, folder: pathlib.Path) -> dict[str, Any]:
        """What `model.json` says of every export: the settings, and size and SHA-256 of each file in its folder."""
        files = {
            path.relative_to(folder).as_posix(): {"bytes": path.stat().st_size, "sha256": sha256(path)}
            for path in sorted(folder.rglob("*"))
            if path.is_file()
        }
        return {**dataclasses.asdict(self), "files": files}


def thresholds_of(threshold: Threshold, labels: Sequence[str]) -> np.ndarray:
    """The threshold of each label, float32 [C]; raises ValueError if it names another label."""
    by_label = threshold if isinstance(threshold, Mapping) else dict.fromkeys(labels, threshold)
    for name in by_label:
        if name not in labels:
            raise ValueError(f"`threshold` must name labels of the model. Received: {name!r}{nearest(name, labels)}")
    return np.array([by_label.get(label, DEFAULT_THRESHOLD) for label in labels], np.float32)


def _is_string(value: Any) -> bool:
    return isinstance(value, str)


def _is_count(value: Any) -> bool:
    return value is None or (type(value) is int and value >= 1)


def _is_share(value: Any) -> bool:
    return type(value) in (int, float) and 0 <= value <= 1


def is_threshold(value: Any) -> bool:
    """Whether it is a number from 0 to 1, or such numbers by label."""
    return all(map(_is_share, value.values())) if isinstance(value, Mapping) else _is_share(value)


def _are_names(value: Any) -> bool:
    return isinstance(value, Sequence) and all(map(_is_string, value)) and len(set(value)) == len(value)


_TASKS = tuple(dict.fromkeys(row.name.removesuffix("_beam") for row in TASKS))
_FLAG = (lambda value: isinstance(value, bool), "true or false")
_WINDOWS = get_args(WindowsName)
_COUNT = (_is_count, "an integer of at least 1, or null")
_CHECKS = {
    "task": (lambda value: value in _TASKS, f"one of {', '.join(_TASKS)}"),
    "max_length": (lambda value: type(value) is int and value >= 3, "an integer of at least 3"),
    "labels": (_are_names, "a list of different strings"),
    "problem": (_is_string, "a string"),
    "threshold": (is_threshold, "a number from 0 to 1, or such numbers by label"),
    "label_separator": (lambda value: isinstance(value, str) and value != "", "a string that is not empty"),
    "pooling": (lambda value: value in get_args(Pooling), f"one of {', '.join(get_args(Pooling))}"),
    **dict.fromkeys(("takes_pairs", "tags_words", "normalize"), _FLAG),
    **dict.fromkeys(("dense_size", "doc_stride", "max_question_length", "max_answer_length"), _COUNT),
    "windows": (lambda value: value in (None, *_WINDOWS), f"one of {', '.join(_WINDOWS)}, or null"),
    "no_answer_threshold": (lambda value: value is None or type(value) in (int, float), "a number or null"),
}
