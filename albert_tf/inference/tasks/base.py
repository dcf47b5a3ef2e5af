"""What a task has to provide: how texts become rows of ids, and outputs of the network become predictions.

Letters: B texts, L sequence.
"""

import abc
import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from albert_tf.inference.network import Computed
from albert_tf.inference.settings import Settings
from albert_tf.tokenization import AlbertTokenizer

STRING, NUMBER, INTEGER = "string", "float32", "int32"


@dataclasses.dataclass(frozen=True)
class TensorSpec:
    """An input or output of a signature.

    Attributes:
        dtype: `"string"`, `"int32"` or `"float32"`.
        shape: None for dimensions of any size; the first is the batch.
    """

    dtype: str
    shape: tuple[int | None, ...]


class TextTask(abc.ABC):
    """How texts become predictions; in NumPy, so that every network can compute between the two.

    Args:
        tokenizer: AlbertTokenizer.
        settings: Settings of the model.

    Attributes:
        inputs: names of the texts that a prediction is made from, in their order.
        max_tokens: how many tokens are computed at once, at most; None: as many as the caller says.
        reads_windows: whether long texts are read in windows, and not cut.
    """

    inputs: tuple[str, ...] = ("text",)
    max_tokens: int | None = None
    reads_windows: bool = False

    def __init__(self, tokenizer: AlbertTokenizer, settings: Settings):
        self.tokenizer, self.settings = tokenizer, settings

    @abc.abstractmethod
    def encode(self, *texts: Sequence[Any]) -> Any:
        """Tokenizes texts, given in the order of `inputs`.

        Returns:
            `albert_tf.inference.network.Rows`, with what decoding needs.

        Raises:
            ValueError: a text cannot be used.
        """

    def check(self, encoded: Any, *texts: Sequence[Any]) -> None:
        """Raises ValueError for a text that can be tokenized, but of which nothing can be predicted."""
        return None

    @abc.abstractmethod
    def decode(self, encoded: Any, computed: Iterator[Computed]) -> list[Any]:
        """The predictions for B texts, from their rows and the outputs of all batches."""

    @abc.abstractmethod
    def arrays(self, predictions: Sequence[Any]) -> dict[str, np.ndarray]:
        """Predictions as outputs of the signature `serving_default`; strings are UTF-8 bytes."""

    def decode_arrays(self, encoded: Any, computed: Iterator[Computed]) -> dict[str, np.ndarray]:
        """The outputs of `serving_default`."""
        return self.arrays(self.decode(encoded, computed))

    @abc.abstractmethod
    def specs(self, width: int) -> dict[str, TensorSpec]:
        """The outputs of `serving_default` of a network with `width` hidden units."""

    def check_labels(self, logits: np.ndarray) -> None:
        """Raises ValueError unless there is a label for each logit, [..., C]."""
        labels = self.settings.labels
        if logits.shape[-1] != len(labels):
            raise ValueError(
                f"`labels` must have {logits.shape[-1]} names, one for each number of the model. Received: "
                f"{', '.join(labels) or 'none'}; correct them, or export the model again."
            )

    def check_rows(self, texts: Sequence[Sequence[Any]]) -> None:
        """Raises ValueError unless all inputs have equal numbers of rows."""
        if len({len(column) for column in texts}) > 1:
            counts = " and ".join(f"{len(column)} of {name}" for name, column in zip(self.inputs, texts))
            raise ValueError(f"There must be one of {' and '.join(self.inputs)} for each row. Received: {counts}.")


def softmax(logits: np.ndarray) -> np.ndarray:
    """Probabilities over the last axis."""
    weights = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True)


def log_softmax(logits: np.ndarray) -> np.ndarray:
    """Logarithms of probabilities over the last axis."""
    logits = logits - logits.max(axis=-1, keepdims=True)
    return logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))


def as_bytes(texts: Sequence[str]) -> np.ndarray:
    """Strings as an object array of UTF-8 bytes, of whatever length they are."""
    found = np.empty(len(texts), object)
    found[:] = [text.encode("utf-8", "surrogateescape") for text in texts]
    return found


def padded_bytes(rows: Sequence[Sequence[str]]) -> np.ndarray:
    """Strings of each row as `as_bytes`, [B, K]; shorter rows end in `b""`."""
    array = np.full((len(rows), max(map(len, rows))), b"", object)
    for index, row in enumerate(rows):
        array[index, : len(row)] = as_bytes(row)
    return array
