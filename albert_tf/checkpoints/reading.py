"""One way in for every kind of checkpoint: what it is, is found out by looking."""

import pathlib

from albert_tf.checkpoints import google, huggingface
from albert_tf.checkpoints.checkpoint import Checkpoint


def read(path: str | pathlib.Path) -> Checkpoint:
    """Reads a checkpoint of any kind that this room knows.

    Args:
        path: a folder, or the prefix of a TensorFlow checkpoint.

    Returns:
        Checkpoint, with arrays under our names.

    Raises:
        ValueError: where nothing readable is there, or what is there is damaged.
    """
    path = pathlib.Path(path)
    if (path / huggingface.CONFIG_FILE).is_file() and (path / huggingface.WEIGHTS_FILE).is_file():
        return huggingface.read_huggingface(path)
    if (path / google.CONFIG_FILE).is_file():
        return google.read_google(google.find_prefix(path))
    if path.with_name(path.name + ".index").is_file():
        return google.read_google(path)
    raise ValueError(
        f"`path` must be a folder with {huggingface.CONFIG_FILE} and {huggingface.WEIGHTS_FILE}, a folder with "
        f"{google.CONFIG_FILE} and a checkpoint, or the prefix of one. Received: {path}; check the spelling."
    )
