"""Export of sentence embeddings: TensorFlow functions from raw text to vectors.

Letters: B batch, L sequence, D hidden.
"""

import numpy as np
import tensorflow as tf

from albert_tf.export.prediction import embed
from albert_tf.export.serve_base import SAMPLES, ServedModel, traced


class ServedEmbedding(ServedModel):
    """The exported object of a model of sentence embeddings."""

    def signatures(self) -> dict:
        """The signatures by name."""
        ids = tf.TensorSpec([None, None], tf.int32)
        return {
            "serving_default": traced(self._of_text, text=tf.TensorSpec([None], tf.string)),
            "token_ids": traced(self._of_ids, input_ids=ids, attention_mask=ids, token_type_ids=ids),
        }

    def largest_difference(self, restored) -> float:
        """Maximum absolute difference between embeddings of the Keras model and the SavedModel."""
        expected = embed(self._loaded, SAMPLES)  # [B, D]
        inputs = self._loaded.tokenizer(SAMPLES, max_length=self._loaded.max_length)
        ids = {name: tf.constant(array) for name, array in inputs.items()}
        signatures = restored.signatures
        given = (signatures["serving_default"](text=tf.constant(SAMPLES)), signatures["token_ids"](**ids))
        return max(float(np.abs(outputs["sentence_embedding"] - expected).max()) for outputs in given)

    def _of_text(self, text):
        return self._loaded.model(self.tokenizer(text), training=False)

    def _of_ids(self, input_ids, attention_mask, token_type_ids):
        inputs = {"input_ids": input_ids, "attention_mask": attention_mask, "token_type_ids": token_type_ids}
        return self._loaded.model(inputs, training=False)
