"""Texts of thousands of pieces, split as the op of the graph splits them.

SentencePiece adds up the scores of pieces in single precision, and to stay precise begins again at 0 where a sum leaves
-100,000 to 100,000; tensorflow-text's fast op goes on. Where two splits of a text are equally good ("!!!!" as "!" +
"!!!" or as "!!!" + "!") rounding decides between them, so that behind such a place the two could disagree. A text that
comes so far is therefore given to the op outside the graph, too.
"""

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import sentencepiece

from albert_tf.tokenization.model_proto import without_bytes
from albert_tf.tokenization.offsets import as_utf8

# With something to spare: rounding adds up, and sums on the way can be further than at the end.
_SUM = 90_000.0
_UNKNOWN_PENALTY = 10.0  # SentencePiece gives an unknown character this much less than the worst piece


@dataclass(frozen=True)
class Weights:
    """What the pieces of a vocabulary of V add to a sum, and how much text they take.

    Attributes:
        scores: float64 [V], at least how far each piece moves a sum.
        lengths: int64 [V], in characters; 0 for pieces that stand for what is unknown, bytes among them.
        longest_spelling: the most characters that the clean-up makes of one.
    """

    scores: np.ndarray
    lengths: np.ndarray
    longest_spelling: int


class LongTexts:
    """Finds and splits texts with such sums.

    Args:
        processor: the model with the clean-up inside.
        weights: of its pieces.
        unk: the id of <unk>.
        byte_ids: the ids of the pieces for bytes, that of byte 0 first, where it has them.
        for_fast_op: makes the model that the fast op can take, None where it cannot take any.
    """

    def __init__(
        self,
        processor: sentencepiece.SentencePieceProcessor,
        weights: Weights,
        unk: int,
        byte_ids: Sequence[int],
        for_fast_op: Callable[[], bytes | None],
    ):
        self._processor = processor
        self._unk, self._byte_ids = unk, byte_ids
        self._for_fast_op = for_fast_op
        self._weights = weights
        self._unknown = _UNKNOWN_PENALTY + weights.scores.max()
        self._most_characters = int(_SUM / self._unknown)
        self._always_short = self._most_characters // weights.longest_spelling

    def find(self, texts: Sequence[str | bytes], rows: Sequence[np.ndarray]) -> list[int]:
        """Returns which texts of a batch may be such ones: of their ids `is_one` tells.

        Args:
            texts: the texts.
            rows: for each int32 [T], its ids, behind the digit-comma rule or not.
        """
        counts = np.fromiter(map(len, texts), np.int64, len(texts))
        long = np.flatnonzero(counts > self._always_short).tolist()
        if not long:
            return []
        ids = [rows[index] for index in long]
        ends = np.cumsum(np.fromiter(map(len, ids), np.int64, len(ids)))
        is_unknown = self._weights.lengths[np.concatenate(ids)] == 0
        has_unknown = np.diff(np.append(0, np.cumsum(is_unknown))[ends], prepend=0) > 0
        is_many = np.diff(ends, prepend=0) > self._most_characters
        return [
            index
            for index, unknown, many in zip(long, has_unknown, is_many, strict=True)
            if many or (unknown and len(self._clean(texts[index])) > self._most_characters)
        ]

    def is_one(self, text: str | bytes, ids: Sequence[int] | np.ndarray) -> bool:
        """Tells it of a text and the ids that SentencePiece gives."""
        if len(text) <= self._always_short:
            return False
        ids = np.asarray(ids, np.int64)
        lengths = self._weights.lengths[ids]
        if len(ids) <= self._most_characters and lengths.all():
            return False
        unknown = 0 if lengths.all() else len(self._clean(text)) - lengths.sum()
        return self._weights.scores[ids].sum() + unknown * self._unknown > _SUM

    def split(self, text: str | bytes) -> tuple[list[int], list[str]] | None:
        """Returns the ids of a text and the pieces of the cleaned text; None where the op cannot take the model."""
        whole = self._tokenize(as_utf8(text))
        if whole is None:
            return None
        ids, unknown = whole
        cleaned = self._clean(text)
        ends = np.cumsum(np.where(unknown > 0, unknown, self._weights.lengths[ids])).tolist()
        pieces = [cleaned[start:end] for start, end in zip([0, *ends], ends)]
        spelled = [pair for pair in zip(ids.tolist(), pieces, strict=True) for pair in self._spell(*pair)]
        return [index for index, _ in spelled], [piece for _, piece in spelled]

    def _tokenize(self, text: str | bytes) -> tuple[np.ndarray, np.ndarray] | None:
        # TensorFlow is loaded only where it is needed; whoever calls this may be building a graph of his own.
        import tensorflow as tf

        with tf.init_scope(), tf.device("CPU"):
            if self._op is None:
                return None
            whole = self._op.tokenize(tf.constant([text]))
            return whole.ids.values.numpy(), whole.unknown_lengths.numpy()

    @functools.cached_property
    def _op(self) -> Any:
        from albert_tf.tokenization.sentencepiece_graph import FastOp

        model_proto = self._for_fast_op()
        return model_proto and FastOp(without_bytes(model_proto) if self._byte_ids else model_proto, self._unk)

    def _clean(self, text: str | bytes) -> str:
        cleaned = self._processor.Normalize(as_utf8(text))
        return cleaned.decode() if isinstance(cleaned, bytes) else cleaned

    def _spell(self, index: int, piece: str) -> list[tuple[int, str]]:
        """Spells an unknown piece in bytes where the vocabulary has pieces for them."""
        if index != self._unk or not self._byte_ids:
            return [(index, piece)]
        return [(self._byte_ids[byte], f"<0x{byte:02X}>") for byte in piece.encode()]
