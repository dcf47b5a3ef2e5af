"""Text to ids and back: ALBERT's clean-up, SentencePiece and its training, in Python and in a TensorFlow graph."""

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from albert_tf.tokenization.albert_tokenizer import AlbertTokenizer
    from albert_tf.tokenization.folders import TokenizerOptions
    from albert_tf.tokenization.normalization import clean_text
    from albert_tf.tokenization.pieces import starts_word
    from albert_tf.tokenization.training import VocabularyReport, train_sentencepiece

_HOMES = {
    "AlbertTokenizer": "albert_tokenizer",
    "clean_text": "normalization",
    "starts_word": "pieces",
    "TokenizerOptions": "folders",
    "train_sentencepiece": "training",
    "VocabularyReport": "training",
}

__all__ = [
    "AlbertTokenizer",
    "TokenizerOptions",
    "VocabularyReport",
    "clean_text",
    "starts_word",
    "train_sentencepiece",
]


def __getattr__(name: str):
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
