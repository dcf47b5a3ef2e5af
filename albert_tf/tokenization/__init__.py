"""Text to ids and back: clean-up, SentencePiece, WordPiece and their training, in Python and in a TensorFlow graph."""

from typing import TYPE_CHECKING

from albert_tf.lazy import lazy_names

if TYPE_CHECKING:
    from albert_tf.tokenization.albert_tokenizer import AlbertTokenizer
    from albert_tf.tokenization.folders import TokenizerOptions, vocabulary_places
    from albert_tf.tokenization.normalization import clean_text
    from albert_tf.tokenization.pieces import mark_word_starts, starts_word
    from albert_tf.tokenization.spans import cut_text, find_tokens
    from albert_tf.tokenization.training import train_sentencepiece
    from albert_tf.tokenization.vocabulary_report import VocabularyReport
    from albert_tf.tokenization.wordpiece_training import train_wordpiece

_MODULE_OF = {
    "AlbertTokenizer": "albert_tokenizer",
    "cut_text": "spans",
    "find_tokens": "spans",
    "clean_text": "normalization",
    "mark_word_starts": "pieces",
    "starts_word": "pieces",
    "TokenizerOptions": "folders",
    "train_sentencepiece": "training",
    "train_wordpiece": "wordpiece_training",
    "VocabularyReport": "vocabulary_report",
    "vocabulary_places": "folders",
}

__all__ = [
    "AlbertTokenizer",
    "TokenizerOptions",
    "VocabularyReport",
    "clean_text",
    "cut_text",
    "find_tokens",
    "mark_word_starts",
    "starts_word",
    "train_sentencepiece",
    "train_wordpiece",
    "vocabulary_places",
]

__getattr__, __dir__ = lazy_names(__name__, _MODULE_OF)
