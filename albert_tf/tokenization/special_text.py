"""Texts that hold special pieces: where it is asked for, a literal "[MASK]" stands for its id."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import astuple
from typing import TYPE_CHECKING

import numpy as np

from albert_tf.tokenization.piece_model import EncodedWithOffsets, PieceEncoder, PieceModel, refuse_text
from albert_tf.tokenization.segmented_model import SegmentedModel
from albert_tf.tokenization.sentencepiece_model import SentencePieceModel

if TYPE_CHECKING:
    from albert_tf.tokenization.special_text_graph import SplitAtSpecialInGraph


def allowing_special(model: PieceModel) -> PieceEncoder:
    """Returns a model that gives special pieces in a text their ids."""
    knows = isinstance(model, SentencePieceModel | SegmentedModel)
    return model.allowing_special() if knows else SplitAtSpecial(model)


class SplitAtSpecial:
    """Splits texts at special pieces and leaves what is between them to another model.

    Args:
        model: the piece model. What follows a special piece is a text of its own to it.
    """

    def __init__(self, model: PieceModel):
        self._model = model
        self._ids = {model.pieces[index]: index for index in astuple(model.special)}
        literals = "|".join(map(re.escape, self._ids))
        self._pattern, self._pattern_of_bytes = re.compile(f"({literals})"), re.compile(f"({literals})".encode())

    def encode_batch(self, texts: Sequence[str | bytes], num_threads: int | None = None) -> list[np.ndarray]:
        parts = [self._split(text, index) for index, text in enumerate(texts)]
        rows = iter(self._model.encode_batch([part for row in parts for part in row[::2]], num_threads))
        return [np.concatenate(list(self._join(row, rows))) for row in parts]

    def encode_with_offsets(self, text: str | bytes) -> EncodedWithOffsets:
        parts, start, offsets = self._split(text), 0, []
        encoded = [self._model.encode_with_offsets(part) for part in parts[::2]]
        between = iter(encoded)
        for place, part in enumerate(parts):
            spans = np.array([[0, len(part)]], np.int32) if place % 2 else next(between).offsets
            offsets.append(spans + np.int32(start))
            start += len(part)
        ids = list(self._join(parts, iter([one.ids for one in encoded])))
        return EncodedWithOffsets(np.concatenate(ids), np.concatenate(offsets))

    def in_graph(self, *, with_offsets: bool = False) -> "SplitAtSpecialInGraph":
        # TensorFlow is loaded only where the graph is asked for: everything else here runs without it.
        from albert_tf.tokenization.special_text_graph import SplitAtSpecialInGraph

        return SplitAtSpecialInGraph(self._model.in_graph(with_offsets=with_offsets), self._ids)

    def _split(self, text: str | bytes, index: int = 0) -> list[str] | list[bytes]:
        """Returns what is between special pieces, and at every second place one of these. `index`: of the text."""
        if isinstance(text, bytes):
            return self._pattern_of_bytes.split(text)
        return self._pattern.split(text) if isinstance(text, str) else refuse_text(text, index)

    def _join(self, parts: Sequence[str | bytes], between: Iterator[np.ndarray]) -> Iterator[np.ndarray]:
        for place, part in enumerate(parts):
            literal = part.decode() if isinstance(part, bytes) and place % 2 else part
            yield np.array([self._ids[literal]], np.int32) if place % 2 else next(between)
