"""The files that sentence-transformers adds to a model's folder: a list of modules, and the settings of each."""

import pathlib
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import safetensors.numpy

from albert_tf.checkpoints.config_files import CURE
from albert_tf.config import AlbertConfig
from albert_tf.files.atomic import atomic_write, write_json
from albert_tf.files.hub import HUGGING_FACE_WEIGHTS as WEIGHTS_FILES
from albert_tf.files.json import has_file, optional_json, read_json
from albert_tf.files.urls import location, make_folder

SENTENCE_SETTINGS = "sentence_embedding"
"""Entry of `Checkpoint.settings` with the arguments of AlbertForSentenceEmbedding."""
_MODEL = "AlbertForSentenceEmbedding"
_MODULES_FILE, _LENGTH_FILE = "modules.json", "sentence_bert_config.json"
_LENGTHS = ((_LENGTH_FILE, "max_seq_length"), ("tokenizer_config.json", "model_max_length"))
_NO_LIMIT = 1 << 30
_TYPES = "sentence_transformers.models."
_LIST_CURE = "use a model whose modules are Transformer, one kind of Pooling, and at most Dense and then Normalize"
# Kinds of pooling by their flags.
_POOLINGS = {"cls_token": "cls", "mean_tokens": "mean", "max_tokens": "max", "mean_sqrt_len_tokens": "mean_sqrt_len"}
# Activations of a Dense module by their classes.
_TORCH = "torch.nn.modules.activation."
_ACTIVATIONS = {
    **{_TORCH + name: ours for name, ours in (("Tanh", "tanh"), ("ReLU", "relu"), ("GELU", "gelu"))},
    "torch.nn.modules.linear.Identity": "linear",
}
DENSE = ("dense/kernel", "dense/bias")
"""Variable paths of the layer after pooling."""


def read_sentence_modules(
    folder: pathlib.Path, config: AlbertConfig, read_tensors: Callable[[pathlib.Path], Mapping[str, np.ndarray]]
) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """The settings of a folder of sentence-transformers, and the weights of its last layer; empty for other folders.

    Args:
        folder: the folder.
        config: AlbertConfig.
        read_tensors: reads the tensors of a file of weights.

    Returns:
        A dict with `architectures` and `SENTENCE_SETTINGS`, and arrays by variable path.

    Raises:
        ValueError: a file is damaged, or the modules are others than those that AlbertForSentenceEmbedding has.
    """
    file = folder / _MODULES_FILE
    if not has_file(file):
        return {}, {}
    modules = read_json(file, list, CURE)
    if not all(isinstance(module, dict) and isinstance(module.get("type"), str) for module in modules):
        raise ValueError(f"{file} must be a list of modules with `type` and `path`; {CURE}.")
    kinds = [module["type"].rsplit(".", 1)[-1] for module in modules]
    if kinds != ["Transformer", "Pooling", *(kind for kind in ("Dense", "Normalize") if kind in kinds[2:])]:
        raise ValueError(f"{file} names the modules {', '.join(kinds)[:200]}, which are not supported; {_LIST_CURE}.")
    folders = {kind: folder / pathlib.PurePath(str(module.get("path"))).name for kind, module in zip(kinds, modules)}
    pooling = _pooling(folders["Pooling"] / "config.json")
    settings: dict[str, Any] = {"normalize": "Normalize" in kinds, "pooling": pooling}
    arrays = {}
    if "Dense" in kinds:
        dense, arrays = _dense(folders["Dense"], config.hidden_size, read_tensors)
        settings |= dense
    # Since version 6 of sentence-transformers the tokenizer's file has the length.
    lengths = [_length(folder / file, name) for file, name in _LENGTHS]
    settings["max_length"] = min([*filter(None, lengths), config.max_position_embeddings])
    return {"architectures": [_MODEL], SENTENCE_SETTINGS: settings}, arrays


def save_sentence_modules(
    folder: str | pathlib.Path, hidden_size: int, settings: Mapping[str, Any], arrays: Mapping[str, np.ndarray]
) -> None:
    """Writes the files that sentence-transformers needs beside config and weights.

    Args:
        folder: with `config.json` and `model.safetensors`.
        hidden_size: number of outputs for a token.
        settings: arguments of AlbertForSentenceEmbedding: `normalize`, `max_length`, and those that are not defaults.
        arrays: those of `DENSE`; empty if the model has no such layer.
    """
    folder = location(folder)
    kinds = [
        "Transformer",
        "Pooling",
        *(["Dense"] if arrays else []),
        *(["Normalize"] if settings["normalize"] else []),
    ]
    modules = []
    for index, kind in enumerate(kinds):
        path = f"{index}_{kind}" if index else ""
        make_folder(folder / path)
        modules.append({"idx": index, "name": str(index), "path": path, "type": _TYPES + kind})
    pooling = settings.get("pooling", "mean")
    modes = {f"pooling_mode_{mode}": name == pooling for mode, name in _POOLINGS.items()}
    if arrays:
        _save_dense(folder / "2_Dense", hidden_size, settings.get("dense_activation", "tanh"), arrays)
    write_json(folder / "1_Pooling" / "config.json", {"word_embedding_dimension": hidden_size, **modes})
    write_json(folder / _LENGTH_FILE, {"max_seq_length": settings["max_length"], "do_lower_case": False})
    write_json(folder / _MODULES_FILE, modules)


def _dense(
    folder: pathlib.Path, hidden_size: int, read_tensors: Callable[[pathlib.Path], Mapping[str, np.ndarray]]
) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """The settings and the arrays of a Dense module."""
    file = folder / "config.json"
    values = read_json(file, cure=CURE)
    activation = values.get("activation_function", _TORCH + "Tanh")
    if activation not in _ACTIVATIONS:
        known = ", ".join(name.rsplit(".", 1)[-1] for name in _ACTIVATIONS)
        raise ValueError(f"{file} has the activation {str(activation)[:200]}, but one of {known} is supported.")
    if (source := values.get("module_input_name", "sentence_embedding")) != "sentence_embedding":
        raise ValueError(f"{file} applies to `{str(source)[:60]}`, but only `sentence_embedding` is supported.")
    weights = next((folder / name for name in WEIGHTS_FILES if has_file(folder / name)), None)
    if weights is None:
        raise ValueError(f"{folder} has no {WEIGHTS_FILES[0]}; {CURE}.")
    tensors = dict(read_tensors(weights))
    kernel = tensors.get("linear.weight", np.zeros(0))
    size = len(kernel)
    tensors.setdefault("linear.bias", np.zeros(size, np.float32))  # with `bias` false
    shapes = {name: tensor.shape for name, tensor in tensors.items()}
    expected = {"linear.weight": (size, hidden_size), "linear.bias": (size,)}
    if not size or shapes != expected:
        raise ValueError(f"{weights} has tensors of the shapes {shapes}, but {expected} are expected; {CURE}.")
    arrays = {"dense/kernel": np.ascontiguousarray(kernel.T), "dense/bias": tensors["linear.bias"]}
    return {"dense_size": size, "dense_activation": _ACTIVATIONS[activation]}, arrays


def _save_dense(folder: pathlib.Path, hidden_size: int, activation: str, arrays: Mapping[str, np.ndarray]) -> None:
    kernel, bias = arrays["dense/kernel"], arrays["dense/bias"]
    tensors = {"linear.weight": np.ascontiguousarray(kernel.T), "linear.bias": bias}
    atomic_write(folder / WEIGHTS_FILES[0], safetensors.numpy.save(tensors, metadata={"format": "pt"}))
    names = {ours: name for name, ours in _ACTIVATIONS.items()}
    sizes = {"in_features": hidden_size, "out_features": len(bias), "bias": True}
    write_json(folder / "config.json", {**sizes, "activation_function": names[activation]})


def _pooling(file: pathlib.Path) -> str:
    values = read_json(file, cure=CURE)
    modes = [
        name.removeprefix("pooling_mode_") for name, on in values.items() if name.startswith("pooling_mode_") and on
    ]
    modes = modes or [str(values.get("pooling_mode", "nothing"))]
    names = {**_POOLINGS, **{name: name for name in _POOLINGS.values()}}
    if len(modes) != 1 or modes[0] not in names:
        known = ", ".join(_POOLINGS.values())
        raise ValueError(f"{file} pools by {', '.join(modes)[:200]}, but one of {known} is supported; {_LIST_CURE}.")
    return names[modes[0]]


def _length(file: pathlib.Path, name: str) -> int | None:
    length = optional_json(file, CURE).get(name)
    if length is not None and (isinstance(length, bool) or not isinstance(length, int | float) or length < 3):
        raise ValueError(f"{file}: `{name}` must be an integer of at least 3. Received: {str(length)[:60]}; {CURE}.")
    return None if length is None else int(min(length, _NO_LIMIT))
