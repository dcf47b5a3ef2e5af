"""A linear model on TF-IDF features: what a fine-tuned model has to beat."""

from typing import Any

import numpy as np

from albert_tf.data.finetuning.classification import LabelledTexts
from albert_tf.files.installation import install_command


def tfidf_outputs(train: LabelledTexts, targets: np.ndarray, dev: LabelledTexts, problem: str) -> np.ndarray:
    """Trains on `train` and predicts `dev`: n-grams of 1 to 4 characters, logistic or ridge regression.

    Args:
        train: N examples; a pair is one text.
        targets: class ids int [N], numbers float [N], or decisions [N, C] for `"multi_label"`.
        dev: the examples to predict.
        problem: `"classification"`, `"regression"` or `"multi_label"`.

    Returns:
        One column per class (positive where it is predicted, if several may be) or the number, float [M, C].

    Raises:
        ValueError: scikit-learn is not installed, or all texts to train on are empty.
    """
    try:
        from sklearn.feature_extraction.text import TfidfVectorizer
        from sklearn.linear_model import LogisticRegression, Ridge
    except ImportError:
        raise ValueError(
            f"The TF-IDF baseline needs scikit-learn; install it with {install_command('baseline')}."
        ) from None
    texts = _texts(train)
    if not any(text.strip() for text in texts):
        raise ValueError(
            f"All texts of {train.source} are empty, so a TF-IDF baseline has no features; check the file."
        )
    vectorizer = TfidfVectorizer(analyzer="char_wb", ngram_range=(1, 4), sublinear_tf=True)
    features, wanted = vectorizer.fit_transform(texts), vectorizer.transform(_texts(dev))
    if problem == "regression":
        return Ridge().fit(features, targets).predict(wanted)[:, None]

    def decisions(classes: np.ndarray) -> Any:
        if len(set(classes.tolist())) == 1:  # scikit-learn refuses to learn a constant
            return np.full(len(dev), 1.0 if classes[0] else -1.0)
        return LogisticRegression(C=10, max_iter=1000).fit(features, classes).decision_function(wanted)

    if problem == "multi_label":
        return np.stack([decisions(column) for column in targets.astype(int).T], axis=1)
    classes = np.unique(targets)
    logits = np.full([len(dev), int(classes[-1]) + 1], -np.inf)
    if len(classes) == 1:
        logits[:, classes] = 0.0
    else:
        logits[:, classes] = LogisticRegression(C=10, max_iter=1000).fit(features, targets).predict_log_proba(wanted)
    return logits


def _texts(examples: LabelledTexts) -> list[str]:
    if examples.pairs is None:
        return list(examples.texts)
    return [f"{text}\n{pair}" for text, pair in zip(examples.texts, examples.pairs)]
