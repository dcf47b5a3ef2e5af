"""SentencePiece as a piece model, with Google's clean-up and the digit-comma rule."""

import functools
import hashlib
import struct
from collections.abc import Sequence
from dataclasses import astuple
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import sentencepiece

from albert_tf.files.atomic import atomic_write
from albert_tf.files.urls import location
from albert_tf.tokenization.files import TOKENIZERS_FILE, TokenizerOptions, write_folder
from albert_tf.tokenization.hangul import joins_loose_letters, warn_of_lost_hangul
from albert_tf.tokenization.interface import CleanInGraph, EncodedWithOffsets, SpecialTokens
from albert_tf.tokenization.sentencepiece.charsmap import changes, compile_clean_up
from albert_tf.tokenization.sentencepiece.digit_comma import WORD_START, apply_digit_comma, build_digit_comma_table
from albert_tf.tokenization.sentencepiece.huggingface_json import tokenizers_file
from albert_tf.tokenization.sentencepiece.offsets import PieceParts, encode_with_offsets, readable
from albert_tf.tokenization.sentencepiece.pieces import SPECIAL_PIECES, find_special_ids, starts_word
from albert_tf.tokenization.sentencepiece.proto import (
    as_control,
    is_unigram,
    read_charsmap,
    user_defined,
    user_defined_score,
)

if TYPE_CHECKING:
    from albert_tf.tokenization.sentencepiece.graph import SentencePieceInGraph

_ALL_CORES = -1


class SentencePieceModel:
    """A SentencePiece vocabulary; see `PieceModel` for its members.

    Args:
        model_proto: a serialised SentencePiece model as published or trained.
        options: TokenizerOptions; ALBERT's English models need the defaults.
        source: name of the model in error messages.

    Raises:
        ValueError: the model is not a SentencePiece model or lacks ALBERT's special pieces.
    """

    def __init__(
        self, model_proto: bytes, options: TokenizerOptions | None = None, *, source: str = "a serialised model"
    ):
        self.options = options or TokenizerOptions()
        self.source = source
        try:
            # KerasHub's page makes [MASK] a user-defined piece.
            self._model_proto = as_control(model_proto, SPECIAL_PIECES)
            self._compiled_proto = compile_clean_up(
                self._model_proto, do_lower_case=self.options.do_lower_case, keep_accents=self.options.keep_accents
            )
            self.processor = sentencepiece.SentencePieceProcessor(model_proto=self._compiled_proto)
            self.pieces = tuple(map(self.processor.IdToPiece, range(self.processor.GetPieceSize())))
        except (ValueError, RuntimeError) as error:
            raise ValueError(
                f"The file must be a SentencePiece model. Received: {source}; it cannot be read: {error}"
            ) from error
        self.special = find_special_ids(self.processor, source)
        if not np.isfinite(self._scores()).all():
            raise ValueError(f"{source} has a piece whose score is not a finite number; restore the file.")
        warn_of_lost_hangul(self.pieces, self.processor.Normalize, source)
        self._digit_comma = build_digit_comma_table(
            self.pieces,
            functools.partial(self.processor.Encode, return_type=str),
            self.processor.PieceToId,
            reference=self.options.reference_digit_comma,
        )

    def save(self, folder: str | Path) -> None:
        for_transformers = self._fits_transformers()
        write_folder(folder, self._model_proto, self.options, for_transformers=for_transformers)
        tokenizers_json = location(folder) / TOKENIZERS_FILE
        if not for_transformers:
            tokenizers_json.unlink(missing_ok=True)
            return
        split, charsmap = self._digit_comma.pieces.keys(), read_charsmap(self._compiled_proto)
        scores = dict(zip(self.pieces, self._scores(), strict=True))
        scores |= {piece: user_defined_score(piece) for piece in self._user_defined}
        composes = joins_loose_letters(self.pieces, self.processor.Normalize)
        atomic_write(tokenizers_json, tokenizers_file(scores, split, charsmap, self.special, composes=composes))

    def find_word_starts(self) -> np.ndarray:
        return np.array([starts_word(piece) for piece in self.pieces], bool)

    def find_word_ends(self) -> np.ndarray:
        return np.zeros(len(self.pieces), bool)

    def hash_vocabulary(self) -> str:
        scores = struct.pack(f"<{len(self.pieces)}f", *self._scores())
        kinds = [*astuple(self.options), is_unigram(self._model_proto), bool(self._byte_ids)]
        symbols = sorted(map(self.processor.PieceToId, self._user_defined))
        parts = bytes(kinds), str(symbols).encode(), read_charsmap(self._compiled_proto), scores
        return hashlib.sha256(b"\0".join([*parts, *(piece.encode() for piece in self.pieces)])).hexdigest()

    def tokenize(self, text: str | bytes) -> list[str]:
        text = readable(text)
        ids, pieces = (self.processor.Encode(text, return_type=kind) for kind in (int, str))
        replaced = self._digit_comma.pieces
        return [part for i, piece in zip(ids, pieces, strict=True) for part in replaced.get(i, (piece,))]

    def encode_batch(self, texts: Sequence[str | bytes], num_threads: int | None = None) -> list[np.ndarray]:
        given: Any = list(map(readable, texts))
        encode = functools.partial(self.processor.Encode, return_type="numpy")
        # Encoding a list starts a thread, which is not worthwhile for one text.
        rows = [encode(given[0])] if len(given) == 1 else encode(given, num_threads=num_threads or _ALL_CORES)
        return apply_digit_comma(self._digit_comma, rows)

    def encode_with_offsets(self, text: str | bytes) -> EncodedWithOffsets:
        return encode_with_offsets(self.processor, self._parts, text)

    def special_tokens(self) -> SpecialTokens:
        ids = {self.pieces[index]: index for index in astuple(self.special)}
        if self._byte_ids:  # nothing is unknown
            del ids[self.pieces[self.special.unk]]
        known = {piece: index for index, piece in enumerate(self.pieces) if piece not in ids} | {"": -1}
        inside = [known.get(piece.removeprefix(WORD_START), index) for index, piece in enumerate(self.pieces)]
        return SpecialTokens(ids, np.array(inside, np.int32))

    def clean(self, text: str) -> tuple[str, np.ndarray]:
        cleaned, origins = self._normalizer.Normalize(readable(text), with_offsets=True)
        return cleaned, np.array(origins, np.int64)

    def clean_in_graph(self) -> CleanInGraph:
        from albert_tf.tokenization.sentencepiece.graph import SentencePieceCleanUp

        return SentencePieceCleanUp(self._compiled_proto)

    def decode(self, ids: list[int]) -> str:
        return self.processor.Decode(ids)

    def in_graph(self, *, with_offsets: bool = False) -> "SentencePieceInGraph":
        # Imported here, because nothing else needs TensorFlow.
        from albert_tf.tokenization.sentencepiece.graph import SentencePieceInGraph, SpansInGraph

        spans = None
        if with_offsets:
            spans = SpansInGraph(self._compiled_proto, self.pieces, self.special.unk, self._parts)
        return SentencePieceInGraph(self._compiled_proto, self._digit_comma, spans)

    def __reduce__(self):
        return functools.partial(type(self), source=self.source), (self._model_proto, self.options)

    def _fits_transformers(self) -> bool:
        """Whether transformers gives the same ids; for other models it would silently give different ones."""
        unused = any(map(self.processor.IsUnused, range(len(self.pieces))))
        is_plain = is_unigram(self._model_proto) and not unused and not self._byte_ids
        return is_plain and not changes(self._compiled_proto, self._user_defined)

    @functools.cached_property
    def _normalizer(self) -> sentencepiece.SentencePieceNormalizer:
        keeps_white_space = dict.fromkeys(("add_dummy_prefix", "escape_whitespaces", "remove_extra_whitespaces"), False)
        return sentencepiece.SentencePieceNormalizer(model_proto=self._compiled_proto, **keeps_white_space)

    @functools.cached_property
    def _user_defined(self) -> frozenset[str]:
        return frozenset(user_defined(self._model_proto))

    @functools.cached_property
    def _byte_ids(self) -> tuple[int, ...]:
        """The ids of the pieces for bytes 0 to 255, or empty."""
        are_bytes = filter(self.processor.IsByte, range(len(self.pieces)))
        return tuple(sorted(are_bytes, key=self.pieces.__getitem__))

    @functools.cached_property
    def _parts(self) -> PieceParts:
        user_defined = frozenset(map(self.processor.PieceToId, self._user_defined))
        return PieceParts(self._digit_comma, frozenset(self._byte_ids), user_defined)

    def _scores(self) -> list[float]:
        return [self.processor.GetScore(index) for index in range(len(self.pieces))]
