"""Embeddings of sentences, trained on pairs or triplets and evaluated by the similarity of pairs.

Letters: N examples, B batch, L sequence, D hidden.
"""

import dataclasses
import hashlib
import itertools
import math
import os
import pathlib
import tempfile
from collections.abc import Callable, Hashable, Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from albert_tf.data.finetuning.choices import EncodedChoices
from albert_tf.data.finetuning.classification import LabelledTexts, read_texts
from albert_tf.data.finetuning.encoded import encode_texts
from albert_tf.data.finetuning.sentences import SentenceRows, known_columns, read_sentences
from albert_tf.data.finetuning.stored_rows import StoredRows
from albert_tf.files.atomic import could_not_write
from albert_tf.inference import tasks as text_tasks
from albert_tf.inference.network import collect
from albert_tf.inference.predictor import Predictor
from albert_tf.metrics import cosines
from albert_tf.tokenization import AlbertTokenizer
from albert_tf.trainer.tasks.base import FinetuneTask
from albert_tf.trainer.tasks.text_classification import LabelEvaluation, write_predictions

if TYPE_CHECKING:
    # Examples are predicted without Keras and TensorFlow where the model is an ONNX folder.
    from albert_tf.models.base import AlbertBase

_PAIRS_AT_ONCE = 1024


class SentenceEmbedding(FinetuneTask):
    """Rows of sentences to train on; pairs with a number, their similarity, to evaluate on."""

    predictions_file = "dev_predictions.tsv"

    @property
    def main_score(self) -> str:
        """By default Spearman's correlation of cosines and labels."""
        return self.options.main_score or "spearman"

    def read(self, path: pathlib.Path) -> SentenceRows:
        """Reads a table to train on."""
        options = self.options
        if (options.objective == "triplet") > (options.negative_column is not None):
            raise ValueError("`negative_column` must be given for the objective 'triplet'. Received: None.")
        if options.objective == "similarity":
            return read_sentences(path, options.columns, options.table, largest_label=options.largest_label)
        return read_sentences(path, options.columns, options.table, options.negative_column, options.positive_label)

    def read_dev(self, path: pathlib.Path) -> LabelledTexts:
        """Reads a table of pairs with numbers."""
        options = self.options
        columns = dataclasses.replace(options.columns, label=options.dev_label_column or options.label_column)
        pairs = read_texts(path, known_columns(path, columns, options.table), options.table)
        pairs.label_values()  # raises an error if one is not a number
        return pairs

    def keys(self, data: SentenceRows | LabelledTexts) -> Iterable[Hashable]:
        """What identifies each example."""
        if isinstance(data, LabelledTexts):
            return zip(data.texts, data.pairs or ())
        return (row[:2] for row in data.rows())

    def model_arguments(self, train: SentenceRows) -> dict[str, Any]:
        """The objective, and length, pooling and normalisation of the embeddings."""
        options = self.options
        given = {name: getattr(options, name) for name in ("normalize", "max_length", "pooling")}
        return {
            "objective": options.objective,
            **{name: value for name, value in given.items() if value is not None},
        }

    def training_examples(self, model: "AlbertBase", tokenizer: AlbertTokenizer, train: SentenceRows) -> EncodedChoices:
        """Tokenizes rows."""
        return train.encode(tokenizer, self.max_length, self.stored_ids)

    def evaluator(self, model: Predictor, data: LabelledTexts) -> Callable[[], "SimilarityEvaluation"]:
        """Compares pairs; each different sentence is computed once."""
        sentences, numbers = _distinct(itertools.chain(data.texts, data.pairs or ()))
        encoded = encode_texts(model.tokenizer, sentences, None, self.max_length, self.stored_ids)
        pairs, targets = numbers.reshape(2, -1), data.label_values()

        def evaluate() -> SimilarityEvaluation:
            pooling = text_tasks.SentenceEmbedding(model.tokenizer, model.settings)
            computed = map(pooling.with_embeddings, model.compute(encoded, shows_progress=True))
            embeddings = collect(computed, "sentence_embedding", len(encoded), _empty_on_disk)  # [N, D]
            parts = (pairs[:, start : start + _PAIRS_AT_ONCE] for start in range(0, len(targets), _PAIRS_AT_ONCE))
            similarities = np.concatenate([cosines(embeddings[first], embeddings[second]) for first, second in parts])
            return SimilarityEvaluation("regression", (), targets, similarities[:, None], self.main_score)

        return evaluate

    def write_predictions(self, path: pathlib.Path, data: LabelledTexts, evaluation: LabelEvaluation) -> None:
        """Writes TSV, see `text_classification.write_predictions`."""
        write_predictions(path, data, evaluation)


def _distinct(texts: Iterable[str]) -> tuple[StoredRows[str], np.ndarray]:
    """The different ones of some texts, and for each text its number among them."""
    stored = StoredRows(texts)
    hashes = (hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest() for text in stored)
    _, first, numbers = np.unique(np.fromiter(hashes, "S16"), return_index=True, return_inverse=True)
    order = np.argsort(first)
    return StoredRows(stored[row] for row in first[order].tolist()), np.argsort(order)[numbers]


def _empty_on_disk(shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """An array in a temporary file, for embeddings, which take more memory than texts."""
    with tempfile.TemporaryFile() as file:
        if hasattr(os, "posix_fallocate"):  # otherwise a full disk kills the process when the array is written
            try:
                os.posix_fallocate(file.fileno(), 0, math.prod(shape) * dtype.itemsize)
            except OSError as error:
                raise could_not_write(pathlib.Path(tempfile.gettempdir()), error) from None
        return np.asarray(np.memmap(file, dtype, shape=shape))


class SimilarityEvaluation(LabelEvaluation):
    """Labels and cosines of some pairs."""

    @property
    def constant_score(self) -> None:
        """There is none: a constant has no correlation."""
