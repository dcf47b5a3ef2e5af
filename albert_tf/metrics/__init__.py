"""Scores of predictions, in plain NumPy and Python."""

from albert_tf.metrics.entities import TagScores, tag_scores
from albert_tf.metrics.glue import (
    ChoiceScores,
    ClassificationScores,
    ConstantScore,
    MultiLabelScores,
    RegressionScores,
    classification_scores,
    cosines,
    multi_label_scores,
    regression_scores,
)
from albert_tf.metrics.labels import LabelScores
from albert_tf.metrics.squad import (
    AnswerScores,
    BestThreshold,
    SquadScores,
    korquad_scores,
    squad2_scores,
    squad_scores,
)

__all__ = [
    "AnswerScores",
    "BestThreshold",
    "ChoiceScores",
    "ClassificationScores",
    "ConstantScore",
    "LabelScores",
    "MultiLabelScores",
    "RegressionScores",
    "SquadScores",
    "TagScores",
    "classification_scores",
    "cosines",
    "korquad_scores",
    "multi_label_scores",
    "regression_scores",
    "squad2_scores",
    "squad_scores",
    "tag_scores",
]
