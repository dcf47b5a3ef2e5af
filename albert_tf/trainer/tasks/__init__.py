"""The tasks of `finetune` and `evaluate`, one module each; loaded when first used."""

from typing import TYPE_CHECKING

from albert_tf.lazy import lazy_names

if TYPE_CHECKING:
    from albert_tf.trainer.tasks.multiple_choice import MultipleChoice
    from albert_tf.trainer.tasks.question_answering import QuestionAnswering
    from albert_tf.trainer.tasks.sentence_embedding import SentenceEmbedding
    from albert_tf.trainer.tasks.text_classification import TextClassification
    from albert_tf.trainer.tasks.token_classification import TokenClassification

_MODULE_OF = {
    "MultipleChoice": "multiple_choice",
    "QuestionAnswering": "question_answering",
    "SentenceEmbedding": "sentence_embedding",
    "TextClassification": "text_classification",
    "TokenClassification": "token_classification",
}

__all__ = ["MultipleChoice", "QuestionAnswering", "SentenceEmbedding", "TextClassification", "TokenClassification"]

__getattr__, __dir__ = lazy_names(__name__, _MODULE_OF)
