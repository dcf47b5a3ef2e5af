"""A vocabulary file as a piece model: WordPiece ("##able"), or pieces that mark the end of a word ("을_")."""

import functools
import re
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from albert_tf.tokenization.characters import CharacterTable, CleanUp, as_characters
from albert_tf.tokenization.longest_match import LongestMatch
from albert_tf.tokenization.model_proto import digest
from albert_tf.tokenization.piece_model import EncodedWithOffsets
from albert_tf.tokenization.vocabulary_file import CONTINUATION, END_MARK, SPECIAL_PIECES, WORD_END, find_special_ids
from albert_tf.tokenization.wordpiece_folder import WordPieceOptions, write_wordpiece_folder
from albert_tf.tokenization.wordpiece_offsets import CleanedText, place_pieces

if TYPE_CHECKING:
    from albert_tf.tokenization.wordpiece_graph import WordPieceInGraph

# Python splits a text at these, while the clean-up drops them.
_CONTROL_SPACES = re.compile("[\x0b\x0c\x1c-\x1f\x85]")
_MOST_REMEMBERED, _LONGEST_REMEMBERED = 1 << 17, 64


class WordPieceModel:
    """A vocabulary file; see `PieceModel` for what its members give.

    What is between two spaces is looked up as it stands, since texts repeat their words; only what was not seen before
    is cleaned and split.

    Args:
        pieces: the vocabulary in order of ids.
        options: how pieces make words, and what is done to the text before.
        source: where the vocabulary came from, for error messages.

    Raises:
        ValueError: if a piece is there twice, or [UNK], [CLS], [SEP] or [MASK] is not there.

    Example:

    >>> model = WordPieceModel(("[CLS]", "[SEP]", "[MASK]", "[UNK]", "나", "는_", "밥", "을_", "먹었다", "._"),
    ...                        WordPieceOptions(scheme="word_end", keep_accents=True))
    >>> " ".join(model.tokenize("나는 밥을 먹었다."))
    '나 는_ 밥 을_ 먹었다 ._'
    """

    def __init__(
        self, pieces: Sequence[str], options: WordPieceOptions | None = None, *, source: str = "a list of pieces"
    ):
        self.pieces = tuple(pieces)
        self.options = options or WordPieceOptions()
        self.source = source
        self.special = find_special_ids(self.pieces, source)
        self._marks_ends = self.options.scheme == WORD_END
        self._clean_up = _clean_up(self.options)
        self._table = CharacterTable(self._clean_up)
        self._match = LongestMatch(self.initial_pieces().items(), self.following_pieces().items(), self.special.unk)
        self._words = _Memory(self._match_word)
        self._chunks = _Memory(self._split_chunk)

    def initial_pieces(self) -> dict[str, int]:
        """Returns what a word can begin with, and its ids."""
        return {
            piece: index
            for index, piece in enumerate(self.pieces)
            if piece not in SPECIAL_PIECES and (self._marks_ends or not _continues(piece))
        }

    def following_pieces(self) -> dict[str, int]:
        """Returns what can come behind another piece, as it is spelled in the text, and its ids."""
        if self._marks_ends:
            return self.initial_pieces()
        return {piece[len(CONTINUATION) :]: index for index, piece in enumerate(self.pieces) if _continues(piece)}

    def save(self, folder: str | Path) -> None:
        write_wordpiece_folder(folder, self.pieces, self.options)

    def find_word_starts(self) -> np.ndarray:
        if self._marks_ends:
            return np.isin(np.arange(len(self.pieces)), self._special_ids())
        return np.array([not _continues(piece) for piece in self.pieces], bool)

    def find_word_ends(self) -> np.ndarray:
        if not self._marks_ends:
            return np.zeros(len(self.pieces), bool)
        ends = np.array([piece.endswith(END_MARK) for piece in self.pieces], bool)
        ends[self._special_ids()] = True
        return ends

    def hash_vocabulary(self) -> str:
        options = (f"{name}={value}" for name, value in asdict(self.options).items())
        return digest("\0".join([*options, *self.pieces]).encode())

    def split_words(self, text: str) -> list[str]:
        """Cleans a text and splits it into the words that are then split into pieces."""
        return text.translate(self._table).split()

    def tokenize(self, text: str | bytes) -> list[str]:
        (row,) = self.encode_batch([text])
        return [self.pieces[index] for index in row.tolist()]

    def encode_batch(self, texts: Sequence[str | bytes], num_threads: int | None = None) -> list[np.ndarray]:
        rows = (self._encode(as_characters(text, index)) for index, text in enumerate(texts))
        return [np.frombuffer(row, np.int32) for row in rows]

    def encode_with_offsets(self, text: str | bytes) -> EncodedWithOffsets:
        cleaned = CleanedText.of(as_characters(text), self._clean_up)
        words = cleaned.words()
        bare = words[-1:] if self.options.bare_final else []
        rows = [*map(self._words.__getitem__, words[: len(words) - len(bare)]), *map(self._match, bare)]
        return place_pieces(cleaned, rows, self._piece_lengths, text)

    def decode(self, ids: list[int]) -> str:
        hidden = set(self._special_ids()) - {self.special.unk}
        pieces = [self.pieces[index] for index in ids if index not in hidden]
        if self._marks_ends:
            return "".join(piece[:-1] + " " if piece.endswith(END_MARK) else piece for piece in pieces).rstrip(" ")
        return "".join(piece[len(CONTINUATION) :] if _continues(piece) else " " + piece for piece in pieces).lstrip(" ")

    def in_graph(self, *, with_offsets: bool = False) -> "WordPieceInGraph":
        # TensorFlow is loaded only where the graph is asked for: everything else here runs without it.
        from albert_tf.tokenization.wordpiece_graph import WordPieceInGraph

        return WordPieceInGraph(
            self.initial_pieces(), self.following_pieces(), self.special.unk, self._clean_up, self.options
        )

    def __reduce__(self):
        return functools.partial(WordPieceModel, source=self.source), (self.pieces, self.options)

    def _special_ids(self) -> list[int]:
        return [index for index, piece in enumerate(self.pieces) if piece in SPECIAL_PIECES]

    def _encode(self, text: str) -> bytes:
        chunks = text.split() if _CONTROL_SPACES.search(text) is None else _CONTROL_SPACES.sub("", text).split()
        if not self.options.bare_final:
            return b"".join(map(self._chunks.__getitem__, chunks))
        words = [word for chunk in chunks for word in chunk.translate(self._table).split()]
        return b"".join([*map(self._words.__getitem__, words[:-1]), *map(self._match, words[-1:])])

    def _split_chunk(self, chunk: str) -> bytes:
        words = chunk.translate(self._table).split()
        return self._match_word(words[0]) if len(words) == 1 else b"".join(map(self._words.__getitem__, words))

    def _match_word(self, word: str) -> bytes:
        return self._match(word + END_MARK if self._marks_ends else word)

    @functools.cached_property
    def _piece_lengths(self) -> np.ndarray:
        """How many characters each piece takes; the unknown one takes all of its word."""
        marks = 0 if self._marks_ends else len(CONTINUATION)
        lengths = np.array([len(piece) - marks * _continues(piece) for piece in self.pieces], np.int64)
        lengths[self.special.unk] = np.iinfo(np.int32).max
        return lengths


class _Memory(dict):
    """Remembers what a function made of strings; before it takes too much room, it forgets what was not asked for."""

    def __init__(self, function: Callable[[str], bytes]):
        super().__init__()
        self._function = function
        self._older: dict[str, bytes] = {}

    def __missing__(self, key: str) -> bytes:
        value = self._older.get(key)
        if value is None:
            value = self._function(key)
        if len(key) <= _LONGEST_REMEMBERED:
            if len(self) >= _MOST_REMEMBERED:
                self._older = dict(self)
                self.clear()
            self[key] = value
        return value


def _clean_up(options: WordPieceOptions) -> CleanUp:
    return CleanUp(
        do_lower_case=options.do_lower_case,
        strip_accents=not options.keep_accents,
        recompose=not options.reference_accents,
        split_punctuation=options.scheme != WORD_END,
        split_chinese=options.tokenize_chinese_chars and options.scheme != WORD_END,
    )


def _continues(piece: str) -> bool:
    return piece.startswith(CONTINUATION) and len(piece) > len(CONTINUATION)
