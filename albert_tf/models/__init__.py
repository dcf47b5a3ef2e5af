"""The encoder and one model for each task, all `keras.Model`s: compile, fit, evaluate, predict, save."""

from typing import TYPE_CHECKING

from albert_tf.lazy import lazy_names

if TYPE_CHECKING:
    from albert_tf.models.encoder import AlbertEncoder
    from albert_tf.models.masked_lm import AlbertForMaskedLM
    from albert_tf.models.multiple_choice import AlbertForMultipleChoice
    from albert_tf.models.preprocessor import Preprocessor
    from albert_tf.models.pretraining import AlbertForPreTraining
    from albert_tf.models.question_answering import AlbertForQuestionAnswering
    from albert_tf.models.sentence_embedding import AlbertForSentenceEmbedding
    from albert_tf.models.sequence_classification import AlbertForSequenceClassification
    from albert_tf.models.token_classification import AlbertForTokenClassification

__all__ = [
    "AlbertEncoder",
    "AlbertForMaskedLM",
    "AlbertForMultipleChoice",
    "AlbertForPreTraining",
    "AlbertForQuestionAnswering",
    "AlbertForSentenceEmbedding",
    "AlbertForSequenceClassification",
    "AlbertForTokenClassification",
    "Preprocessor",
]
__getattr__, __dir__ = lazy_names(__name__)
