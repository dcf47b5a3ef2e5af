"""The encoder and one model for each task, all `keras.Model`s: compile, fit, evaluate, predict, save."""

from albert_tf.models.encoder import AlbertEncoder
from albert_tf.models.pretraining import AlbertForMaskedLM, AlbertForPreTraining
from albert_tf.models.sequence_classification import AlbertForSequenceClassification

__all__ = ["AlbertEncoder", "AlbertForMaskedLM", "AlbertForPreTraining", "AlbertForSequenceClassification"]
