"""How texts become predictions, one class for each task; a row of `albert_tf.tasks.TASKS` names its class."""

from albert_tf.inference.tasks.base import TensorSpec, TextTask
from albert_tf.inference.tasks.masked_lm import MaskedInTurn, MaskedLM, SentenceOrder
from albert_tf.inference.tasks.multiple_choice import MultipleChoice
from albert_tf.inference.tasks.question_answering import QuestionAnswering
from albert_tf.inference.tasks.sentence_embedding import SentenceEmbedding
from albert_tf.inference.tasks.text_classification import TextClassification
from albert_tf.inference.tasks.token_classification import TokenClassification

__all__ = [
    "MaskedInTurn",
    "MaskedLM",
    "MultipleChoice",
    "QuestionAnswering",
    "SentenceEmbedding",
    "SentenceOrder",
    "TensorSpec",
    "TextClassification",
    "TextTask",
    "TokenClassification",
]
