"""Text to ids and back: ALBERT's clean-up, SentencePiece and its training, in Python and in a TensorFlow graph."""

from typing import TYPE_CHECKING

from albert_tf.lazy import lazy_names

if TYPE_CHECKING:
    from albert_tf.tokenization.albert_tokenizer import AlbertTokenizer
    from albert_tf.tokenization.folders import TokenizerOptions, vocabulary_places
    from albert_tf.tokenization.normalization import clean_text
    from albert_tf.tokenization.pieces import starts_word
    from albert_tf.tokenization.training import VocabularyReport, train_sentencepiece

_MODULE_OF = {
    "AlbertTokenizer": "albert_tokenizer",
    "clean_text": "normalization",
    "starts_word": "pieces",
    "TokenizerOptions": "folders",
    "train_sentencepiece": "training",
    "VocabularyReport": "training",
    "vocabulary_places": "folders",
}

__all__ = [
    "AlbertTokenizer",
    "TokenizerOptions",
    "VocabularyReport",
    "clean_text",
    "starts_word",
    "train_sentencepiece",
    "vocabulary_places",
]

__getattr__, __dir__ = lazy_names(__name__, _MODULE_OF)
