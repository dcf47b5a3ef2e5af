"""Scores of predictions, in plain NumPy and Python."""

from albert_tf.metrics.glue import (
    ClassificationScores,
    RegressionScores,
    classification_scores,
    regression_scores,
)
from albert_tf.metrics.squad import AnswerScores, BestThreshold, SquadScores, squad2_scores, squad_scores

__all__ = [
    "AnswerScores",
    "BestThreshold",
    "ClassificationScores",
    "RegressionScores",
    "SquadScores",
    "classification_scores",
    "regression_scores",
    "squad2_scores",
    "squad_scores",
]
