"""A SentencePiece model with a segmenter: pieces do not cross morpheme boundaries, which have no ids themselves."""

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

import numpy as np

from albert_tf.files.urls import location
from albert_tf.tokenization.files import CONFIG_FILE, TokenizerOptions, read_config, write_config
from albert_tf.tokenization.interface import EncodedWithOffsets, as_text
from albert_tf.tokenization.korean.kiwi import BORDER, SEGMENTER, mark_borders, segmenter_version
from albert_tf.tokenization.sentencepiece.model import SentencePieceModel


class SegmentedModel(SentencePieceModel):
    """A SentencePiece vocabulary of texts that Kiwi segments first.

    Args:
        model_proto, options, source: as for `SentencePieceModel`.

    Raises:
        ValueError: the vocabulary was trained without a segmenter, or the segmenter is not installed.
    """

    def __init__(
        self, model_proto: bytes, options: TokenizerOptions | None = None, *, source: str = "a serialised model"
    ):
        super().__init__(model_proto, options, source=source)
        if BORDER not in self.pieces:
            raise ValueError(
                "A vocabulary used with a segmenter must have been trained with it. "
                f"Received: segmenter={SEGMENTER!r} for {source}; train a new vocabulary."
            )
        self._border = self.pieces.index(BORDER)
        self._version = segmenter_version()

    def hash_vocabulary(self) -> str:
        parts = (super().hash_vocabulary(), SEGMENTER, self._version)
        return hashlib.sha256(b"\0".join(part.encode() for part in parts)).hexdigest()

    def tokenize(self, text: str | bytes) -> list[str]:
        return [piece for piece in super().tokenize(mark_borders([as_text(text)])[0]) if piece != BORDER]

    def encode_batch(self, texts: Sequence[str | bytes], num_threads: int | None = None) -> list[np.ndarray]:
        return [
            row[row != self._border]
            for row in super().encode_batch(mark_borders(list(map(as_text, texts))), num_threads)
        ]

    def encode_with_offsets(self, text: str | bytes) -> EncodedWithOffsets:
        (marked,) = mark_borders([as_text(text)])
        encoded = super().encode_with_offsets(marked)
        # Maps positions of the marked text, and its end, to the original text.
        widths = (_width(character, text) for character in as_text(text))
        positions = np.cumsum([0, *(0 if character == BORDER else next(widths) for character in marked)])
        is_piece = encoded.ids != self._border
        return EncodedWithOffsets(encoded.ids[is_piece], positions[encoded.offsets[is_piece]].astype(np.int32))

    def in_graph(self, *, with_offsets: bool = False) -> NoReturn:
        raise ValueError(
            "A tokenizer inside a TensorFlow graph must work without a segmenter. "
            f"Received: segmenter={SEGMENTER!r} for {self.source}; tokenize in Python, or use a vocabulary "
            "without a segmenter."
        )

    def save(self, folder: str | Path) -> None:
        super().save(folder)
        recorded = {"segmenter": SEGMENTER, "segmenter_version": self._version}
        write_config(folder, read_config(location(folder) / CONFIG_FILE) | recorded)

    def _fits_transformers(self) -> bool:
        return False


def _width(character: str, text: str | bytes) -> int:
    return len(character.encode("utf-8", "surrogateescape")) if isinstance(text, bytes) else 1
