"""The interface between `AlbertTokenizer` and its piece model, SentencePiece or WordPiece."""

import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

if TYPE_CHECKING:
    import tensorflow as tf

# Control characters, surrogates, and separators of lines and paragraphs.
_INVISIBLE = ("Cc", "Cs", "Zl", "Zp")
# Stands for lone surrogates, which are no text: a noncharacter, which Unicode reserves for internal use.
UNREADABLE = "\ufdd1"


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
    """Special pieces as literals in text.

    Attributes:
        ids: ids by literal.
        inside_words: int32 [V], the piece that replaces each piece if it continues a word: the one without the word
            start, if there is one, and -1 for a bare word start. None if pieces do not mark word starts.
    """

    ids: dict[str, int]
    inside_words: np.ndarray | None = None


@dataclass(frozen=True)
class AddedToken:
    """A token added to a vocabulary.

    Attributes:
        content: the token as it is written.
        normalized: whether token and text are compared after the clean-up, so that "covid" is found in "COVID" where
            texts are lower-cased; else exactly as they are written.
        special: a mark for transformers, which leaves special tokens out of decoded text.

    Raises:
        ValueError: the token is not a string of visible characters.
    """

    content: str
    normalized: bool = True
    special: bool = False

    def __post_init__(self):
        content = self.content
        is_text = isinstance(content, str) and bool(content.strip())
        if not is_text or any(unicodedata.category(character) in _INVISIBLE for character in content):
            raise ValueError(
                "An added token must be a string with visible characters, and without control characters and line "
                f"breaks. Received: {repr(content)[:60]} ({type(content).__name__}); leave it out."
            )


@dataclass(frozen=True)
class EncodedWithOffsets:
    """Ids and offsets of one text; T is the number of ids.

    Attributes:
        ids: int32 [T].
        offsets: int32 [T, 2], start and exclusive end in characters of the original text, or in bytes if it is bytes.
            For a SentencePiece piece with the word-start mark, they include the white space before the word.
    """

    ids: np.ndarray
    offsets: np.ndarray


@dataclass(frozen=True)
class RaggedPieces:
    """Ids and offsets of texts in a TensorFlow graph."""

    ids: "tf.RaggedTensor"  # int32 [B, (T)]
    offsets: "tf.RaggedTensor"  # int32 [B, (T), 2], start and exclusive end in bytes of the original text


@dataclass(frozen=True)
class CleanedInGraph:
    """Texts after the clean-up, in a TensorFlow graph."""

    texts: "tf.Tensor"  # tf.string [B]
    origins: "tf.RaggedTensor"  # int32 [B, (S)], the position in the original text of each byte, in bytes


# From tf.string [B].
CleanInGraph = Callable[["tf.Tensor"], CleanedInGraph]


class PiecesInGraph(Protocol):
    """A piece model in a TensorFlow graph."""

    def tokenize(self, texts: "tf.Tensor") -> "tf.RaggedTensor":
        """Converts tf.string [B] to int32 ids [B, (T)], without special ids."""
        ...

    def tokenize_with_offsets(self, texts: "tf.Tensor") -> RaggedPieces:
        """As `tokenize`, with offsets; requires `in_graph(with_offsets=True)`."""
        ...


class PieceModel(Protocol):
    """Converts text to ids and back, without special ids and batching."""

    source: str  # where the vocabulary came from, for error messages
    special: SpecialPieceIds
    pieces: tuple[str, ...]  # in order of their ids

    @property
    def options(self) -> Any:
        """The options of the clean-up, a frozen dataclass."""
        ...

    def encode_batch(self, texts: Sequence[str | bytes], num_threads: int | None = None) -> list[np.ndarray]:
        """One int32 array of ids per text."""
        ...

    def encode_with_offsets(self, text: str | bytes) -> EncodedWithOffsets:
        """The ids and offsets of one text."""
        ...

    def in_graph(self, *, with_offsets: bool = False) -> PiecesInGraph:
        """The same model for TensorFlow graphs; raises ValueError if that is not possible."""
        ...

    def special_tokens(self) -> SpecialTokens:
        """The special tokens that a text may contain with `allow_special`."""
        ...

    def hash_vocabulary(self) -> str:
        """A hexadecimal SHA-256; equal hashes mean equal ids for every text."""
        ...

    def find_word_starts(self) -> np.ndarray:
        """bool [V], whether each piece begins a word."""
        ...

    def find_word_ends(self) -> np.ndarray:
        """bool [V], whether each piece is marked as the end of a word."""
        ...

    def tokenize(self, text: str | bytes) -> list[str]:
        """Splits a text into pieces; unknown text appears cleaned or as [UNK]."""
        ...

    def decode(self, ids: list[int]) -> str:
        """Converts valid ids to text, without special ids."""
        ...

    def save(self, folder: str | Path) -> None:
        """Writes the vocabulary and `tokenizer_config.json`."""
        ...


class VocabularyModel(PieceModel, Protocol):
    """A piece model that tokens can be added to: it tells how it cleans texts."""

    def clean(self, text: str) -> tuple[str, np.ndarray]:
        """A text after the clean-up, with all its white space; the origin of each character, and of the end."""
        ...

    def clean_in_graph(self) -> CleanInGraph:
        """`clean` for TensorFlow graphs."""
        ...


def as_text(text: str | bytes) -> str:
    """Decodes text; invalid UTF-8 becomes lone surrogates, which do not occur in pieces.

    >>> as_text("é".encode()), as_text(b"a\\xff")
    ('é', 'a\\udcff')
    """
    return text.decode("utf-8", "surrogateescape") if isinstance(text, bytes) else text
