"""Tokenization with SentencePiece and WordPiece, in Python and in TensorFlow graphs, and training of vocabularies."""

from typing import TYPE_CHECKING

from albert_tf.lazy import lazy_names

if TYPE_CHECKING:
    from albert_tf.tokenization.layer import TokenizerLayer
    from albert_tf.tokenization.spans import cut_text, find_tokens
    from albert_tf.tokenization.tokenizer import AlbertTokenizer
    from albert_tf.tokenization.training.sentencepiece import VocabularyReport, train_sentencepiece

__all__ = [
    "AlbertTokenizer",
    "TokenizerLayer",
    "VocabularyReport",
    "cut_text",
    "find_tokens",
    "train_sentencepiece",
]
__getattr__, __dir__ = lazy_names(__name__)
