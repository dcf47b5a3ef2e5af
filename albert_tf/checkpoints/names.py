"""How each variable is called in every file format: one table, from which both directions follow.

A row names a variable by its path below the model, by the reference's TensorFlow name and by Hugging Face's name.
`{group}` and `{inner}` run over the groups of blocks and the blocks in a group.
"""

from collections.abc import Mapping
from typing import Literal, NamedTuple

import numpy as np

from albert_tf.config import AlbertConfig

Format = Literal["google", "huggingface"]
_TITLES: Mapping[Format, str] = {"google": "Google", "huggingface": "Hugging Face"}
# What a classifier learns, and what `config.json` calls it.
PROBLEM_TYPES: Mapping[str, str] = {
    "classification": "single_label_classification",
    "multi_label": "multi_label_classification",
    "regression": "regression",
}


class Row(NamedTuple):
    """The names of one variable."""

    path: str
    google: str
    huggingface: str


_EMBEDDINGS = (
    ("word_embeddings", "word_embeddings", "word_embeddings.weight"),
    ("token_type_embeddings", "token_type_embeddings", "token_type_embeddings.weight"),
    ("position_embeddings", "position_embeddings", "position_embeddings.weight"),
    ("layer_norm/gamma", "LayerNorm/gamma", "LayerNorm.weight"),
    ("layer_norm/beta", "LayerNorm/beta", "LayerNorm.bias"),
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
    Row("masked_lm/layer_norm/gamma", "cls/predictions/transform/LayerNorm/gamma", "predictions.LayerNorm.weight"),
    Row("masked_lm/layer_norm/beta", "cls/predictions/transform/LayerNorm/beta", "predictions.LayerNorm.bias"),
    Row("masked_lm/output_bias", "cls/predictions/output_bias", "predictions.bias"),
    Row("sentence_order/kernel", "cls/seq_relationship/output_weights", "sop_classifier.classifier.weight"),
    Row("sentence_order/bias", "cls/seq_relationship/output_bias", "sop_classifier.classifier.bias"),
    Row("classifier/kernel", "output_weights", "classifier.weight"),
    Row("classifier/bias", "output_bias", "classifier.bias"),
    Row("qa_span/kernel", "cls/squad/output_weights", "qa_outputs.weight"),
    Row("qa_span/bias", "cls/squad/output_bias", "qa_outputs.bias"),
    # Hugging Face has this head for XLNet alone, under these names.
    Row("qa_beam/start/kernel", "start_logits/dense/kernel", "start_logits.dense.weight"),
    Row("qa_beam/start/bias", "start_logits/dense/bias", "start_logits.dense.bias"),
    Row("qa_beam/end_0/kernel", "end_logits/dense_0/kernel", "end_logits.dense_0.weight"),
    Row("qa_beam/end_0/bias", "end_logits/dense_0/bias", "end_logits.dense_0.bias"),
    Row("qa_beam/end_layer_norm/gamma", "end_logits/LayerNorm/gamma", "end_logits.LayerNorm.weight"),
    Row("qa_beam/end_layer_norm/beta", "end_logits/LayerNorm/beta", "end_logits.LayerNorm.bias"),
    Row("qa_beam/end_1/kernel", "end_logits/dense_1/kernel", "end_logits.dense_1.weight"),
    Row("qa_beam/end_1/bias", "end_logits/dense_1/bias", "end_logits.dense_1.bias"),
    Row("qa_beam/answer_0/kernel", "answer_class/dense_0/kernel", "answer_class.dense_0.weight"),
    Row("qa_beam/answer_0/bias", "answer_class/dense_0/bias", "answer_class.dense_0.bias"),
    Row("qa_beam/answer_1/kernel", "answer_class/dense_1/kernel", "answer_class.dense_1.weight"),
)


def rows(config: AlbertConfig) -> list[Row]:
    """Every variable that a model of this config can have, heads included.

    Where layers share only attention or only the feed-forward part, the files hold one group for each layer, and the
    shared part stands there once for each of them: several rows then have the same path.
    """
    table = [
        Row(f"encoder/embeddings/{path}", f"bert/embeddings/{google}", f"albert.embeddings.{huggingface}")
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
    """How many groups of blocks a file of this config holds."""
    return max(config.num_attention_groups, config.num_ffn_groups)


def for_file(config: AlbertConfig, arrays: Mapping[str, np.ndarray], layout: Format) -> dict[str, np.ndarray]:
    """Arrays by variable path become tensors by the format's names, as the format stores them.

    Raises:
        ValueError: where the format has no name for an array, which would be lost.
    """
    table = rows(config)
    if unnamed := sorted(arrays.keys() - {row.path for row in table}):
        shown = ", ".join(unnamed[:4]) + (f" and {len(unnamed) - 4} more" if len(unnamed) > 4 else "")
        raise ValueError(
            f"The {_TITLES[layout]} format has no name for {shown}, which would be lost. Keep the model in a .keras "
            "file (model.save), or save its encoder alone (model.encoder.save_pretrained)."
        )
    return {getattr(row, layout): to_file(row, arrays[row.path], layout) for row in table if row.path in arrays}


def to_file(row: Row, array: np.ndarray, layout: Format) -> np.ndarray:
    """The array as the format stores it."""
    return np.ascontiguousarray(array.T) if _is_transposed(row, layout) else array


def from_file(row: Row, array: np.ndarray, layout: Format) -> np.ndarray:
    """The array as our variable holds it."""
    return to_file(row, array, layout)


def _is_transposed(row: Row, layout: Format) -> bool:
    if layout == "google":
        return row.google.endswith("output_weights")
    return row.path.endswith("/kernel")


def _dense(path: str, google: str, huggingface: str) -> list[Row]:
    return [
        Row(f"{path}/kernel", f"{google}/kernel", f"{huggingface}.weight"),
        Row(f"{path}/bias", f"{google}/bias", f"{huggingface}.bias"),
    ]


def _norm(path: str, google: str, huggingface: str) -> list[Row]:
    return [
        Row(f"{path}/layer_norm/gamma", f"{google}/gamma", f"{huggingface}.weight"),
        Row(f"{path}/layer_norm/beta", f"{google}/beta", f"{huggingface}.bias"),
    ]


def _block(config: AlbertConfig, group: int, inner: int) -> list[Row]:
    groups = num_file_groups(config)
    attention = f"encoder/attention_{group * config.num_attention_groups // groups}_{inner}"
    ffn = f"encoder/ffn_{group * config.num_ffn_groups // groups}_{inner}"
    google = f"bert/encoder/transformer/group_{group}/inner_group_{inner}"
    huggingface = f"albert.encoder.albert_layer_groups.{group}.albert_layers.{inner}"
    table = []
    for part, names in ((attention, _ATTENTION), (ffn, _FFN)):
        for own, google_name, huggingface_name in names:
            table += _dense(f"{part}/{own}", f"{google}/{google_name}", f"{huggingface}.{huggingface_name}")
    table += _norm(attention, f"{google}/LayerNorm", f"{huggingface}.attention.LayerNorm")
    return table + _norm(ffn, f"{google}/LayerNorm_1", f"{huggingface}.full_layer_layer_norm")
