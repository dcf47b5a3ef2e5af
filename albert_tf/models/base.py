"""The base class of all models: a config, and the layers made of it."""

from typing import Any

import keras
from keras.dtype_policies import DTypePolicyMap

from albert_tf.config import AlbertConfig
from albert_tf.keras_internals import layers_within, show_in_summary
from albert_tf.layers.frozen import from_frozen_config, with_frozen
from albert_tf.models.pretrained import PretrainedModel


class AlbertBase(PretrainedModel):
    """Base class of the encoder and of every task model.

    A subclass creates its layers in `__init__`, calls `build_parts` at its end on those with variables, computes its
    outputs in `call`, and returns in `loss_terms` what `fit` minimises: the sum of the means of these terms. All shapes
    follow from the config, so variables exist from the start.

    Its base classes are `keras.Model`s: `CheckedModel` checks inputs and labels, `TrainableModel` is compiled and
    trained, `PretrainedModel` loads and writes checkpoints.

    Args:
        config: AlbertConfig.
    """

    def __init__(self, config: AlbertConfig, **kwargs):
        super().__init__(**kwargs)
        if not isinstance(config, AlbertConfig):
            raise ValueError(
                f"`config` must be an AlbertConfig. Received: config={config!r}; for saved weights call "
                f"{type(self).__name__}.from_pretrained(folder)."
            )
        self.config = config

    def build_parts(self, *parts: keras.layers.Layer) -> None:
        """Builds these layers; called at the end of `__init__`."""
        for part in parts:
            if isinstance(part, keras.Model):
                show_in_summary(part)
            elif not part.built:
                part.build(None)
        self.built = True
        for layer in layers_within(self, recursive=False):
            layer.trainable = layer.trainable and self.trainable  # an argument that Keras does not pass on

    def build(self, input_shape=None):
        """Does nothing: variables exist from the start."""

    def compute_output_spec(self, *args, **kwargs):
        return keras.Operation.compute_output_spec(self, *args, **kwargs)  # `compute_output_shape` is for `summary`

    def get_config(self) -> dict[str, Any]:
        policy = self.dtype_policy
        dtype = keras.dtype_policies.serialize(policy) if isinstance(policy, DTypePolicyMap) else policy.name
        config = {"config": self.config.to_dict(), "name": self.name, "dtype": dtype}
        return with_frozen(config, self)

    @classmethod
    def from_config(cls, config, custom_objects=None):
        return from_frozen_config(cls, {**config, "config": AlbertConfig(**config["config"])})
