"""Export of a model to one LiteRT file (TensorFlow Lite), for phones and small devices.

Letters: B batch, L sequence.
"""

import pathlib
import tempfile
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from albert_tf.files.atomic import atomic_write
from albert_tf.inference.network import INPUTS
from albert_tf.models.base import AlbertBase


def write_litert(
    model: AlbertBase, file: str | pathlib.Path, length: int = 128, batch_size: int = 1, int8: bool = False
) -> int:
    """Writes a model's function of token ids.

    Its inputs are `input_ids`, `attention_mask` and `token_type_ids`, int32 [B, L], padded to the fixed L; its outputs
    are those of the Keras model. Tokenizers are not part of the file.

    Args:
        model: a task model or encoder whose inputs are [B, L].
        file: the file to write.
        length: L.
        batch_size: B.
        int8: round weights to 8 bits; the inputs of matrix products are rounded when they are computed.

    Returns:
        The size of the file in bytes.

    Raises:
        ValueError: the model takes other inputs, such as multiple choice.
    """
    if any(model.input_fields[name].axes != "BL" for name in INPUTS):
        raise ValueError(
            f"`model` must take ids of shape [B, L]. Received: {type(model).__name__}; its encoder can be written."
        )
    module = tf.Module()
    module.weights = [variable.value for variable in model.weights]
    with tempfile.TemporaryDirectory() as folder:  # only a SavedModel keeps the names of inputs and outputs
        tf.saved_model.save(module, folder, signatures=_function(model, (batch_size, length)))
        converter = tf.lite.TFLiteConverter.from_saved_model(folder)
        converter.optimizations = [tf.lite.Optimize.DEFAULT] if int8 else []
        content = converter.convert()
    atomic_write(pathlib.Path(file), content)
    return len(content)


def _function(model: AlbertBase, shape: tuple[int, int]) -> Callable[..., Any]:
    specs = {name: tf.TensorSpec(shape, tf.int32, name=name) for name in INPUTS}
    function = tf.function(lambda **inputs: model(inputs, training=False), autograph=False)
    return function.get_concrete_function(**specs)
