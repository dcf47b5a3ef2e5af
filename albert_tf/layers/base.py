"""What every layer of this package shares: it is made from a config, and saves and loads itself through it."""

import zlib

import keras
from keras import ops

from albert_tf.config import AlbertConfig
from albert_tf.layers.dropout import Dropout


class AlbertLayer(keras.layers.Layer):
    """A Keras layer whose only constructor argument of its own is an `AlbertConfig`."""

    def __init__(self, config: AlbertConfig, **kwargs):
        super().__init__(**kwargs)
        if self.quantization_mode is not None:
            raise not_quantizable(f"dtype={self.dtype_policy.name!r}")
        self.config = config
        self._given_name = kwargs.get("name") or ""

    def get_config(self):
        return {**super().get_config(), "config": self.config.to_dict()}

    @classmethod
    def from_config(cls, config):
        return cls(**{**config, "config": AlbertConfig(**config["config"])})

    def in_compute_dtype(self, variable):
        """The variable's value in the dtype that this layer computes in."""
        return ops.cast(variable, self.compute_dtype)

    def kernel_initializer(self) -> keras.initializers.Initializer:
        """Normal with `initializer_range` as standard deviation, cut at two of them, as in the reference.

        Each call draws a new seed from Keras' global one, and folds the layer's name into it: a classifier under the
        seed that its encoder was pretrained with does not start as one of the pretraining heads did.
        """
        seed = keras.initializers.TruncatedNormal().seed
        seed = zlib.crc32(f"{self._given_name} {seed}".encode())
        return keras.initializers.TruncatedNormal(stddev=self.config.initializer_range, seed=seed)

    def make_dense(self, units: int, name: str, **kwargs) -> "Dense":
        """A dense layer that starts as all kernels here do and computes in this layer's dtype."""
        return Dense(units, name=name, dtype=self.dtype_policy, kernel_initializer=self.kernel_initializer(), **kwargs)

    def make_layer_norm(
        self, name: str = "layer_norm", epsilon: float | None = None
    ) -> keras.layers.LayerNormalization:
        """A layer normalisation with this epsilon, or else the config's."""
        epsilon = self.config.layer_norm_eps if epsilon is None else epsilon
        return keras.layers.LayerNormalization(epsilon=epsilon, name=name, dtype=self.dtype_policy)

    def make_dropout(self, rate: float, name: str = "dropout") -> Dropout:
        """Inverted dropout in this layer's dtype."""
        return Dropout(rate, name=name, dtype=self.dtype_policy)


class Dense(keras.layers.Dense):
    """A dense layer whose kernel other layers read: integers in its place would be taken for weights."""

    def quantize(self, mode=None, **kwargs):
        raise not_quantizable(f"quantize(mode={mode!r})")


def not_quantizable(received: str) -> ValueError:
    """The error for a quantization by Keras, which would leave integers where kernels are read."""
    return ValueError(
        f"ALBERT's layers cannot be quantized by Keras. Received: {received}; for faster arithmetic make the model "
        "with dtype='mixed_bfloat16'."
    )


def linear(x, kernel, bias):
    """`x @ kernel + bias` for `x` of any rank, as one matrix product over all leading axes together.

    One product of two matrices is what every backend does fastest; a batched product is not.
    """
    shape = ops.shape(x)
    flat = ops.matmul(ops.reshape(x, (-1, x.shape[-1])), kernel) + bias
    return ops.reshape(flat, (*shape[:-1], kernel.shape[-1]))
