"""The tasks of `finetune` and `evaluate`, one module each; loaded when first used."""

from typing import TYPE_CHECKING

from albert_tf.lazy import lazy_names

if TYPE_CHECKING:
    from albert_tf.trainer.tasks.question_answering import QuestionAnswering
    from albert_tf.trainer.tasks.text_classification import TextClassification

_MODULE_OF = {"QuestionAnswering": "question_answering", "TextClassification": "text_classification"}

__all__ = ["QuestionAnswering", "TextClassification"]

__getattr__, __dir__ = lazy_names(__name__, _MODULE_OF)
