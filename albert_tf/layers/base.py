"""The base class of all layers, and shared helpers."""

import functools
import zlib
from typing import Any, NamedTuple

import keras
from keras import ops

from albert_tf.config import AlbertConfig
from albert_tf.layers.dropout import Dropout
from albert_tf.layers.frozen import from_frozen_config, with_frozen
from albert_tf.layers.seeds import next_seed


class DenseWeights(NamedTuple):
    """The weights of a dense layer in compute dtype."""

    kernel: Any  # [D, units]
    bias: Any  # [units]


class AlbertLayer(keras.layers.Layer):
    """A Keras layer that is constructed from an `AlbertConfig`; raises ValueError for a quantized dtype."""

    def __init__(self, config: AlbertConfig, **kwargs):
        super().__init__(**kwargs)
        if self.quantization_mode is not None:
            raise not_quantizable(f"dtype={self.dtype_policy.name!r}")
        self.config = config
        self._name_in_config = kwargs.get("name") or ""

    def get_config(self):
        return with_frozen({**super().get_config(), "config": self.config.to_dict()}, self)

    @classmethod
    def from_config(cls, config):
        return from_frozen_config(cls, {**config, "config": AlbertConfig(**config["config"])})

    def compute_output_spec(self, *args, **kwargs):
        # `compute_output_shape` is for `summary`. A call casts its arguments; here nobody has.
        cast = functools.partial(self.dtype_policy.convert_input, autocast=self.autocast, dtype=self.input_dtype)
        args, kwargs = keras.tree.map_structure(cast, (args, kwargs))
        return keras.Operation.compute_output_spec(self, *args, **kwargs)

    @property
    def part_options(self) -> dict[str, Any]:
        """Constructor arguments of the layers that this one makes."""
        return {"dtype": self.dtype_policy, "trainable": self.trainable}

    def in_compute_dtype(self, variable):
        """The variable's value in this layer's compute dtype."""
        return ops.cast(variable, self.compute_dtype)

    def weights_of(self, dense: keras.layers.Dense) -> DenseWeights:
        """The weights of a dense layer in this layer's compute dtype."""
        return DenseWeights(self.in_compute_dtype(dense.kernel), self.in_compute_dtype(dense.bias))

    def kernel_initializer(self) -> keras.initializers.Initializer:
        """Truncated normal with standard deviation `initializer_range`, as in the reference.

        Each call draws a seed and folds in the layer's name, so that a classifier and a pretraining head created under
        the same seed start with different weights.
        """
        seed = zlib.crc32(f"{self._name_in_config} {next_seed()}".encode())
        return keras.initializers.TruncatedNormal(stddev=self.config.initializer_range, seed=seed)

    def make_dense(self, units: int, name: str, **kwargs) -> "Dense":
        """A dense layer with this layer's initializer and dtype."""
        return Dense(units, name=name, kernel_initializer=self.kernel_initializer(), **self.part_options, **kwargs)

    def make_layer_norm(
        self, name: str = "layer_norm", epsilon: float | None = None
    ) -> keras.layers.LayerNormalization:
        """A layer normalisation with this layer's dtype and, by default, the config's epsilon."""
        epsilon = self.config.layer_norm_eps if epsilon is None else epsilon
        return keras.layers.LayerNormalization(epsilon=epsilon, name=name, **self.part_options)

    def make_dropout(self, rate: float, name: str = "dropout") -> Dropout:
        """A dropout layer with this layer's dtype."""
        return Dropout(rate, name=name, dtype=self.dtype_policy)


class Dense(keras.layers.Dense):
    """A dense layer whose `quantize` raises ValueError, because other layers read its kernel as floats."""

    def quantize(self, mode=None, **kwargs):
        raise not_quantizable(f"quantize(mode={mode!r})")


def not_quantizable(received: str) -> ValueError:
    """The error for quantization by Keras."""
    return ValueError(
        f"ALBERT's layers do not support quantization by Keras. Received: {received}; for faster arithmetic create the "
        "model with dtype='mixed_bfloat16'."
    )


def flat_linear(x, weights: DenseWeights):
    """`x @ kernel + bias` as a single matrix product.

    TensorFlow's graph optimizer makes one operation of the product, the bias and what follows it (a GELU, or a residual
    of this shape), if they are written as `ops.add`, `ops.gelu` and in two dimensions.

    Args:
        x: float tensor [..., D].

    Returns:
        Float tensor [rows, units].
    """
    return ops.add(ops.matmul(ops.reshape(x, (-1, x.shape[-1])), weights.kernel), weights.bias)


def linear(x, kernel, bias):
    """As `flat_linear`, with the leading axes of `x`."""
    return ops.reshape(flat_linear(x, DenseWeights(kernel, bias)), (*ops.shape(x)[:-1], kernel.shape[-1]))
