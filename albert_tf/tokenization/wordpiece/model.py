"""Vocabulary files as piece models: WordPiece ("##able"), or pieces that mark the end of a word ("을_")."""

import functools
import hashlib
from collections.abc import Sequence
from dataclasses import asdict, astuple, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from albert_tf.tokenization.hangul import warn_of_lost_letters
from albert_tf.tokenization.interface import CleanInGraph, EncodedWithOffsets, SpecialTokens, as_text
from albert_tf.tokenization.wordpiece.cleanup import CharacterTable, CleanUp
from albert_tf.tokenization.wordpiece.longest_match import LongestMatch
from albert_tf.tokenization.wordpiece.offsets import locate_pieces
from albert_tf.tokenization.wordpiece.vocabulary import (
    CONTINUATION,
    END_MARK,
    SPECIAL_PIECES,
    WORD_END,
    WordPieceOptions,
    find_special_ids,
    write_wordpiece_folder,
)

if TYPE_CHECKING:
    from albert_tf.tokenization.wordpiece.graph import WordPieceInGraph


class WordPieceModel:
    """A vocabulary file; see `PieceModel` for its members.

    Args:
        pieces: the vocabulary in order of ids.
        options: WordPieceOptions.
        source: name of the vocabulary in error messages.

    Raises:
        ValueError: a piece occurs twice, or [UNK], [CLS], [SEP] or [MASK] is missing.

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
        if not self.options.reference_accents:
            warn_of_lost_letters(self.pieces, source)
        self._marks_ends = self.options.scheme == WORD_END
        self._table = CharacterTable(_clean_up(self.options))
        self._match = LongestMatch(*self._sort_pieces(), self.special.unk, self.options.max_word_length)

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
        named = (f"{name}={value}" for name, value in asdict(self.options).items())
        return hashlib.sha256("\0".join([*named, *self.pieces]).encode()).hexdigest()

    def tokenize(self, text: str | bytes) -> list[str]:
        (row,) = self.encode_batch([text])
        return [self.pieces[index] for index in row.tolist()]

    def encode_batch(self, texts: Sequence[str | bytes], num_threads: int | None = None) -> list[np.ndarray]:
        words = (self._table.clean(as_text(text)).split() for text in texts)
        return [np.frombuffer(b"".join(self._match_words(row)), np.int32) for row in words]

    def encode_with_offsets(self, text: str | bytes) -> EncodedWithOffsets:
        cleaned, origins = self._table.clean_with_origins(as_text(text))
        return locate_pieces(cleaned, origins, self._match_words(cleaned.split()), self._piece_lengths, text)

    def special_tokens(self) -> SpecialTokens:
        return SpecialTokens({self.pieces[index]: index for index in astuple(self.special)})

    def clean(self, text: str) -> tuple[str, np.ndarray]:
        return self._characters.clean_with_origins(text)

    def clean_in_graph(self) -> CleanInGraph:
        from albert_tf.tokenization.wordpiece.graph import WordPieceCleanUp

        return WordPieceCleanUp(self._characters.clean_up)

    def decode(self, ids: list[int]) -> str:
        hidden = set(self._special_ids()) - {self.special.unk}
        pieces = [self.pieces[index] for index in ids if index not in hidden]
        if self._marks_ends:
            return "".join(piece[:-1] + " " if piece.endswith(END_MARK) else piece for piece in pieces).rstrip(" ")
        return "".join(piece[len(CONTINUATION) :] if _continues(piece) else " " + piece for piece in pieces).lstrip(" ")

    def in_graph(self, *, with_offsets: bool = False) -> "WordPieceInGraph":
        # Imported here, because nothing else needs TensorFlow.
        from albert_tf.tokenization.wordpiece.graph import WordPieceInGraph

        return WordPieceInGraph(self._match, self._table.clean_up, self.options)

    def __reduce__(self):
        return functools.partial(WordPieceModel, source=self.source), (self.pieces, self.options)

    def _sort_pieces(self) -> tuple[dict[str, int], dict[str, int]]:
        """The ids of pieces at the beginning of words, and of those inside words, without their marks."""
        pieces = {piece: index for index, piece in enumerate(self.pieces) if piece not in SPECIAL_PIECES}
        if self._marks_ends:
            return pieces, pieces
        inside = {piece[len(CONTINUATION) :]: index for piece, index in pieces.items() if _continues(piece)}
        return {piece: index for piece, index in pieces.items() if not _continues(piece)}, inside

    def _special_ids(self) -> list[int]:
        return [index for index, piece in enumerate(self.pieces) if piece in SPECIAL_PIECES]

    def _match_words(self, words: list[str]) -> list[bytes]:
        """Returns the ids of each word, as bytes of int32."""
        if self._marks_ends:
            last = words[-1:] if self.options.bare_final else []
            words = [*(word + END_MARK for word in words[: len(words) - len(last)]), *last]
        return [self._match(word) for word in words]

    @functools.cached_property
    def _characters(self) -> CharacterTable:
        """The clean-up without the spaces around separate words."""
        return CharacterTable(replace(self._table.clean_up, split_punctuation=False, split_chinese=False))

    @functools.cached_property
    def _piece_lengths(self) -> np.ndarray:
        """The length of each piece in characters; the unknown piece has any length."""
        marks = 0 if self._marks_ends else len(CONTINUATION)
        lengths = np.array([len(piece) - marks * _continues(piece) for piece in self.pieces], np.int64)
        lengths[self.special.unk] = np.iinfo(np.int32).max
        return lengths


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
