"""Embeddings of sentences, trained on pairs or triplets and evaluated by the similarity of pairs.

Letters: N examples, B texts, L sequence, D hidden.
"""

import dataclasses
import itertools

import numpy as np

from albert_tf.data.finetuning.classification import LabelledTexts, read_texts
from albert_tf.data.finetuning.encoded import encode_texts
from albert_tf.metrics import cosines
from albert_tf.tasks.learned import LearnedTask
from albert_tf.tasks.multiple_choice.choices import EncodedChoices
from albert_tf.tasks.outputs import NUMBER, Computed, TensorSpec, collect
from albert_tf.tasks.sentence_embedding.sentences import SentenceRows, known_columns, read_sentences
from albert_tf.tasks.sentence_embedding.settings import EmbeddingSettings
from albert_tf.tasks.sequence_classification.evaluation import LabelEvaluation, write_predictions

_EMBEDDING, _SEQUENCE, _POOLED = "sentence_embedding", "sequence_output", "pooled_output"
_PAIRS_AT_ONCE = 1024


class SentenceEmbedding(LearnedTask[EmbeddingSettings]):
    """One vector for each text, float32 [D]: by default the mean over its tokens."""

    settings_class = EmbeddingSettings
    predictions_file = "dev_predictions.tsv"

    def encode(self, *texts):
        (texts,) = texts
        return self.rows(texts)

    def rows(self, data):
        return encode_texts(self.tokenizer, data, None, self.max_length)

    def decode(self, encoded, computed):
        return list(collect(map(self.with_embeddings, computed), _EMBEDDING, len(encoded)))

    def with_embeddings(self, part: Computed) -> Computed:
        """A batch with `sentence_embedding` float32 [B, D], which a network may leave to the program that uses it."""
        if _EMBEDDING in part.outputs:
            return part
        mask = part.batch["attention_mask"][..., None]
        embedding = _pooled(part.outputs[_SEQUENCE], mask, self.settings.pooling or "mean")
        if self.settings.normalize:
            embedding /= np.maximum(np.linalg.norm(embedding, axis=1, keepdims=True), 1e-12)
        return dataclasses.replace(part, outputs={**part.outputs, _EMBEDDING: embedding.astype(np.float32)})

    def arrays(self, predictions):
        return {_EMBEDDING: np.array(predictions, np.float32)}

    def decode_arrays(self, encoded, computed):
        parts, lengths = [*map(self.with_embeddings, computed)], encoded.lengths
        width = parts[0].outputs[_SEQUENCE].shape[-1]
        sequences = np.zeros([len(lengths), int(lengths.max()), width], np.float32)  # [B, L, D]; padding is 0
        for part in parts:
            for row, values in zip(part.rows.tolist(), part.outputs[_SEQUENCE]):
                sequences[row, : lengths[row]] = values[: lengths[row]]
        names = [name for name in (_EMBEDDING, _POOLED) if name in parts[0].outputs]
        arrays = {name: collect(iter(parts), name, len(lengths)).astype(np.float32) for name in names}
        return {**arrays, _SEQUENCE: sequences}

    def specs(self, width):
        return {_EMBEDDING: TensorSpec(NUMBER, (None, width)), _SEQUENCE: TensorSpec(NUMBER, (None, None, width))}

    @property
    def main_score(self) -> str:
        """By default Spearman's correlation of cosines and labels."""
        return self.settings.main_score or "spearman"

    def read(self, path) -> SentenceRows:
        settings = self.settings
        if (settings.objective == "triplet") > (settings.negative_column is not None):
            raise ValueError("`negative_column` must be given for the objective 'triplet'. Received: None.")
        if settings.objective == "similarity":
            return read_sentences(path, settings.columns, settings.table, largest_label=settings.largest_label)
        return read_sentences(path, settings.columns, settings.table, settings.negative_column)

    def read_dev(self, path) -> LabelledTexts:
        """Reads a table of pairs with numbers."""
        table = self.settings.table
        pairs = read_texts(path, known_columns(path, self.settings.columns, table), table)
        pairs.label_values()  # raises an error if one is not a number
        return pairs

    def keys(self, data):
        if isinstance(data, LabelledTexts):
            return zip(data.texts, data.pairs or ())
        return (row[:2] for row in data.rows())

    def model_arguments(self, train):
        """The objective, and length, pooling and normalisation of the embeddings."""
        values = {name: getattr(self.settings, name) for name in ("normalize", "max_length", "pooling")}
        return {
            "objective": self.settings.objective,
            **{name: value for name, value in values.items() if value is not None},
        }

    def training_examples(self, train: SentenceRows) -> EncodedChoices:
        return train.encode(self.tokenizer, self.max_length)

    def evaluator(self, compute, data):
        """Compares pairs; each different sentence is computed once."""
        sentences: dict[str, int] = {}  # and their numbers
        numbers = [sentences.setdefault(text, len(sentences)) for text in itertools.chain(data.texts, data.pairs or ())]
        encoded = self.rows([*sentences])
        pairs, targets = np.reshape(numbers, (2, -1)), data.label_values()

        def evaluate() -> SimilarityEvaluation:
            computed = map(self.with_embeddings, compute(encoded, shows_progress=True))
            embeddings = collect(computed, _EMBEDDING, len(encoded))  # [N, D]
            parts = (pairs[:, start : start + _PAIRS_AT_ONCE] for start in range(0, len(targets), _PAIRS_AT_ONCE))
            similarities = np.concatenate([cosines(embeddings[first], embeddings[second]) for first, second in parts])
            return SimilarityEvaluation("regression", (), targets, similarities[:, None], self.main_score)

        return evaluate

    def write_predictions(self, path, data, evaluation):
        write_predictions(path, data, evaluation)


class SimilarityEvaluation(LabelEvaluation):
    """Labels and cosines of some pairs."""

    @property
    def constant_score(self) -> None:
        """There is none: a constant has no correlation."""


def _pooled(outputs: np.ndarray, mask: np.ndarray, pooling: str) -> np.ndarray:
    """Embeddings [B, D] of the outputs [B, L, D] where the mask [B, L, 1] is 1."""
    if pooling == "cls":
        return outputs[:, 0]
    if pooling == "max":
        return np.where(mask > 0, outputs, -np.inf).max(axis=1)
    count = mask.sum(axis=1)
    return (outputs * mask).sum(axis=1) / (count if pooling == "mean" else np.sqrt(count))
