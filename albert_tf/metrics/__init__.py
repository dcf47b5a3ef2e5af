"""Scores of predictions, in plain NumPy."""

from albert_tf.metrics.glue import (
    ClassificationScores,
    RegressionScores,
    classification_scores,
    regression_scores,
)

__all__ = ["ClassificationScores", "RegressionScores", "classification_scores", "regression_scores"]
