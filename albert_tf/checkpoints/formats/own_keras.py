"""Models of this package in Keras files, whose variable paths are made of the names of the layers."""

import pathlib
from collections.abc import Mapping
from typing import Any

from albert_tf.checkpoints.checkpoint import Checkpoint, infer_head_settings, reject_unknown
from albert_tf.checkpoints.config_files import CURE, check_settings, make_config
from albert_tf.checkpoints.formats.hdf5 import Hdf5
from albert_tf.checkpoints.names import PROBLEM_TYPES
from albert_tf.checkpoints.sentence_modules import SENTENCE_SETTINGS
from albert_tf.config import AlbertConfig

# Names of the variables, which Keras numbers; other layers have a kernel and a bias.
_VARIABLES = {
    "embeddings": ("word_embeddings", "token_type_embeddings", "position_embeddings"),
    "layer_norm": ("gamma", "beta"),
    "end_layer_norm": ("gamma", "beta"),
    "masked_lm": ("output_bias",),
}


def is_own(values: Mapping[str, Any]) -> bool:
    """Whether `config.json` describes a model of this package, as written by Keras or by `save_pretrained`."""
    return "class_name" not in values or str(values.get("registered_name")).startswith("albert_tf>")


def checkpoint_from(source: pathlib.Path, values: Mapping[str, Any], weights: Hdf5) -> Checkpoint:
    """Makes a checkpoint from the values of `config.json` and the HDF5 file; raises ValueError if one is invalid."""
    if "class_name" in values:
        arguments = values.get("config")
        if not isinstance(arguments, dict):
            raise ValueError(f"{source} holds {type(arguments).__name__} instead of a model's arguments; {CURE}.")
        config = make_config(source, arguments.get("config"))
        settings = _settings(check_settings(source, {**arguments, "architectures": [values["class_name"]]}))
    else:
        config = make_config(source, values, AlbertConfig.from_published)
        settings = check_settings(source, values)
    layers = {path.removesuffix("/vars"): name for path, name in weights.names.items() if path.endswith("/vars")}
    tensors = {path: array for path, array in weights.arrays.items() if "seed_generator" not in path}
    reject_unknown(source, (path for path in tensors if not _is_variable(path, weights.names)))
    arrays = {_path(path, layers): array for path, array in tensors.items()}
    if not any(path.startswith("encoder/") for path in arrays):
        arrays = {f"encoder/{path}": array for path, array in arrays.items()}
    return Checkpoint(source, config, arrays, infer_head_settings(arrays, settings))


def _is_variable(path: str, names: Mapping[str, str]) -> bool:
    """Whether an array is a variable of a layer with a name: Keras writes no others."""
    group, _, index = path.rpartition("/")
    return group in names and index.isdigit()


def _path(hdf5_path: str, layers: Mapping[str, str]) -> str:
    """`encoder/layers/dense/vars/0`, if `encoder/layers/dense` is named projection: `encoder/projection/kernel`."""
    layer, _, index = hdf5_path.rpartition("/vars/")
    parts = layer.split("/")
    groups = ["/".join(parts[: length + 1]) for length in range(len(parts))]
    names = [layers[group] for group in groups if group in layers]
    variables = _VARIABLES.get(names[-1], ("kernel", "bias")) if names else ()
    is_known = index.isdigit() and int(index) < len(variables)
    return "/".join([*names, variables[int(index)] if is_known else hdf5_path])


def _settings(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Converts a model's arguments to the settings that `save_pretrained` writes to `config.json`."""
    settings: dict[str, Any] = {"architectures": arguments["architectures"]}
    if "labels" in arguments:
        settings["id2label"] = {str(index): label for index, label in enumerate(arguments["labels"])}
    if arguments.get("problem") in PROBLEM_TYPES:
        settings["problem_type"] = PROBLEM_TYPES[arguments["problem"]]
    if "normalize" in arguments:
        names = ("objective", "normalize", "max_length", "pooling", "dense_size", "dense_activation")
        settings[SENTENCE_SETTINGS] = {name: arguments[name] for name in names if arguments.get(name) is not None}
    elif "objective" in arguments:
        settings["objective"] = arguments["objective"]
    if arguments.get("head") == "beam":
        settings |= {name: arguments[name] for name in ("start_n_top", "end_n_top") if name in arguments}
    return settings
