"""Feed-forward layers with residual and layer normalisation: the second half of a transformer block.

Letters: B batch, L sequence, D hidden, F intermediate.
"""

import keras
from keras import ops

from albert_tf.config import AlbertConfig
from albert_tf.layers.base import AlbertLayer, DenseWeights, flat_linear
from albert_tf.layers.kernels import Plain, for_layers


@keras.saving.register_keras_serializable("albert_tf")
class FeedForwardBlock(AlbertLayer):
    """Two dense layers with an activation in between, dropout, residual, layer normalisation.

    Args:
        config: AlbertConfig.

    Call arguments:
        hidden: float tensor [B, L, D].

    Returns:
        Float tensor [B, L, D].

    References:
        `modeling.py` (attention_ffn_block) of google-research/albert.
    """

    def __init__(self, config: AlbertConfig, **kwargs):
        super().__init__(config, **kwargs)
        self.supports_masking = True
        self.intermediate = self.make_dense(config.intermediate_size, "intermediate")
        self.output_projection = self.make_dense(config.hidden_size, "output")
        self.layer_norm = self.make_layer_norm()
        self.dropout = self.make_dropout(config.hidden_dropout_prob)

    def build(self, input_shape=None, **shapes):
        self.intermediate.build((None, self.config.hidden_size))
        self.output_projection.build((None, self.config.intermediate_size))
        self.layer_norm.build((None, self.config.hidden_size))  # of the rank that it is called with
        self.built = True

    def prepare(self, kernels: Plain, training: bool) -> tuple[DenseWeights, DenseWeights]:
        """The weights of both dense layers, once for all calls of a step."""
        return self.weights_of(self.intermediate), self.weights_of(self.output_projection)

    def call(self, hidden, training=False):
        kernels = for_layers()
        return self.apply(hidden, self.prepare(kernels, training), kernels, training)

    def apply(self, hidden, weights, kernels: Plain, training: bool):
        """As a call, with weights that were prepared for these kernels."""
        (kernel, bias), output_weights = weights
        flat = ops.reshape(hidden, (-1, self.config.hidden_size))  # [B L, D]
        inner = kernels.activate(ops.matmul(flat, kernel), bias, self.config.hidden_act, training)  # [B L, F]
        outer = self.dropout(flat_linear(inner, output_weights), training=training)
        return ops.reshape(kernels.add_and_normalize(outer, flat, self.layer_norm, training), ops.shape(hidden))
