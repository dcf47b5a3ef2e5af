"""What a trained classifier says about many texts, and how right it is.

Letters: N examples, C classes, B batch, L sequence.
"""

import csv
import io
import pathlib
from collections.abc import Sequence

import numpy as np
import tensorflow as tf

from albert_tf.checkpoints import write_whole
from albert_tf.data.classification import EncodedTexts, LabelledTexts
from albert_tf.metrics import ClassificationScores, RegressionScores, classification_scores, regression_scores
from albert_tf.models import AlbertForSequenceClassification

Scores = ClassificationScores | RegressionScores

_MAIN_SCORES = {"classification": "accuracy", "regression": "pearson"}


def main_score(problem: str) -> str:
    """Name of the score that decides which of two models is better.

    >>> main_score("regression")
    'pearson'
    """
    return _MAIN_SCORES[problem]


def classifier_logits(
    model: AlbertForSequenceClassification, encoded: EncodedTexts, batch_size: int = 32
) -> np.ndarray:
    """Logits of all examples, computed in batches of similar length.

    Args:
        model: AlbertForSequenceClassification.
        encoded: the examples.
        batch_size: B.

    Returns:
        float32 [N, C], in the order of the examples.
    """
    ids = tf.TensorSpec([None, None], tf.int32)  # [B, L]

    @tf.function(input_signature=[{"input_ids": ids, "attention_mask": ids, "token_type_ids": ids}])
    def logits_of(inputs):
        return model(inputs, training=False)["logits"]

    logits = np.empty([len(encoded), model.num_labels], np.float32)
    by_length = np.argsort(-encoded.lengths, kind="stable")
    for start in range(0, len(by_length), batch_size):
        rows = by_length[start : start + batch_size]
        inputs = {name: tf.constant(array) for name, array in encoded.batch(rows, multiple=1).items()}
        logits[rows] = logits_of(inputs).numpy()
    return logits


def score(problem: str, targets: np.ndarray, logits: np.ndarray) -> Scores:
    """Scores of logits against labels.

    Args:
        problem: `"classification"` or `"regression"`.
        targets: int [N], or float [N] for regression.
        logits: float [N, C].

    Returns:
        ClassificationScores or RegressionScores.
    """
    if problem == "regression":
        return regression_scores(targets, logits[:, 0])
    return classification_scores(targets, logits.argmax(axis=1))


def softmax(logits: np.ndarray) -> np.ndarray:
    """Probabilities along the last axis: float32 of the shape of `logits`.

    >>> softmax(np.array([[0.0, 0.0], [1000.0, 0.0]])).tolist()
    [[0.5, 0.5], [1.0, 0.0]]
    """
    powers = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return (powers / powers.sum(axis=-1, keepdims=True)).astype(np.float32)


def write_predictions(
    path: pathlib.Path, texts: LabelledTexts, names: Sequence[str], problem: str, logits: np.ndarray
) -> None:
    """Writes what was predicted for each example beside its label, as TSV.

    Args:
        path: the file to write. Its columns are `line` (of the table), `label`, `prediction`, and for classes the
            probability of each.
        texts: the examples.
        names: names of the classes.
        problem: `"classification"` or `"regression"`.
        logits: float [N, C].
    """
    is_regression = problem == "regression"
    header = ["line", "label", "prediction", *([] if is_regression else [f"probability of {name}" for name in names])]
    file = io.StringIO(newline="")
    writer = csv.writer(file, delimiter="\t", lineterminator="\n")
    writer.writerow(header)
    for line, label, row, shares in zip(texts.lines, texts.labels, logits, softmax(logits)):
        prediction = [f"{row[0]:.6g}"] if is_regression else [names[row.argmax()], *(f"{p:.6f}" for p in shares)]
        writer.writerow([line, label, *prediction])
    write_whole(path, file.getvalue().encode())
