"""Embeddings of sentences, trained on pairs or triplets and evaluated by the similarity of pairs.

Letters: N examples, B batch, L sequence, D hidden.
"""

import dataclasses
import itertools
import pathlib
from collections.abc import Callable, Hashable, Iterable
from typing import Any

from albert_tf.data.finetuning.choices import EncodedChoices
from albert_tf.data.finetuning.classification import LabelledTexts, read_texts
from albert_tf.data.finetuning.sentences import SentenceRows, read_sentences
from albert_tf.data.finetuning.stored_rows import StoredTexts
from albert_tf.metrics import cosines
from albert_tf.models.base import AlbertBase
from albert_tf.tokenization import AlbertTokenizer
from albert_tf.trainer.tasks.base import FinetuneTask, outputs_by_length
from albert_tf.trainer.tasks.text_classification import LabelEvaluation, write_predictions


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
            return read_sentences(path, options.columns, largest_label=options.largest_label)
        return read_sentences(path, options.columns, options.negative_column, options.positive_label)

    def read_dev(self, path: pathlib.Path) -> LabelledTexts:
        """Reads a table of pairs with numbers."""
        options = self.options
        if options.pair_column is None:
            raise ValueError("`pair_column` must be given to evaluate embeddings of sentences. Received: None.")
        columns = dataclasses.replace(options.columns, label=options.dev_label_column or options.label_column)
        pairs = read_texts(path, columns)
        pairs.label_values()  # raises an error if one is not a number
        return pairs

    def keys(self, data: SentenceRows | LabelledTexts) -> Iterable[Hashable]:
        """What identifies each example."""
        if isinstance(data, LabelledTexts):
            return zip(data.texts, data.pairs or ())
        return (row[:2] for row in data.rows())

    def model_arguments(self, train: SentenceRows) -> dict[str, Any]:
        """The objective, and length and normalisation of the embeddings."""
        options = self.options
        given = {"normalize": options.normalize, "max_length": options.max_length}
        return {
            "objective": options.objective,
            **{name: value for name, value in given.items() if value is not None},
        }

    def training_examples(self, model: AlbertBase, tokenizer: AlbertTokenizer, train: SentenceRows) -> EncodedChoices:
        """Tokenizes rows."""
        return train.encode(tokenizer, self.max_length, self.stored_ids)

    def evaluator(
        self, model: AlbertBase, tokenizer: AlbertTokenizer, data: LabelledTexts, batch_size: int = 32
    ) -> Callable[[], "SimilarityEvaluation"]:
        """Compares pairs."""
        sentences = StoredTexts(itertools.chain.from_iterable(zip(data.texts, data.pairs or ())))
        pairs = SentenceRows(sentences, 2, data.label_values()).encode(tokenizer, self.max_length, self.stored_ids)
        # Embeddings take more memory than texts, so only the similarities are kept.
        run = outputs_by_length(
            model, "sentence_embedding", pairs, batch_size, lambda found: cosines(found[:, 0], found[:, 1])
        )
        return lambda: SimilarityEvaluation("regression", (), pairs.labels, run()[:, None], self.main_score)

    def write_predictions(self, path: pathlib.Path, data: LabelledTexts, evaluation: LabelEvaluation) -> None:
        """Writes TSV, see `text_classification.write_predictions`."""
        write_predictions(path, data, evaluation)


class SimilarityEvaluation(LabelEvaluation):
    """Labels and cosines of some pairs."""

    @property
    def constant_score(self) -> None:
        """There is none: a constant has no correlation."""
