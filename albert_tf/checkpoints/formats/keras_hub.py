"""KerasHub's ALBERT: its config, and the names in its HDF5 files, made of layers' classes and their order."""

import pathlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from albert_tf.checkpoints.checkpoint import check_blocks, reject_unknown
from albert_tf.checkpoints.config_files import CURE, make_config
from albert_tf.checkpoints.formats.attention_axes import merge_heads
from albert_tf.config import AlbertConfig

_BACKBONE = "layers/albert_backbone/"
_CLASSES = ("AlbertBackbone", "AlbertMaskedLM", "AlbertTextClassifier")
_CONFIG_KEYS = {
    "vocab_size": "vocabulary_size",
    "embedding_size": "embedding_dim",
    "hidden_size": "hidden_dim",
    "num_hidden_layers": "num_layers",
    "num_hidden_groups": "num_groups",
    "inner_group_num": "num_inner_repetitions",
    "num_attention_heads": "num_heads",
    "intermediate_size": "intermediate_dim",
    "hidden_dropout_prob": "dropout",
    "attention_probs_dropout_prob": "dropout",
    "max_position_embeddings": "max_sequence_length",
    "type_vocab_size": "num_segments",
}
_EMBEDDINGS = {
    "layers/reversible_embedding/vars/0": "encoder/embeddings/word_embeddings",
    "layers/position_embedding/vars/0": "encoder/embeddings/position_embeddings",
    "layers/embedding/vars/0": "encoder/embeddings/token_type_embeddings",
}
_BLOCK = {
    "_self_attention_layer/query_dense": "attention_{}/query",
    "_self_attention_layer/key_dense": "attention_{}/key",
    "_self_attention_layer/value_dense": "attention_{}/value",
    "_self_attention_layer/output_dense": "attention_{}/output",
    "_self_attention_layer_norm": "attention_{}/layer_norm",
    "_feedforward_intermediate_dense": "ffn_{}/intermediate",
    "_feedforward_output_dense": "ffn_{}/output",
    "_feedforward_layer_norm": "ffn_{}/layer_norm",
}
_HEADS = {
    "layers/masked_lm_head/_intermediate_dense": "masked_lm/transform",
    "layers/masked_lm_head/_intermediate_layer_norm": "masked_lm/layer_norm",
    "layers/dense": "classifier",
}


def config_from(source: pathlib.Path, values: Mapping[str, Any]) -> AlbertConfig:
    """Makes a config from the serialized Keras config of a backbone or of a task model.

    KerasHub always uses tanh GELU, a projection, and epsilon 1e-5 in the masked-LM head.

    Raises:
        ValueError: it is another model, or a value is missing or invalid.
    """
    name, arguments = values.get("class_name"), values.get("config")
    if name not in _CLASSES:
        raise ValueError(
            f"{source} has class_name={name!r}, which is neither a model of this package nor one of "
            f"{', '.join(_CLASSES)}; load other Keras models with keras.saving.load_model."
        )
    if isinstance(arguments, dict) and isinstance(arguments.get("backbone"), dict):
        arguments = arguments["backbone"].get("config")
    if not isinstance(arguments, dict):
        raise ValueError(f"{source} holds {type(arguments).__name__} instead of a model's arguments; {CURE}.")
    if missing := sorted(set(_CONFIG_KEYS.values()) - set(arguments)):
        raise ValueError(f"{source} has no {', '.join(missing)} in the config of the model; download it again.")
    ours = {ours: arguments[theirs] for ours, theirs in _CONFIG_KEYS.items()}
    is_square = arguments["embedding_dim"] == arguments["hidden_dim"]
    ours |= {"embedding_projection": True if is_square else None, "masked_lm_layer_norm_eps": 1e-5}
    return make_config(source, ours)


def arrays_from(
    source: pathlib.Path, config: AlbertConfig, backbone: Mapping[str, np.ndarray], head: Mapping[str, np.ndarray]
) -> dict[str, np.ndarray]:
    """Converts the tensors of a backbone and of a head to arrays by variable path.

    Raises:
        ValueError: a tensor is unknown, or the number of heads is not that of the config.
    """
    check_blocks(source, config, len(backbone))
    in_backbone, in_head = _backbone_paths(config), _head_paths()
    reject_unknown(source, (set(backbone) - set(in_backbone)) | (set(head) - set(in_head)))
    arrays = {in_backbone[name]: tensor for name, tensor in backbone.items()}
    arrays |= {in_head[name]: tensor for name, tensor in head.items()}
    return merge_heads(source, config, arrays)


def split(tensors: Mapping[str, np.ndarray]) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Splits the tensors of a file into those of the backbone and of the head."""
    backbone = {name.removeprefix(_BACKBONE): tensor for name, tensor in tensors.items() if name.startswith(_BACKBONE)}
    others = {name: tensor for name, tensor in tensors.items() if not name.startswith(_BACKBONE)}
    return (backbone, others) if backbone else (others, {})


def _backbone_paths(config: AlbertConfig) -> dict[str, str]:
    paths = dict(_EMBEDDINGS)
    paths |= _pair("layers/layer_normalization", "encoder/embeddings/layer_norm")
    paths |= _pair("layers/dense", "encoder/projection") | _pair("layers/dense_1", "encoder/pooler")
    for index in range(config.num_hidden_groups * config.inner_group_num):
        layer = "layers/transformer_encoder" + (f"_{index}" if index else "")
        block = "{}_{}".format(*divmod(index, config.inner_group_num))
        for theirs, ours in _BLOCK.items():
            paths |= _pair(f"{layer}/{theirs}", f"encoder/{ours.format(block)}")
    return paths


def _head_paths() -> dict[str, str]:
    paths = {"layers/masked_lm_head/vars/0": "masked_lm/output_bias"}
    for theirs, ours in _HEADS.items():
        paths |= _pair(theirs, ours)
    return paths


def _pair(theirs: str, ours: str) -> dict[str, str]:
    names = ("gamma", "beta") if ours.endswith("layer_norm") else ("kernel", "bias")
    return {f"{theirs}/vars/{index}": f"{ours}/{name}" for index, name in enumerate(names)}
