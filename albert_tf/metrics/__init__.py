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
    f1_label,
    multi_label_scores,
    regression_scores,
    undefined_correlation,
)
from albert_tf.metrics.labels import LabelScores, most_frequent
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
    "best_threshold",
    "classification_scores",
    "cosines",
    "f1_label",
    "find_entities",
    "korquad_scores",
    "most_frequent",
    "multi_label_scores",
    "regression_scores",
    "squad2_scores",
    "squad_scores",
    "tag_scores",
    "undefined_correlation",
]
