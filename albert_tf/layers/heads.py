"""Heads on top of the encoder.

Letters: B batch, L sequence, P predictions, D hidden, E embedding, V vocabulary.
"""

import keras
from keras import ops

from albert_tf.config import AlbertConfig
from albert_tf.layers.base import AlbertLayer, linear
from albert_tf.layers.kernels.activations import ACTIVATIONS


def gather_positions(sequence, positions):
    """Gathers `sequence[b, positions[b, p]]`: [B, L, D] and int [B, P] give [B, P, D].

    Implemented as a product with one-hot vectors, whose gradient is a product too, instead of a scatter.
    """
    chosen = ops.one_hot(ops.cast(positions, "int32"), ops.shape(sequence)[1], dtype=sequence.dtype)  # [B, P, L]
    return ops.matmul(chosen, sequence)


@keras.saving.register_keras_serializable("albert_tf")
class MaskedLMHead(AlbertLayer):
    """Masked-LM logits: dense layer to width E, activation, normalisation, product with the word embedding table.

    Args:
        config: AlbertConfig.

    Call arguments:
        sequence_output: float tensor [B, L, D].
        word_embeddings: variable [V, E], the encoder's table.
        masked_lm_positions: int tensor [B, P], or None for all positions.

    Returns:
        float32 tensor [B, P, V], or [B, L, V] without positions.

    References:
        `run_pretraining.py` (get_masked_lm_output) of google-research/albert.
    """

    def __init__(self, config: AlbertConfig, **kwargs):
        super().__init__(config, **kwargs)
        self.transform = self.make_dense(config.embedding_size, "transform")
        self.layer_norm = self.make_layer_norm(epsilon=config.head_layer_norm_eps)
        self.activation = ACTIVATIONS[config.hidden_act]

    def build(self, input_shape=None, **shapes):
        self.transform.build((None, None, self.config.hidden_size))
        self.layer_norm.build((None, None, self.config.embedding_size))
        self.output_bias = self.add_weight(shape=(self.config.vocab_size,), initializer="zeros", name="output_bias")
        self.built = True

    def compute_output_shape(self, *shapes, **named_shapes):
        return None, None, self.config.vocab_size

    def call(self, sequence_output, word_embeddings, masked_lm_positions=None):
        if masked_lm_positions is not None:
            sequence_output = gather_positions(sequence_output, masked_lm_positions)  # [B, P, D]
        hidden = self.layer_norm(self.activation(self.transform(sequence_output)))  # [B, P, E]
        table = ops.transpose(self.in_compute_dtype(word_embeddings))  # [E, V]
        return ops.cast(linear(hidden, table, self.in_compute_dtype(self.output_bias)), "float32")


@keras.saving.register_keras_serializable("albert_tf")
class ClassificationHead(AlbertLayer):
    """Logits of texts or tokens: dropout and a dense layer.

    Args:
        config: AlbertConfig.
        num_outputs: int. Number of logits.
        dropout: float. Rate before the dense layer.

    Call arguments:
        hidden: float tensor [..., D], such as the pooled output [B, D] or the sequence output [B, L, D].

    Returns:
        float32 tensor [..., num_outputs].

    References:
        `run_pretraining.py` (get_sentence_order_output) and `classifier_utils.py` (create_model) of
        google-research/albert.
    """

    def __init__(self, config: AlbertConfig, num_outputs: int, dropout: float = 0.0, **kwargs):
        super().__init__(config, **kwargs)
        self.num_outputs = num_outputs
        self.dropout_rate = dropout
        self.dropout = self.make_dropout(dropout)

    def build(self, input_shape=None, **shapes):
        self.kernel = self.add_weight(
            shape=(self.config.hidden_size, self.num_outputs), initializer=self.kernel_initializer(), name="kernel"
        )
        self.bias = self.add_weight(shape=(self.num_outputs,), initializer="zeros", name="bias")
        self.built = True

    def compute_output_shape(self, input_shape=None, **named_shapes):
        return *(None,) * (len(input_shape or (None, None)) - 1), self.num_outputs

    def call(self, hidden, training=False):
        hidden = self.dropout(hidden, training=training)
        logits = linear(hidden, self.in_compute_dtype(self.kernel), self.in_compute_dtype(self.bias))
        return ops.cast(logits, "float32")

    def get_config(self):
        return {**super().get_config(), "num_outputs": self.num_outputs, "dropout": self.dropout_rate}
