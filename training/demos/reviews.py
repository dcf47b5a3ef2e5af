"""The texts of `nsmc`: film reviews in the files of the Naver sentiment movie corpus, and a baseline on them.

`reviews.txt` holds a review a line, without labels; `ratings_train.txt` and `ratings_test.txt` hold `id`, `document`
and `label` between tabs, as the corpus is published.
"""

import pathlib

from albert_tf.data.finetuning.classification import Columns, LabelledTexts, read_texts
from albert_tf.text_files import read_lines

REVIEWS, TRAIN, TEST = "reviews.txt", "ratings_train.txt", "ratings_test.txt"
TEXT_COLUMN, LABEL_COLUMN = "document", "label"
HELD_OUT = 20  # one review in so many


def write_reviews(data: pathlib.Path, folder: pathlib.Path) -> dict[str, list[pathlib.Path]]:
    """Writes `train.txt` and `heldout.txt`, each review as a document of its own.

    Args:
        data: folder with `reviews.txt`; without it the texts of `ratings_train.txt` are taken, without their labels.
        folder: where to.

    Returns:
        The text file of each part.

    Raises:
        ValueError: there is no such file, or it is not UTF-8.
    """
    if (data / REVIEWS).is_file():
        lines = [line.text for line in read_lines(data / REVIEWS)]
    else:
        lines = [" ".join(text.split()) for text in read_labelled(data, TRAIN).texts]
    reviews = [line for line in lines if line]
    folder.mkdir(parents=True, exist_ok=True)
    files = {}
    for name, is_heldout in (("train", False), ("heldout", True)):
        part = [text for number, text in enumerate(reviews) if (number % HELD_OUT == HELD_OUT - 1) is is_heldout]
        files[name] = [folder / f"{name}.txt"]
        files[name][0].write_text("\n\n".join(part) + "\n", encoding="utf-8")
    return files


def find_labelled(data: pathlib.Path, name: str) -> pathlib.Path:
    """One of the two tables; raises ValueError if there is no such file."""
    if not (data / name).is_file():
        raise ValueError(
            f"{data / name} does not exist; give --data a folder with {TRAIN} and {TEST} as the corpus is published."
        )
    return data / name


def read_labelled(data: pathlib.Path, name: str) -> LabelledTexts:
    """The texts and labels of one of the two tables."""
    return read_texts(find_labelled(data, name), Columns(TEXT_COLUMN, None, LABEL_COLUMN, True))


def score_baseline(data: pathlib.Path) -> float | None:
    """Accuracy of logistic regression over TF-IDF of runs of one to four characters; None without scikit-learn."""
    try:
        from sklearn.feature_extraction.text import TfidfVectorizer
        from sklearn.linear_model import LogisticRegression
    except ImportError:
        return None
    train, test = (read_labelled(data, name) for name in (TRAIN, TEST))
    vectorizer = TfidfVectorizer(analyzer="char_wb", ngram_range=(1, 4), sublinear_tf=True)
    model = LogisticRegression(C=10, max_iter=1000).fit(vectorizer.fit_transform(train.texts), train.labels)
    return float(model.score(vectorizer.transform(test.texts), test.labels))
