"""One way in for every kind of checkpoint: what it is, is found out by looking."""

import pathlib
import warnings

import numpy as np

from albert_tf.checkpoints import google, huggingface, keras_files, tensorflow_files
from albert_tf.checkpoints.checkpoint import Checkpoint

_LONGEST_MESSAGE = 1000


def read(path: str | pathlib.Path) -> Checkpoint:
    """Reads a checkpoint of any kind that this room knows.

    Args:
        path: a folder of Hugging Face, of the reference, of TF Hub or of KerasHub, the prefix of a TensorFlow
            checkpoint, or a `.keras` or `.weights.h5` file.

    Returns:
        Checkpoint, with arrays under our names.

    Raises:
        ValueError: where nothing readable is there, or what is there is damaged.
    """
    checkpoint = _read_or_say_why(pathlib.Path(path))
    for name, array in checkpoint.arrays.items():
        if not np.isfinite(array).all():
            warnings.warn(f"{checkpoint.source} holds values in `{name}` that are not finite.", stacklevel=3)
    return checkpoint


def _read_or_say_why(path: pathlib.Path) -> Checkpoint:
    """What damage brings into a message, such as names of tensors, makes it neither several lines nor a page."""
    try:
        return _read(path)
    except RecursionError:
        raise ValueError(f"A file must not be nested without end. Received: {path}; download it again.") from None
    except ValueError as error:
        message = " ".join(str(error).splitlines())
        if len(message) > _LONGEST_MESSAGE:
            message = f"{message[: _LONGEST_MESSAGE // 2]} ... {message[-_LONGEST_MESSAGE // 2 :]}"
        raise ValueError(message) from None


def _read(path: pathlib.Path) -> Checkpoint:
    if weights := huggingface.find_weights(path):
        return huggingface.read_huggingface(path, weights)
    if (path / google.CONFIG_FILE).is_file() or (path / tensorflow_files.SAVED_MODEL_FILE).is_file():
        return tensorflow_files.read_tensorflow(tensorflow_files.find_prefix(path))
    if (path / keras_files.CONFIG_FILE).is_file() and (path / keras_files.WEIGHTS_FILE).is_file():
        return keras_files.read_preset(path)
    if path.is_file() and path.suffix == ".keras":
        return keras_files.read_archive(path)
    if path.is_file() and path.name.endswith(".weights.h5"):
        return keras_files.read_weights(path)
    if path.with_name(path.name + ".index").is_file():
        return tensorflow_files.read_tensorflow(path)
    raise ValueError(
        f"`path` must be a folder with {huggingface.CONFIG_FILE} and {huggingface.WEIGHTS_FILES[0]}, a folder with "
        f"{google.CONFIG_FILE} and a checkpoint, or the prefix of one. Received: {path}; check the spelling."
    )
