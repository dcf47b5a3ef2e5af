"""SentencePiece as a piece model: Google's clean-up compiled into it, and the digit-comma rule behind it."""

import copy
import functools
import re
import struct
from collections.abc import Sequence
from dataclasses import astuple
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import sentencepiece

from albert_tf.tokenization.charsmap import add_rules, compile_clean_up, keep_texts, leaves_alone
from albert_tf.tokenization.digit_comma import WORD_START, apply_digit_comma, build_digit_comma_table
from albert_tf.tokenization.folders import TokenizerOptions, write_file, write_folder
from albert_tf.tokenization.hangul import joins_loose_letters, warn_of_lost_hangul
from albert_tf.tokenization.model_proto import (
    digest,
    is_unigram,
    read_charsmap,
    respell_pieces,
    user_defined,
    user_defined_as_normal,
    user_defined_score,
)
from albert_tf.tokenization.offsets import PieceParts, as_utf8, encode_with_offsets
from albert_tf.tokenization.piece_model import EncodedWithOffsets, refuse_text
from albert_tf.tokenization.pieces import find_special_ids, starts_word
from albert_tf.tokenization.tokenizers_file import TOKENIZERS_FILE, tokenizers_file

if TYPE_CHECKING:
    from albert_tf.tokenization.sentencepiece_graph import SentencePieceInGraph

_ALL_CORES = -1
# Code points for private use: the first of those that stand for special pieces, and one that no vocabulary has.
_FIRST_STAND_IN, _UNKNOWN_CHARACTER = 0x10FFF0, "\U0010fff8"
# What the fast op cannot take inside a user-defined piece: white space, and what stands for bytes that are no UTF-8.
_NOT_KEPT = re.compile(f"[\\s{WORD_START}\0\ufffd\U0010fffe\U0010ffff]")


class SentencePieceModel:
    """A SentencePiece vocabulary; see `PieceModel` for what its members give.

    Args:
        model_proto: a serialised SentencePiece model as it was published or trained.
        options: what is done to the text around SentencePiece; ALBERT's English models need the defaults.
        source: where the model came from, for error messages.

    Raises:
        ValueError: if the model is no SentencePiece model or lacks ALBERT's special pieces.
    """

    def __init__(
        self, model_proto: bytes, options: TokenizerOptions | None = None, *, source: str = "a serialised model"
    ):
        self.options = options or TokenizerOptions()
        self.source = source
        self._model_proto = model_proto
        try:
            self._compiled_proto = compile_clean_up(
                model_proto, do_lower_case=self.options.do_lower_case, keep_accents=self.options.keep_accents
            )
            self.processor = sentencepiece.SentencePieceProcessor(model_proto=self._compiled_proto)
        except (ValueError, RuntimeError) as error:
            raise ValueError(
                f"The file must be a SentencePiece model. Received: {source}; it cannot be read: {error}"
            ) from error
        self.pieces = tuple(map(self.processor.IdToPiece, range(self.processor.GetPieceSize())))
        self.special = find_special_ids(self.processor, source)
        # The special pieces that text can yield.
        self._yields: tuple[int, ...] = ()
        warn_of_lost_hangul(self.pieces, self.processor.Normalize, source)
        self._digit_comma = build_digit_comma_table(
            self.pieces,
            functools.partial(self.processor.Encode, return_type=str),
            self.processor.PieceToId,
            reference=self.options.reference_digit_comma,
        )

    def save(self, folder: str | Path, *, for_transformers: bool = True) -> None:
        # transformers makes other ids of other kinds, without a word about it.
        for_transformers = for_transformers and self._is_plain_unigram()
        for_transformers = for_transformers and leaves_alone(self._compiled_proto, self._user_defined)
        write_folder(folder, self._model_proto, self.options, for_transformers=for_transformers)
        place = Path(folder) / TOKENIZERS_FILE
        if not for_transformers:
            place.unlink(missing_ok=True)
            return
        split, charsmap = self._digit_comma.pieces.keys(), read_charsmap(self._compiled_proto)
        scores = dict(zip(self.pieces, self._scores(), strict=True))
        scores |= {piece: user_defined_score(piece) for piece in self._user_defined}
        composes = joins_loose_letters(self.pieces, self.processor.Normalize)
        write_file(place, tokenizers_file(scores, split, charsmap, self.special, composes=composes))

    def find_word_starts(self) -> np.ndarray:
        return np.array([starts_word(piece) for piece in self.pieces], bool)

    def find_word_ends(self) -> np.ndarray:
        return np.zeros(len(self.pieces), bool)

    def hash_vocabulary(self) -> str:
        scores = struct.pack(f"<{len(self.pieces)}f", *self._scores())
        options = bytes(astuple(self.options))
        return digest(b"\0".join([options, scores, *(piece.encode() for piece in self.pieces)]))

    def tokenize(self, text: str | bytes) -> list[str]:
        ids, pieces = self._run(text, int), self._run(text, str)
        replaced = self._digit_comma.pieces
        return [part for i, piece in zip(ids, pieces, strict=True) for part in replaced.get(i, (piece,))]

    def encode_batch(self, texts: Sequence[str | bytes], num_threads: int | None = None) -> list[np.ndarray]:
        num_threads = _ALL_CORES if num_threads is None else num_threads
        # A list costs the start of a thread, which one text does not need.
        rows = [self._run(texts[0], "numpy")] if len(texts) == 1 else self._run(list(texts), "numpy", num_threads)
        return self._finish(rows)

    def encode_with_offsets(self, text: str | bytes) -> EncodedWithOffsets:
        encoded = encode_with_offsets(self.processor, self._parts, text)
        kept = self._kept(encoded.ids)
        return EncodedWithOffsets(encoded.ids[kept], encoded.offsets[kept])

    def allowing_special(self) -> "SentencePieceModel":
        """Returns a model that gives special pieces in a text their ids; with byte fallback nothing is unknown.

        The clean-up turns each into a character of its own before any other rule applies, and that is a piece. What
        follows it directly goes on inside the word, and the white space in front of it goes.
        """
        ids = [index for index in astuple(self.special) if index != self.special.unk]
        respelled = {index: chr(_FIRST_STAND_IN + place) for place, index in enumerate(ids)}
        rules = {self.pieces[index]: stand_in for index, stand_in in respelled.items()}
        unknown = () if self._byte_ids else (self.pieces[self.special.unk],)
        rules |= dict.fromkeys([*unknown, *respelled.values()], _UNKNOWN_CHARACTER)
        other = copy.copy(self)
        other._compiled_proto = respell_pieces(add_rules(self._compiled_proto, rules), respelled)
        other.processor = sentencepiece.SentencePieceProcessor(model_proto=other._compiled_proto)
        other.pieces = tuple(respelled.get(index, piece) for index, piece in enumerate(self.pieces))
        other._yields = tuple(ids)
        return other

    def decode(self, ids: list[int]) -> str:
        return self.processor.Decode(ids)

    def in_graph(self, *, with_offsets: bool = False) -> "SentencePieceInGraph":
        # TensorFlow is loaded only where the graph is asked for: everything else here runs without it.
        from albert_tf.tokenization.sentencepiece_graph import GraphOptions, SentencePieceInGraph
        from albert_tf.tokenization.spans_in_graph import SpansInGraph
        from albert_tf.tokenization.spelling_in_graph import SpellingInGraph

        model_proto = self._for_fast_op()
        if with_offsets and not model_proto:
            raise ValueError(
                "A vocabulary must be a unigram one that the fast op can take for offsets in the graph. "
                f"Received: {self.source}; take the offsets that the tokenizer itself returns."
            )
        options = GraphOptions(self.special.unk, bool(model_proto), self._yields, self._bare_start)
        if not model_proto:
            return SentencePieceInGraph(self._compiled_proto, self._digit_comma, options)
        spelling = SpellingInGraph(model_proto, self.pieces, self._byte_ids) if self._byte_ids else None
        spans = SpansInGraph(model_proto, self.pieces, self._parts) if with_offsets else None
        return SentencePieceInGraph(model_proto, self._digit_comma, options, spelling, spans)

    def __reduce__(self):
        return functools.partial(SentencePieceModel, source=self.source), (self._model_proto, self.options)

    @property
    def _bare_start(self) -> int:
        return self.processor.PieceToId(WORD_START)

    def _finish(self, rows: list[np.ndarray]) -> list[np.ndarray]:
        rows = apply_digit_comma(self._digit_comma, rows)
        return [row[self._kept(row)] for row in rows] if self._yields else rows

    def _kept(self, ids: np.ndarray) -> np.ndarray:
        """bool, false on each word start that is a piece by itself in front of a special piece."""
        precedes_special = np.zeros(len(ids), bool)
        precedes_special[:-1] = np.isin(ids[1:], self._yields)
        return ~precedes_special | (ids != self._bare_start)

    def _for_fast_op(self) -> bytes | None:
        """Returns the model as the fast op can take it, or None where it cannot."""
        fits = self._is_unigram_without_unused
        # The fast op knows no other ways with white space than these.
        fits = fits and self.processor.Normalize(" a  b ") == f"{WORD_START}a{WORD_START}b"
        # Where no text yields a word start alone, it is spelled in bytes, and they are of characters here.
        bare = self._bare_start
        fits = fits and (not self._byte_ids or not (bare == self.special.unk or self.processor.IsControl(bare)))
        if not fits or any(map(_NOT_KEPT.search, self._user_defined)):
            return None
        try:
            return user_defined_as_normal(keep_texts(self._compiled_proto, self._user_defined))
        except RuntimeError:  # there are too many rules for one place
            return None

    def _is_plain_unigram(self) -> bool:
        return self._is_unigram_without_unused and not self._byte_ids

    @functools.cached_property
    def _is_unigram_without_unused(self) -> bool:
        return is_unigram(self._model_proto) and not any(map(self.processor.IsUnused, range(len(self.pieces))))

    @functools.cached_property
    def _user_defined(self) -> frozenset[str]:
        return frozenset(user_defined(self._model_proto))

    @functools.cached_property
    def _byte_ids(self) -> tuple[int, ...]:
        """The ids of the pieces for bytes, that of byte 0 first: all, as SentencePiece demands, or none."""
        are_bytes = filter(self.processor.IsByte, range(len(self.pieces)))
        return tuple(sorted(are_bytes, key=self.pieces.__getitem__))

    @functools.cached_property
    def _parts(self) -> PieceParts:
        own = frozenset(map(self.processor.PieceToId, self._user_defined))
        return PieceParts(self._digit_comma, frozenset(self._byte_ids), own)

    def _scores(self) -> list[float]:
        return [self.processor.GetScore(index) for index in range(len(self.pieces))]

    def _run(self, texts: Any, return_type: Any, num_threads: int = 1) -> Any:
        """Encodes; only where the fast call refuses a text is each one looked at."""
        encode = functools.partial(self.processor.Encode, return_type=return_type, num_threads=num_threads)
        try:
            return encode(texts)
        except (RuntimeError, TypeError):
            if isinstance(texts, list):
                return encode([_checked(text, index) for index, text in enumerate(texts)])
            return encode(_checked(texts, 0))


def _checked(text: Any, index: int) -> Any:
    if not isinstance(text, str | bytes):
        refuse_text(text, index)
    return as_utf8(text)
