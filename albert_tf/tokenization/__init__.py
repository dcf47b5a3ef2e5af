"""Tokenization with SentencePiece and WordPiece, in Python and in TensorFlow graphs, and training of vocabularies."""

from typing import TYPE_CHECKING

from albert_tf.lazy import lazy_names

if TYPE_CHECKING:
    from albert_tf.tokenization.files import TokenizerOptions, vocabulary_of
    from albert_tf.tokenization.layer import TokenizerLayer
    from albert_tf.tokenization.sentencepiece.pieces import starts_word
    from albert_tf.tokenization.sentencepiece.reference_cleanup import clean_text
    from albert_tf.tokenization.spans import cut_text, find_tokens
    from albert_tf.tokenization.tokenizer import AlbertTokenizer
    from albert_tf.tokenization.training.report import VocabularyReport
    from albert_tf.tokenization.training.sentencepiece import train_sentencepiece
    from albert_tf.tokenization.training.wordpiece import train_wordpiece

_MODULE_OF = {
    "AlbertTokenizer": "tokenizer",
    "cut_text": "spans",
    "find_tokens": "spans",
    "TokenizerLayer": "layer",
    "clean_text": "sentencepiece.reference_cleanup",
    "starts_word": "sentencepiece.pieces",
    "TokenizerOptions": "files",
    "train_sentencepiece": "training.sentencepiece",
    "train_wordpiece": "training.wordpiece",
    "VocabularyReport": "training.report",
    "vocabulary_of": "files",
}

__all__ = [
    "AlbertTokenizer",
    "TokenizerLayer",
    "TokenizerOptions",
    "VocabularyReport",
    "clean_text",
    "cut_text",
    "find_tokens",
    "starts_word",
    "train_sentencepiece",
    "train_wordpiece",
    "vocabulary_of",
]

__getattr__, __dir__ = lazy_names(__name__, _MODULE_OF)
