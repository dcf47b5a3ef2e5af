"""From texts to predictions: what `albert_tf.pipeline` returns, and its predictions."""

from typing import TYPE_CHECKING

from albert_tf.lazy import lazy_names

if TYPE_CHECKING:
    from albert_tf.inference.pipeline import Pipeline
    from albert_tf.tasks.predictions import AnswerPrediction, ClassPrediction, Entity, LabelsPrediction, MaskPrediction

__all__ = ["AnswerPrediction", "ClassPrediction", "Entity", "LabelsPrediction", "MaskPrediction", "Pipeline"]
__getattr__, __dir__ = lazy_names(__name__)
