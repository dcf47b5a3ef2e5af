"""What `AlbertTokenizer` asks of the model that turns text into pieces: SentencePiece is one, WordPiece another."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, Protocol

import numpy as np

if TYPE_CHECKING:
    import tensorflow as tf


@dataclass(frozen=True)
class SpecialPieceIds:
    """The ids of ALBERT's special pieces."""

    pad: int
    unk: int
    cls: int
    sep: int
    mask: int


@dataclass(frozen=True)
class SpecialTokens:
    """Special pieces as they are written in text.

    Attributes:
        ids: the id of each.
        inside_words: int32 [V], the piece that stands for each piece where it continues a word: the one without the
            word start, where there is one, and -1 for a bare word start. None where pieces show no word starts.
    """

    ids: dict[str, int]
    inside_words: np.ndarray | None = None


@dataclass(frozen=True)
class EncodedWithOffsets:
    """Ids and spans of one text; T is the number of ids.

    Attributes:
        ids: int32 [T].
        offsets: int32 [T, 2], start and exclusive end in the original text: in characters, or in bytes where the text
            is bytes. The span of a SentencePiece piece with the word-start mark includes the white space in front of
            the word.
    """

    ids: np.ndarray
    offsets: np.ndarray


@dataclass(frozen=True)
class RaggedPieces:
    """Ids and spans of texts inside a TensorFlow graph."""

    ids: "tf.RaggedTensor"  # int32 [B, (T)]
    offsets: "tf.RaggedTensor"  # int32 [B, (T), 2], start and exclusive end in bytes of the original text


class PiecesInGraph(Protocol):
    """A model's part inside a TensorFlow graph; what it holds is saved along with the layer around it."""

    def tokenize(self, texts: "tf.Tensor") -> "tf.RaggedTensor":
        """Turns tf.string [B] into int32 ids [B, (T)], without special ones."""
        ...

    def tokenize_with_offsets(self, texts: "tf.Tensor") -> RaggedPieces:
        """Does the same, with the span of each id, where the model was put into the graph with offsets."""
        ...


class PieceModel(Protocol):
    """Turns text into ids and back, without special ids; the batch around it is `AlbertTokenizer`'s."""

    source: str  # where the vocabulary came from, for error messages
    special: SpecialPieceIds
    pieces: tuple[str, ...]  # in order of their ids

    @property
    def options(self) -> Any:
        """What is done to the text around the vocabulary: a frozen dataclass."""
        ...

    def encode_batch(self, texts: Sequence[str | bytes], num_threads: int | None = None) -> list[np.ndarray]:
        """Returns one int32 array of ids per text."""
        ...

    def encode_with_offsets(self, text: str | bytes) -> EncodedWithOffsets:
        """Returns the ids of one text with the span of each."""
        ...

    def in_graph(self, *, with_offsets: bool = False) -> PiecesInGraph:
        """Returns the same for use inside a TensorFlow graph, or raises a ValueError where it cannot be had."""
        ...

    def special_tokens(self) -> SpecialTokens:
        """Returns what a text may hold where special tokens are allowed."""
        ...

    def hash_vocabulary(self) -> str:
        """Returns a SHA-256 in hexadecimal that is equal where every text gives equal ids."""
        ...

    def find_word_starts(self) -> np.ndarray:
        """Returns bool [V], whether each piece begins a word."""
        ...

    def find_word_ends(self) -> np.ndarray:
        """Returns bool [V], whether after each piece a word begins, whatever the next piece is."""
        ...

    def tokenize(self, text: str | bytes) -> list[str]:
        """Splits a text into pieces; what no piece covers appears cleaned, or as [UNK] where the word was lost."""
        ...

    def decode(self, ids: list[int]) -> str:
        """Joins ids, all of them within the vocabulary, to a text without special ones."""
        ...

    def save(self, folder: str | Path) -> None:
        """Writes the vocabulary and `tokenizer_config.json`."""
        ...


def raise_not_text(value: object, index: int) -> NoReturn:
    """Raises ValueError because `texts[index]` is not a string."""
    raise ValueError(f"Every text must be a string. Received: {value!r} ({type(value).__name__}) at position {index}.")
