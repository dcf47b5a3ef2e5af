"""The files that sentence-transformers adds to a model's folder: a list of modules, and how tokens are pooled."""

import pathlib
from typing import Any

from albert_tf.checkpoints.config_files import CURE
from albert_tf.config import AlbertConfig
from albert_tf.files.atomic import write_json
from albert_tf.files.json import read_json
from albert_tf.files.urls import location, make_folder
from albert_tf.tasks import Pooling

SENTENCE_SETTINGS = "sentence_embedding"
"""Entry of `Checkpoint.settings` with the arguments of AlbertForSentenceEmbedding."""
_MODEL = "AlbertForSentenceEmbedding"
_MODULES_FILE, _LENGTH_FILE = "modules.json", "sentence_bert_config.json"
_LENGTHS = ((_LENGTH_FILE, "max_seq_length"), ("tokenizer_config.json", "model_max_length"))
_NO_LIMIT = 1 << 30
_POOLING_FOLDER, _NORMALIZE_FOLDER = "1_Pooling", "2_Normalize"
_TYPES = "sentence_transformers.models."
_LIST_CURE = "use a model whose modules are Transformer, one kind of Pooling, and at most Normalize"
# Kinds of pooling by their flags.
_POOLINGS = {"cls_token": "cls", "mean_tokens": "mean", "max_tokens": "max", "mean_sqrt_len_tokens": "mean_sqrt_len"}


def read_sentence_settings(folder: pathlib.Path, config: AlbertConfig) -> dict[str, Any]:
    """The settings of a folder of sentence-transformers; empty for other folders.

    Returns:
        A dict with `architectures` and `SENTENCE_SETTINGS`.

    Raises:
        ValueError: a file is damaged, or the modules are others than those that AlbertForSentenceEmbedding has.
    """
    file = folder / _MODULES_FILE
    if not file.is_file():
        return {}
    modules = read_json(file, list, CURE)
    if not all(isinstance(module, dict) and isinstance(module.get("type"), str) for module in modules):
        raise ValueError(f"{file} must be a list of modules with `type` and `path`; {CURE}.")
    kinds = [module["type"].rsplit(".", 1)[-1] for module in modules]
    if kinds not in (["Transformer", "Pooling"], ["Transformer", "Pooling", "Normalize"]):
        raise ValueError(f"{file} names the modules {', '.join(kinds)[:200]}, which are not supported; {_LIST_CURE}.")
    pooling = _pooling(folder / pathlib.PurePath(str(modules[1].get("path", ""))).name / "config.json")
    settings: dict[str, Any] = {"normalize": len(modules) == 3, "pooling": pooling}
    # Since version 6 of sentence-transformers the tokenizer's file has the length.
    lengths = [_length(folder / file, name) for file, name in _LENGTHS]
    settings["max_length"] = min([*filter(None, lengths), config.max_position_embeddings])
    return {"architectures": [_MODEL], SENTENCE_SETTINGS: settings}


def save_sentence_modules(
    folder: str | pathlib.Path, hidden_size: int, normalize: bool, max_length: int, pooling: Pooling = "mean"
) -> None:
    """Writes the files that sentence-transformers needs beside config and weights.

    Args:
        folder: with `config.json` and `model.safetensors`.
        hidden_size: length of an embedding.
        normalize: whether embeddings have length 1.
        max_length: maximum number of ids of a text.
        pooling: as in AlbertForSentenceEmbedding.
    """
    folder = location(folder)
    paths = {"Transformer": "", "Pooling": _POOLING_FOLDER, **({"Normalize": _NORMALIZE_FOLDER} if normalize else {})}
    for path in filter(None, paths.values()):
        make_folder(folder / path)
    modules = [
        {"idx": index, "name": str(index), "path": path, "type": _TYPES + kind}
        for index, (kind, path) in enumerate(paths.items())
    ]
    modes = {f"pooling_mode_{mode}": name == pooling for mode, name in _POOLINGS.items()}
    write_json(folder / _POOLING_FOLDER / "config.json", {"word_embedding_dimension": hidden_size, **modes})
    write_json(folder / _LENGTH_FILE, {"max_seq_length": max_length, "do_lower_case": False})
    write_json(folder / _MODULES_FILE, modules)


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
    length = read_json(file, cure=CURE).get(name) if file.is_file() else None
    if length is not None and (isinstance(length, bool) or not isinstance(length, int | float) or length < 3):
        raise ValueError(f"{file}: `{name}` must be an integer of at least 3. Received: {str(length)[:60]}; {CURE}.")
    return None if length is None else int(min(length, _NO_LIMIT))
