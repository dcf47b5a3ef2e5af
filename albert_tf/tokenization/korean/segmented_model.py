"""A SentencePiece model with a segmenter: pieces do not cross morpheme boundaries, which have no ids themselves."""

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from albert_tf.files.urls import location
from albert_tf.tokenization.files import CONFIG_FILE, read_config, write_config
from albert_tf.tokenization.interface import EncodedWithOffsets, PieceModel, SpecialTokens
from albert_tf.tokenization.korean.kiwi import BORDER, KiwiSegmenter
from albert_tf.tokenization.sentencepiece.model import SentencePieceModel


class SegmentedModel:
    """Segments text before SentencePiece; see `PieceModel` for its members.

    Raises:
        ValueError: the vocabulary was trained without a segmenter.
    """

    def __init__(self, model: PieceModel, segmenter: KiwiSegmenter):
        if not isinstance(model, SentencePieceModel) or BORDER not in model.pieces:
            raise ValueError(
                "A vocabulary used with a segmenter must have been trained with it. "
                f"Received: segmenter={segmenter.name!r} for {model.source}; train a new vocabulary."
            )
        self._model = model
        self._segmenter = segmenter
        self._border = model.pieces.index(BORDER)
        self.source, self.options = model.source, model.options
        self.special, self.pieces = model.special, model.pieces

    def hash_vocabulary(self) -> str:
        parts = (self._model.hash_vocabulary(), self._segmenter.name, self._segmenter.version)
        return hashlib.sha256(b"\0".join(part.encode() for part in parts)).hexdigest()

    def find_word_starts(self) -> np.ndarray:
        return self._model.find_word_starts()

    def find_word_ends(self) -> np.ndarray:
        return self._model.find_word_ends()

    def tokenize(self, text: str | bytes) -> list[str]:
        return [piece for piece in self._model.tokenize(self._mark([text])[0]) if piece != BORDER]

    def encode_batch(self, texts: Sequence[str | bytes], num_threads: int | None = None) -> list[np.ndarray]:
        rows = self._model.encode_batch(self._mark(texts), num_threads)
        return [row[row != self._border] for row in rows]

    def encode_with_offsets(self, text: str | bytes) -> EncodedWithOffsets:
        (marked,) = self._mark([text])
        encoded = self._model.encode_with_offsets(marked)
        # Maps positions of the marked text, and its end, to the original text.
        widths = (_width(character, text) for character in _as_text(text))
        positions = np.cumsum([0, *(0 if character == BORDER else next(widths) for character in marked)])
        is_piece = encoded.ids != self._border
        return EncodedWithOffsets(encoded.ids[is_piece], positions[encoded.offsets[is_piece]].astype(np.int32))

    def decode(self, ids: list[int]) -> str:
        return self._model.decode(ids)

    def clean(self, text: str) -> str:
        return self._model.clean(text)

    def clean_with_origins(self, text: str) -> tuple[str, np.ndarray]:
        return self._model.clean_with_origins(text)

    def clean_in_graph(self) -> NoReturn:
        self.in_graph()

    def in_graph(self, *, with_offsets: bool = False) -> NoReturn:
        raise ValueError(
            "A tokenizer inside a TensorFlow graph must work without a segmenter. "
            f"Received: segmenter={self._segmenter.name!r} for {self.source}; tokenize in Python, or use a vocabulary "
            "without a segmenter."
        )

    def special_tokens(self) -> SpecialTokens:
        return self._model.special_tokens()

    def save(self, folder: str | Path) -> None:
        # Hugging Face's tokenizers would silently give different ids.
        self._model.save(folder, for_transformers=False)
        recorded = {"segmenter": self._segmenter.name, "segmenter_version": self._segmenter.version}
        write_config(folder, read_config(location(folder) / CONFIG_FILE) | recorded)

    def _mark(self, texts: Sequence[str | bytes]) -> list[Any]:
        """Segments texts; values of other types are returned unchanged, for the model to reject."""
        plain = [_as_text(text) if isinstance(text, str | bytes) else "" for text in texts]
        marked = self._segmenter.mark(plain)
        return [one if isinstance(text, str | bytes) else text for one, text in zip(marked, texts, strict=True)]


def _as_text(text: str | bytes) -> str:
    return text.decode("utf-8", "surrogateescape") if isinstance(text, bytes) else text


def _width(character: str, text: str | bytes) -> int:
    return len(character.encode("utf-8", "surrogateescape")) if isinstance(text, bytes) else 1
