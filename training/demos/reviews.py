"""The texts of `nsmc`: film reviews of the Naver sentiment movie corpus.

`reviews.txt` has one unlabelled review per line; `ratings_train.txt` and `ratings_test.txt` have, as published, the
tab-separated columns `id`, `document` and `label`.
"""

import pathlib

from albert_tf.data.finetuning.classification import Columns, LabelledTexts, read_texts
from albert_tf.files.text import read_lines

REVIEWS, TRAIN, TEST = "reviews.txt", "ratings_train.txt", "ratings_test.txt"
TEXT_COLUMN, LABEL_COLUMN = "document", "label"
HELDOUT_EVERY = 20  # reviews


def write_reviews(data: pathlib.Path, folder: pathlib.Path) -> dict[str, list[pathlib.Path]]:
    """Writes `train.txt` and `heldout.txt`, with each review as a document.

    Args:
        data: folder with `reviews.txt`; if there is none, the texts of `ratings_train.txt` are used.
        folder: folder to write.

    Returns:
        The text files of each part.

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
        part = [text for index, text in enumerate(reviews, 1) if (index % HELDOUT_EVERY == 0) is is_heldout]
        files[name] = [folder / f"{name}.txt"]
        files[name][0].write_text("\n\n".join(part) + "\n", encoding="utf-8")
    return files


def find_labelled(data: pathlib.Path, name: str) -> pathlib.Path:
    """The path of a table; raises ValueError if it does not exist."""
    if not (data / name).is_file():
        raise ValueError(f"{data / name} does not exist; pass --data a folder with the published {TRAIN} and {TEST}.")
    return data / name


def read_labelled(data: pathlib.Path, name: str) -> LabelledTexts:
    """The texts and labels of a table."""
    return read_texts(find_labelled(data, name), Columns(TEXT_COLUMN, None, LABEL_COLUMN))
