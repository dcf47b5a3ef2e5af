"""What lies between tokenized rows and predictions: batches, outputs of a network, and arrays of a signature.

Letters: N rows, B rows of a batch, L sequence, K strings of a row.
"""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

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


class Rows(Protocol):
    """N tokenized rows, such as texts, or windows of them."""

    @property
    def lengths(self) -> np.ndarray:
        """Number of ids of each row: int [N]."""
        ...

    def batch(self, rows: np.ndarray, multiple: int | None = 8) -> dict[str, np.ndarray]:
        """The network's inputs for some rows, padded to a multiple of this length; None: see `padded_length`."""
        ...


@dataclasses.dataclass(frozen=True)
class Computed:
    """Outputs of a batch.

    Attributes:
        rows: indices of its rows, int [B].
        batch: its inputs.
        outputs: what the network computed.
    """

    rows: np.ndarray
    batch: Mapping[str, np.ndarray]
    outputs: Mapping[str, np.ndarray]


def collect(computed: Iterator[Computed], output: str, count: int) -> np.ndarray:
    """One output of all `count` rows, at least 1, in their order: [N, ...], where only N depends on the rows."""
    array: Any = None
    for part in computed:
        values = part.outputs[output]
        if array is None:
            array = np.empty((count, *values.shape[1:]), values.dtype)
        array[part.rows] = values
    return array


def softmax(logits: np.ndarray) -> np.ndarray:
    """Probabilities over the last axis."""
    weights = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True)


def as_bytes(texts: Sequence[str]) -> np.ndarray:
    """Strings as an object array of UTF-8 bytes, of whatever length they are."""
    array = np.empty(len(texts), object)
    array[:] = [text.encode("utf-8", "surrogateescape") for text in texts]
    return array


def padded_bytes(rows: Sequence[Sequence[str]]) -> np.ndarray:
    """Strings of each row as `as_bytes`, [B, K]; shorter rows end in `b""`."""
    array = np.full((len(rows), max(map(len, rows))), b"", object)
    for index, row in enumerate(rows):
        array[index, : len(row)] = as_bytes(row)
    return array


def check_labels(labels: Sequence[str], logits: np.ndarray) -> None:
    """Raises ValueError unless there is a label for each logit, [..., C]."""
    if logits.shape[-1] != len(labels):
        raise ValueError(
            f"`labels` must have {logits.shape[-1]} names, one for each number of the model. Received: "
            f"{', '.join(labels) or 'none'}; correct them, or export the model again."
        )
