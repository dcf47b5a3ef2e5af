"""Our own models in files that Keras wrote: the names of layers lie there beside their arrays, and make our paths."""

import pathlib
from collections.abc import Mapping
from typing import Any

from albert_tf.checkpoints.checkpoint import Checkpoint, with_head_settings
from albert_tf.checkpoints.config_files import CURE, check_settings, make_config
from albert_tf.checkpoints.formats.hdf5 import Hdf5
from albert_tf.checkpoints.names import PROBLEM_TYPES
from albert_tf.config import AlbertConfig

_ORIGIN = "albert_tf>"
# What Keras numbers is named here; a layer that is not listed has a kernel and a bias.
_VARIABLES = {
    "embeddings": ("word_embeddings", "token_type_embeddings", "position_embeddings"),
    "layer_norm": ("gamma", "beta"),
    "end_layer_norm": ("gamma", "beta"),
    "masked_lm": ("output_bias",),
}
_DENSE = ("kernel", "bias")
_RANDOM_STATE = "seed_generator"


def is_own(values: Mapping[str, Any]) -> bool:
    """Whether a `config.json` is that of our model: Keras' of one, or one that `save_pretrained` wrote."""
    return "class_name" not in values or str(values.get("registered_name")).startswith(_ORIGIN)


def checkpoint_from(source: pathlib.Path, values: Mapping[str, Any], weights: Hdf5) -> Checkpoint:
    """A model's own config and its arrays become a checkpoint.

    Args:
        source: where they were read from.
        values: what `config.json` holds.
        weights: what the HDF5 file holds.
    """
    if "class_name" in values:
        arguments = values.get("config")
        if not isinstance(arguments, dict):
            raise ValueError(
                f"{source} holds {type(arguments).__name__} where a model's arguments are expected; {CURE}."
            )
        config = make_config(source, arguments.get("config"))
        settings = _settings(check_settings(source, {**arguments, "architectures": [values["class_name"]]}))
    else:
        config = make_config(source, values, AlbertConfig.from_published)
        settings = check_settings(source, values)
    layers = {path.removesuffix("/vars"): name for path, name in weights.names.items() if path.endswith("/vars")}
    ours = {_path(path, layers): array for path, array in weights.arrays.items() if _RANDOM_STATE not in path}
    if not any(path.startswith("encoder/") for path in ours):
        ours = {f"encoder/{path}": array for path, array in ours.items()}
    return Checkpoint(source, config, ours, with_head_settings(ours, settings))


def _path(place: str, layers: Mapping[str, str]) -> str:
    """`encoder/layers/dense/vars/0`, where `encoder/layers/dense` is called projection: `encoder/projection/kernel`."""
    layer, _, number = place.rpartition("/vars/")
    parts = layer.split("/")
    above = ["/".join(parts[: length + 1]) for length in range(len(parts))]
    names = [layers[group] for group in above if group in layers]
    variables = _VARIABLES.get(names[-1], _DENSE) if names else ()
    known = number.isdigit() and int(number) < len(variables)
    return "/".join([*names, variables[int(number)] if known else place])


def _settings(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """What a `config.json` of `save_pretrained` would say about the head."""
    settings: dict[str, Any] = {"architectures": arguments["architectures"]}
    if "labels" in arguments:
        settings["id2label"] = {str(number): label for number, label in enumerate(arguments["labels"])}
    if arguments.get("problem") in PROBLEM_TYPES:
        settings["problem_type"] = PROBLEM_TYPES[arguments["problem"]]
    if arguments.get("head") == "beam":
        settings |= {name: arguments[name] for name in ("start_n_top", "end_n_top") if name in arguments}
    return settings
