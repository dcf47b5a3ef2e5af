"""Scores of predictions, in plain NumPy and Python."""

from albert_tf.metrics.entities import TagScores, find_entities, tag_scores
from albert_tf.metrics.glue import (
    ChoiceScores,
    ClassificationScores,
    ConstantScore,
    MultiLabelScores,
    RegressionScores,
    best_threshold,
    classification_scores,
    cosines,
    multi_label_scores,
    regression_scores,
)
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
    "MultiLabelScores",
    "RegressionScores",
    "SquadScores",
    "TagScores",
    "best_threshold",
    "classification_scores",
    "cosines",
    "find_entities",
    "korquad_scores",
    "multi_label_scores",
    "regression_scores",
    "squad2_scores",
    "squad_scores",
    "tag_scores",
]
