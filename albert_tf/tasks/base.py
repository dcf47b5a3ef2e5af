"""What a task has to provide: how texts become rows of ids, and outputs of the network become predictions.

Letters: B texts.
"""

import abc
from collections.abc import Iterator, Sequence
from typing import Any, Generic, TypeVar

import numpy as np

from albert_tf.tasks.outputs import Computed, TensorSpec
from albert_tf.tasks.settings import Settings
from albert_tf.tokenization import AlbertTokenizer

SettingsT = TypeVar("SettingsT", bound=Settings)


class TextTask(abc.ABC, Generic[SettingsT]):
    """How texts become predictions; in NumPy, so that every network can compute between the two.

    Args:
        tokenizer: AlbertTokenizer.
        settings: Settings of the model.

    Attributes:
        settings_class: class of its settings.
        inputs: names of the texts that a prediction is made from, in their order.
        max_tokens: how many tokens are computed at once, at most; None: as many as the caller says.
        reads_windows: whether long texts are read in windows, and not cut.
    """

    settings_class: type[Settings] = Settings
    inputs: tuple[str, ...] = ("text",)
    max_tokens: int | None = None
    reads_windows: bool = False

    def __init__(self, tokenizer: AlbertTokenizer, settings: SettingsT):
        self.tokenizer, self.settings = tokenizer, settings

    @property
    def max_length(self) -> int:
        """Maximum number of ids of a row; raises ValueError if it is not set yet."""
        if self.settings.max_length is None:
            raise ValueError("`max_length` must be set before texts are tokenized. Received: None.")
        return self.settings.max_length

    @abc.abstractmethod
    def encode(self, *texts: Sequence[Any]) -> Any:
        """Tokenizes texts, given in the order of `inputs`.

        Returns:
            `albert_tf.tasks.outputs.Rows`, with what decoding needs.

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

    def check_rows(self, texts: Sequence[Sequence[Any]]) -> None:
        """Raises ValueError unless all inputs have equal numbers of rows."""
        if len({len(column) for column in texts}) > 1:
            counts = " and ".join(f"{len(column)} of {name}" for name, column in zip(self.inputs, texts))
            raise ValueError(f"There must be one of {' and '.join(self.inputs)} for each row. Received: {counts}.")
