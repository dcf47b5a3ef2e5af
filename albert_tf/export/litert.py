"""Export of a model to one LiteRT file (TensorFlow Lite), for phones and small devices.

Letters: B batch, L sequence.
"""

import dataclasses
import pathlib
import tempfile
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from albert_tf.export.checks import check_length, warn_of_windows, without_none
from albert_tf.export.versions import publish, version_folder
from albert_tf.files.atomic import atomic_write, temporary_folder
from albert_tf.files.exports import LITERT
from albert_tf.files.hub import model_folder
from albert_tf.inference.folder import load_folder
from albert_tf.inference.network import INPUTS
from albert_tf.models.base import AlbertBase
from albert_tf.tasks.sequence_classification.settings import Threshold
from albert_tf.tasks.settings import files_in, write_settings

MODEL_FILE = "model.tflite"
_LENGTH = 128


@dataclasses.dataclass(frozen=True)
class LiteRTReport:
    """What `export_litert` wrote.

    Attributes:
        folder: folder of the version.
        size: bytes of the model's file in it.
        length: number of tokens that the model takes.
    """

    folder: pathlib.Path
    size: int
    length: int


def export_litert(
    source: str | pathlib.Path,
    output: str | pathlib.Path,
    name: str,
    version: int | None = None,
    max_length: int | None = None,
    threshold: Threshold | None = None,
    int8: bool = False,
) -> LiteRTReport:
    """Writes a fine-tuned model as a LiteRT file, with its tokenizer's files and the labels in `model.json` beside it.

    Args:
        source: a folder with a model and its vocabulary.
        output: folder of all models, such as `saved_models`.
        name: name of the model, a folder in `output`.
        version: version number. None: the next one.
        max_length: number of tokens of a text, which is fixed. None: as in training, but at most 128.
        threshold: of a model of any number of labels per text, which a program reads from `model.json`.
        int8: see `write_litert`.

    Raises:
        ValueError: the model is of no task or takes other inputs, or the version exists.

    Warns:
        UserWarning: the file reads no windows, and the model was trained with them.
    """
    folder = version_folder(pathlib.Path(output), name, version, LITERT)
    loaded = load_folder(model_folder(source))
    length = min(loaded.text_task.max_length, _LENGTH) if max_length is None else max_length
    check_length("max_length", length, loaded.model.config.max_position_embeddings)
    warn_of_windows(loaded.settings, "A LiteRT file")
    with temporary_folder(folder) as partial:
        size = write_litert(loaded.model, partial / MODEL_FILE, length, int8=int8)
        loaded.tokenizer.save_pretrained(partial)
        settings = loaded.settings.changed(**without_none(threshold=threshold, max_length=length))
        write_settings(partial, settings, files=files_in(partial))
        folder = publish(partial, folder, may_increment=version is None)
    return LiteRTReport(folder, size, length)


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
