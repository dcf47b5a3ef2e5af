"""The names of each variable in Google's and Hugging Face's formats: one table for reading and writing."""

from collections.abc import Mapping
from typing import Literal, NamedTuple

import numpy as np

from albert_tf.config import AlbertConfig

Format = Literal["google", "huggingface"]
_TITLES: Mapping[Format, str] = {"google": "Google", "huggingface": "Hugging Face"}
# `problem` of a classifier, and `problem_type` in `config.json`.
PROBLEM_TYPES: Mapping[str, str] = {
    "classification": "single_label_classification",
    "multi_label": "multi_label_classification",
    "regression": "regression",
}


class TensorNames(NamedTuple):
    """The names of one variable."""

    path: str
    google: str
    huggingface: str


def _dense(path: str, google: str, huggingface: str, names: tuple[str, str] = ("kernel", "bias")) -> list[TensorNames]:
    return [
        TensorNames(f"{path}/{ours}", f"{google}/{ours}", f"{huggingface}.{theirs}")
        for ours, theirs in zip(names, ("weight", "bias"))
    ]


def _norm(path: str, google: str, huggingface: str) -> list[TensorNames]:
    return _dense(path, google, huggingface, ("gamma", "beta"))


_EMBEDDINGS = (
    ("word_embeddings", "word_embeddings", "word_embeddings.weight"),
    ("token_type_embeddings", "token_type_embeddings", "token_type_embeddings.weight"),
    ("position_embeddings", "position_embeddings", "position_embeddings.weight"),
    *_norm("layer_norm", "LayerNorm", "LayerNorm"),
)
_DENSE = (
    ("encoder/projection", "bert/encoder/embedding_hidden_mapping_in", "albert.encoder.embedding_hidden_mapping_in"),
    ("encoder/pooler", "bert/pooler/dense", "albert.pooler"),
    ("masked_lm/transform", "cls/predictions/transform/dense", "predictions.dense"),
)
_ATTENTION = (
    ("query", "attention_1/self/query", "attention.query"),
    ("key", "attention_1/self/key", "attention.key"),
    ("value", "attention_1/self/value", "attention.value"),
    ("output", "attention_1/output/dense", "attention.dense"),
)
_FFN = (
    ("intermediate", "ffn_1/intermediate/dense", "ffn"),
    ("output", "ffn_1/intermediate/output/dense", "ffn_output"),
)
_HEADS = (
    *_norm("masked_lm/layer_norm", "cls/predictions/transform/LayerNorm", "predictions.LayerNorm"),
    TensorNames("masked_lm/output_bias", "cls/predictions/output_bias", "predictions.bias"),
    TensorNames("sentence_order/kernel", "cls/seq_relationship/output_weights", "sop_classifier.classifier.weight"),
    TensorNames("sentence_order/bias", "cls/seq_relationship/output_bias", "sop_classifier.classifier.bias"),
    TensorNames("classifier/kernel", "output_weights", "classifier.weight"),
    TensorNames("classifier/bias", "output_bias", "classifier.bias"),
    TensorNames("qa_span/kernel", "cls/squad/output_weights", "qa_outputs.weight"),
    TensorNames("qa_span/bias", "cls/squad/output_bias", "qa_outputs.bias"),
    # Hugging Face has this head for XLNet alone, under these names.
    *_dense("qa_beam/start", "start_logits/dense", "start_logits.dense"),
    *_dense("qa_beam/end_0", "end_logits/dense_0", "end_logits.dense_0"),
    *_norm("qa_beam/end_layer_norm", "end_logits/LayerNorm", "end_logits.LayerNorm"),
    *_dense("qa_beam/end_1", "end_logits/dense_1", "end_logits.dense_1"),
    *_dense("qa_beam/answer_0", "answer_class/dense_0", "answer_class.dense_0"),
    TensorNames("qa_beam/answer_1/kernel", "answer_class/dense_1/kernel", "answer_class.dense_1.weight"),
)


def rows(config: AlbertConfig) -> list[TensorNames]:
    """Every variable that a model of this config can have, including all heads.

    If layers share only attention or only the feed-forward part, files have one group for each layer, with copies of
    the shared part: several rows then have the same path.
    """
    table = [
        TensorNames(f"encoder/embeddings/{path}", f"bert/embeddings/{google}", f"albert.embeddings.{huggingface}")
        for path, google, huggingface in _EMBEDDINGS
    ]
    for path, google, huggingface in _DENSE:
        if path != "encoder/projection" or config.has_projection:
            table += _dense(path, google, huggingface)
    for group in range(num_file_groups(config)):
        for inner in range(config.inner_group_num):
            table += _block(config, group, inner)
    return table + list(_HEADS)


def num_file_groups(config: AlbertConfig) -> int:
    """Number of groups of blocks in a file of this config."""
    return max(config.num_attention_groups, config.num_ffn_groups)


def for_file(config: AlbertConfig, arrays: Mapping[str, np.ndarray], layout: Format) -> dict[str, np.ndarray]:
    """Converts arrays by variable path to a format's tensors; raises ValueError if it has no name for an array."""
    table = rows(config)
    if unnamed := sorted(arrays.keys() - {row.path for row in table}):
        raise ValueError(
            f"The {_TITLES[layout]} format has no name for {joined(unnamed)}, which would be lost. Save the model in a "
            ".keras file (model.save), or save only its encoder (model.encoder.save_pretrained)."
        )
    return {getattr(row, layout): reorient(row, arrays[row.path], layout) for row in table if row.path in arrays}


def reorient(row: TensorNames, array: np.ndarray, layout: Format) -> np.ndarray:
    """Transposes a variable that the format stores transposed; it converts in both directions."""
    is_transposed = row.google.endswith("output_weights") if layout == "google" else row.path.endswith("/kernel")
    return np.ascontiguousarray(array.T) if is_transposed else array


def joined(names: list[str]) -> str:
    """At most four of the names, for an error message."""
    shown = ", ".join(names[:4])
    return shown if len(names) <= 4 else f"{shown} and {len(names) - 4} more"


def _block(config: AlbertConfig, group: int, inner: int) -> list[TensorNames]:
    groups = num_file_groups(config)
    attention = f"encoder/attention_{group * config.num_attention_groups // groups}_{inner}"
    ffn = f"encoder/ffn_{group * config.num_ffn_groups // groups}_{inner}"
    google = f"bert/encoder/transformer/group_{group}/inner_group_{inner}"
    huggingface = f"albert.encoder.albert_layer_groups.{group}.albert_layers.{inner}"
    table = []
    for part, names in ((attention, _ATTENTION), (ffn, _FFN)):
        for layer, google_name, huggingface_name in names:
            table += _dense(f"{part}/{layer}", f"{google}/{google_name}", f"{huggingface}.{huggingface_name}")
    table += _norm(f"{attention}/layer_norm", f"{google}/LayerNorm", f"{huggingface}.attention.LayerNorm")
    return table + _norm(f"{ffn}/layer_norm", f"{google}/LayerNorm_1", f"{huggingface}.full_layer_layer_norm")
