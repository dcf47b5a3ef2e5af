"""Loads whatever folder holds a model, with what computes it."""

import dataclasses
import pathlib
from collections.abc import Container, Iterator
from typing import Any, Literal, get_args

from albert_tf.checkpoints.reading import holds_weights
from albert_tf.config import AlbertConfig
from albert_tf.data.finetuning.encoded import MAX_TOKENS
from albert_tf.files.exports import ONNX, SAVED_MODEL, export_format, newest_first
from albert_tf.files.hub import model_folder
from albert_tf.files.json import read_json
from albert_tf.files.urls import local_copy
from albert_tf.inference.onnx_network import OnnxNetwork, is_onnx_folder
from albert_tf.inference.predictor import Predictor
from albert_tf.lazy import FIRST_IMPORTS
from albert_tf.tasks.settings import read_settings
from albert_tf.tasks.table import SETTINGS_FILE
from albert_tf.tokenization import AlbertTokenizer

EngineName = Literal["keras", "tensorflow", "onnxruntime", "openvino"]
Precision = Literal["float32", "bfloat16", "float16", "int8"]
SAVED_MODEL_FILE = "saved_model.pb"
# The vocabulary of a SavedModel, in the folder that TensorFlow leaves to other programs.
TOKENIZER_FOLDER = "assets.extra/tokenizer"


def load_model(
    model: str | pathlib.Path,
    engine: EngineName | None = None,
    precision: Precision | None = None,
    batch_size: int = 32,
) -> Predictor:
    """Loads a model that takes texts; the arguments are those of `albert_tf.pipeline`."""
    if engine not in (None, *get_args(EngineName)):
        raise ValueError(f"`engine` must be one of {', '.join(get_args(EngineName))}. Received: engine={engine!r}.")
    if precision not in (None, *get_args(Precision)):
        raise ValueError(
            f"`precision` must be one of {', '.join(get_args(Precision))}. Received: precision={precision!r}."
        )
    folder = model_folder(model) if engine in (None, "keras") else local_copy(model)  # names are of weights
    try:
        if engine == "keras" or (engine is None and holds_weights(folder)):
            return _load_keras(folder, precision, batch_size)
        for version in newest_first(folder):
            if engine != "tensorflow" and is_onnx_folder(version):
                return load_onnx(version, engine or "auto", precision or "auto", batch_size)
            if engine in (None, "tensorflow") and (version / SAVED_MODEL_FILE).is_file():
                check_saved_precision(version, precision)
                return _load_saved_model(version, batch_size)
        if engine is None:
            return _load_keras(folder, precision, batch_size)
    except ModuleNotFoundError as error:
        raise ValueError(
            f"{error.name} is not installed, which {folder} needs; install albert-tf with its requirements, or export "
            "the model with --format onnx."
        ) from None
    if not folder.exists():
        raise ValueError(f"{folder} does not exist; check the spelling.")
    kind = "SavedModel" if engine == "tensorflow" else "ONNX folder"
    raise ValueError(f"{folder} holds no {kind}; write one with `albert-tf export`, or choose another engine.")


def load_onnx(
    folder: str | pathlib.Path,
    engine: Literal["auto", "openvino", "onnxruntime"] = "auto",
    precision: Literal["auto", "float32", "bfloat16", "float16", "int8"] = "auto",
    batch_size: int = 32,
    max_tokens: int = MAX_TOKENS,
) -> Predictor:
    """Loads a folder written by `export_onnx`, without TensorFlow and Keras.

    Args:
        folder: folder of one version.
        engine, precision: see OnnxNetwork.
        batch_size, max_tokens: maximum numbers of rows and of tokens that are computed at once.

    Raises:
        ValueError: the folder is incomplete or damaged, has no file of this precision, or the engine is not installed.
    """
    folder = local_copy(folder)
    settings = read_settings(folder, AlbertConfig.from_json(folder / "config.json").max_position_embeddings)
    network = OnnxNetwork(folder, settings.task, engine, precision)
    tokenizer = AlbertTokenizer.from_pretrained(folder)
    return Predictor(network, tokenizer, settings, batch_size, max_tokens)


def _load_saved_model(folder: pathlib.Path, batch_size: int) -> Predictor:
    """Loads the SavedModel of one version; raises ValueError if `export_saved_model` did not write it."""
    with FIRST_IMPORTS:
        from albert_tf.inference.saved_model_network import SavedModelNetwork, restore

    restored = restore(folder)
    _check_exported(folder, restored)
    card = read_json(folder / SETTINGS_FILE, cure="export the model again")
    try:
        config = AlbertConfig(**card["config"])
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{folder / SETTINGS_FILE}: `config` is damaged ({error}); export the model again.") from None
    settings = read_settings(folder, config.max_position_embeddings)
    network = SavedModelNetwork(restored, settings, str(card.get("precision")))
    tokenizer = AlbertTokenizer.from_pretrained(folder / TOKENIZER_FOLDER)
    return Predictor(network, tokenizer, settings, batch_size)


def check_saved_precision(folder: pathlib.Path, precision: str | None) -> None:
    """Raises ValueError if a precision is asked of a SavedModel."""
    if precision is not None:
        raise ValueError(
            f"{folder} is a SavedModel, whose precision was chosen when it was exported. Received: "
            f"precision={precision!r}; leave it out."
        )


def check_takes_texts(folder: pathlib.Path, signatures: Container[str], other_cure: str = "") -> None:
    """Raises ValueError for a SavedModel without `serving_default`."""
    if "serving_default" not in signatures:
        cure = f"export it with --format saved_model{other_cure and ', or '}{other_cure}"
        raise ValueError(f"{folder} does not take texts, like modules for TF Hub; {cure}.")


def _load_keras(model: str | pathlib.Path, precision: Precision | None, batch_size: int) -> Predictor:
    if precision not in (None, "float32", "bfloat16"):
        raise ValueError(
            f"Weights are computed in float32 or bfloat16. Received: precision={precision!r}; export them with "
            "--format onnx for others."
        )
    with FIRST_IMPORTS:
        from albert_tf.inference.folder import load_folder

    form = None if holds_weights(model) else export_format(pathlib.Path(model))
    if form in (SAVED_MODEL, ONNX):  # without `engine` it would have been loaded
        raise ValueError(f"{model} is an export of format {form}, not a folder of weights; leave `engine` out.")
    return dataclasses.replace(load_folder(model, precision), batch_size=batch_size)


def _check_exported(folder: pathlib.Path, restored: Any) -> None:
    """Raises ValueError for a SavedModel of another program, or without text or vocabulary."""
    if "serving_default" in restored.signatures and (folder / TOKENIZER_FOLDER).is_dir():
        return
    names = ", ".join(_signature_lines(restored)) or "none"
    cure = f"call its signatures with tf.saved_model.load: {names}"
    check_takes_texts(folder, restored.signatures, cure)
    raise ValueError(f"{folder} was not written by `albert-tf export`, or lacks its {TOKENIZER_FOLDER}; {cure}.")


def _signature_lines(restored: Any) -> Iterator[str]:
    for name, function in restored.signatures.items():
        inputs, outputs = function.structured_input_signature[1], function.structured_outputs
        yield f"{name}({', '.join(inputs)}) -> {', '.join(sorted(outputs))}"
