"""Embeddings of sentences.

Letters: B texts, L sequence, D hidden.
"""

import dataclasses
from collections.abc import Mapping

import numpy as np

from albert_tf.data.finetuning.encoded import encode_texts
from albert_tf.inference.network import Computed, collect
from albert_tf.inference.tasks.base import NUMBER, TensorSpec, TextTask

_EMBEDDING, _SEQUENCE, _POOLED = "sentence_embedding", "sequence_output", "pooled_output"


class SentenceEmbedding(TextTask):
    """One vector for each text, float32 [D]: by default the mean over its tokens."""

    def encode(self, *texts):
        (texts,) = texts
        return encode_texts(self.tokenizer, texts, None, self.settings.max_length)

    def decode(self, encoded, computed):
        return list(collect(map(self.with_embeddings, computed), _EMBEDDING, len(encoded)))

    def with_embeddings(self, part: Computed) -> Computed:
        """A batch with `sentence_embedding` float32 [B, D], which a network may leave to the program that uses it."""
        if _EMBEDDING in part.outputs:
            return part
        mask = part.batch["attention_mask"][..., None]
        embedding = _pooled(part.outputs[_SEQUENCE], mask, self.settings.pooling)
        if self.settings.normalize:
            embedding /= np.maximum(np.linalg.norm(embedding, axis=1, keepdims=True), 1e-12)
        return dataclasses.replace(part, outputs={**part.outputs, _EMBEDDING: embedding.astype(np.float32)})

    def arrays(self, predictions):
        return {_EMBEDDING: np.array(predictions, np.float32)}

    def decode_arrays(self, encoded, computed):
        embeddings, sequences, pooled = {}, {}, {}
        for part in map(self.with_embeddings, computed):
            embeddings |= zip(part.rows.tolist(), part.outputs[_EMBEDDING])
            sequences |= zip(part.rows.tolist(), part.outputs[_SEQUENCE])
            pooled |= zip(part.rows.tolist(), part.outputs.get(_POOLED, ()))
        rows = range(len(encoded))
        arrays = self.arrays([embeddings[row] for row in rows])
        arrays[_SEQUENCE] = self._padded(sequences, encoded.lengths)
        return {**arrays, **({_POOLED: np.stack([pooled[row] for row in rows])} if pooled else {})}

    def _padded(self, sequences: Mapping[int, np.ndarray], lengths: np.ndarray) -> np.ndarray:
        """Outputs for the tokens of all texts, float32 [B, L, D]; padding is 0."""
        array = np.zeros([len(lengths), int(lengths.max()), sequences[0].shape[-1]], np.float32)
        for row, length in enumerate(lengths.tolist()):
            array[row, :length] = sequences[row][:length]
        return array

    def specs(self, width):
        size = self.settings.dense_size or width
        return {_EMBEDDING: TensorSpec(NUMBER, (None, size)), _SEQUENCE: TensorSpec(NUMBER, (None, None, width))}


def _pooled(outputs: np.ndarray, mask: np.ndarray, pooling: str) -> np.ndarray:
    """Embeddings [B, D] of the outputs [B, L, D] where the mask [B, L, 1] is 1."""
    if pooling == "cls":
        return outputs[:, 0]
    if pooling == "max":
        return np.where(mask > 0, outputs, -np.inf).max(axis=1)
    count = mask.sum(axis=1)
    return (outputs * mask).sum(axis=1) / (count if pooling == "mean" else np.sqrt(count))
