"""Export of a model to one LiteRT file (TensorFlow Lite), for phones and small devices."""

import dataclasses
import pathlib
import warnings

import keras
import tensorflow as tf

from albert_tf.export.checks import check_length, without_none
from albert_tf.export.versions import publish, version_folder
from albert_tf.files.atomic import temporary_folder
from albert_tf.files.exports import LITERT
from albert_tf.files.hub import model_folder
from albert_tf.inference.folder import load_folder
from albert_tf.inference.network import INPUTS
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

    The file is a function of token ids. Its inputs are `input_ids`, `attention_mask` and `token_type_ids`, int32
    [1, max_length], padded; its outputs are those of the Keras model.

    Args:
        source, output, name, version: as in `export_saved_model`.
        max_length: number of tokens of a text, which is fixed. None: as in training, but at most 128.
        threshold: of a model of any number of labels per text, which a program reads from `model.json`.
        int8: round weights to 8 bits; the inputs of matrix products are rounded when they are computed.

    Raises:
        ValueError: the model is of no task or takes other inputs, or the version exists.

    Warns:
        UserWarning: the file reads no windows, and the model was trained with them.
    """
    folder = version_folder(pathlib.Path(output), name, version, LITERT)
    loaded = load_folder(model_folder(source))
    if any(loaded.model.input_fields[name].axes != "BL" for name in INPUTS):
        raise ValueError(
            f"`source` must be a model whose ids are [B, L]. Received: {type(loaded.model).__name__} in {source}; its "
            "encoder can be exported with keras.Model.export."
        )
    length = min(loaded.text_task.max_length, _LENGTH) if max_length is None else max_length
    check_length("max_length", length, loaded.model.config.max_position_embeddings)
    if getattr(loaded.settings, "windows", None) is not None:
        warnings.warn(
            "A LiteRT file does not read windows, as the model was trained to: the ends of texts that do not fit are "
            "left out, unless the program that uses it splits texts and joins the logits.",
            stacklevel=2,
        )
    inputs = {name: keras.InputSpec("int32", (1, length), name=name) for name in INPUTS}
    optimizations = [tf.lite.Optimize.DEFAULT] if int8 else []
    with temporary_folder(folder) as partial:
        file = partial / MODEL_FILE
        loaded.model.export(file, "litert", False, [inputs], optimizations=optimizations)
        size = file.stat().st_size
        loaded.tokenizer.save_pretrained(partial)
        settings = loaded.settings.changed(**without_none(threshold=threshold, max_length=length))
        write_settings(partial, settings, files=files_in(partial))
        publish(partial, folder)
    return LiteRTReport(folder, size, length)
