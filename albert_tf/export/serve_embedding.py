"""Export of sentence embeddings: TensorFlow functions from raw text to vectors.

Letters: B batch, L sequence, D hidden.
"""

import tensorflow as tf

from albert_tf.export.serve_base import ServedModel


class ServedEmbedding(ServedModel):
    """The exported object of a model of sentence embeddings."""

    def network(self, inputs):
        model = self._loaded.model
        sequence_output = model.encoder(inputs, training=False)["sequence_output"]  # [B, L, D]
        sequence_output = tf.cast(sequence_output, tf.float32)
        embedding = model.pool(sequence_output, inputs["attention_mask"])  # [B, D]
        # Padding is 0, whatever else is in the batch.
        mask = tf.cast(inputs["attention_mask"], sequence_output.dtype)[..., tf.newaxis]
        return {"sentence_embedding": embedding, "sequence_output": sequence_output * mask}
