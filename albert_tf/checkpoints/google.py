"""The reference's TensorFlow 1 checkpoints: `albert_config.json` beside `NAME.index` and `NAME.data-*`."""

import pathlib

from albert_tf.checkpoints.checkpoint import Checkpoint, under_our_names
from albert_tf.config import AlbertConfig

CONFIG_FILE = "albert_config.json"
# Kept by the reference's optimisers beside every variable, and the counter of its Estimator.
_SLOTS = ("/adam_m", "/adam_v", "/lamb_m", "/lamb_v")
_COUNTER = "global_step"


def read_google(prefix: pathlib.Path) -> Checkpoint:
    """Reads the checkpoint `prefix`; optimizer slots and the step counter are set aside.

    Raises:
        ValueError: where the config is missing or the files are not a whole checkpoint.
    """
    import tensorflow as tf

    config_file = prefix.parent / CONFIG_FILE
    if not config_file.is_file():
        raise ValueError(f"A Google checkpoint must have {CONFIG_FILE} beside it. Received: {prefix} without; add it.")
    config = AlbertConfig.from_json(config_file)
    try:
        reader = tf.train.load_checkpoint(str(prefix))
        names = [name for name in reader.get_variable_to_shape_map() if _is_weight(name)]
        tensors = {name: reader.get_tensor(name) for name in names}
    except (tf.errors.OpError, LookupError, ValueError, RuntimeError) as error:
        reason = str(error).splitlines()[0]
        raise ValueError(
            f"A checkpoint must be whole. Received: {prefix} ({reason}); download its index and data files again."
        ) from None
    return Checkpoint(prefix, config, under_our_names(prefix, config, tensors, "google"))


def find_prefix(folder: pathlib.Path) -> pathlib.Path:
    """The one checkpoint of a folder, `model.ckpt-best` before others."""
    prefixes = sorted(path.with_suffix("") for path in folder.glob("*.index"))
    best = [prefix for prefix in prefixes if prefix.name == "model.ckpt-best"]
    if not best and len(prefixes) != 1:
        names = ", ".join(prefix.name for prefix in prefixes) or "none"
        raise ValueError(
            f"A folder must hold one checkpoint, or one called model.ckpt-best. Received: {folder} with {names}; "
            "give the checkpoint's prefix instead."
        )
    return (best or prefixes)[0]


def _is_weight(name: str) -> bool:
    return name != _COUNTER and not name.endswith(_SLOTS)
