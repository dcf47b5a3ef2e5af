"""Tokenization in TensorFlow graphs, from raw strings to model inputs.

B texts, R rows of the batch, T ids of a text, L sequence. R is B, or more if texts are split into windows.
"""

# The checker's stubs of TensorFlow know little of ragged tensors.
# pyright: reportAttributeAccessIssue=false, reportOptionalMemberAccess=false
# pyright: reportReturnType=false, reportArgumentType=false

import base64
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import keras
import tensorflow as tf
import tensorflow_text  # noqa: F401  # whole, because two threads cannot import its parts

from albert_tf.tokenization.batching import BatchLayout
from albert_tf.tokenization.files import TOKENIZERS_FILE, find_vocabulary
from albert_tf.tokenization.interface import PieceModel
from albert_tf.tokenization.loading import load_piece_model
from albert_tf.tokenization.ragged import take
from albert_tf.tokenization.splitting_graph import SplitInGraph


@keras.saving.register_keras_serializable(package="albert_tf")
class TokenizerLayer(keras.layers.Layer):
    """Tokenizes strings in a graph with the same ids as `AlbertTokenizer`; created by `AlbertTokenizer.as_layer`.

    The vocabulary is saved with SavedModels and `.keras` files. XLA does not support strings: use the layer in the
    input pipeline, or in a serving signature before the model.

    Args:
        model: PieceModel.
        layout: BatchLayout. Long texts are truncated.
        return_offsets: whether to return `offsets`.
        allow_special: whether literals of special pieces become their ids.

    Call arguments:
        texts: tf.string [B], UTF-8, or a pair of tensors for first and second texts.

    Returns:
        dict of int32 [R, L] as returned by `AlbertTokenizer`; `offsets` are in bytes. R is dynamic, and so is L with
        padding "longest".

    Raises:
        ValueError: the vocabulary needs a segmenter; a tensor is not of strings [B], or there are more than two.
    """

    def __init__(
        self,
        model: PieceModel,
        layout: BatchLayout,
        return_offsets: bool = False,
        allow_special: bool = False,
        name: str | None = None,
    ):
        super().__init__(name=name, trainable=False, autocast=False)
        self.supports_jit = False
        self._model = model
        self._layout = layout
        self._return_offsets = return_offsets
        self._allow_special = allow_special
        pieces = model.in_graph(with_offsets=return_offsets)
        self._pieces = SplitInGraph(pieces, model.special_tokens()) if allow_special else pieces

    def call(self, texts: tf.Tensor | tuple[tf.Tensor, tf.Tensor]) -> dict[str, tf.Tensor]:
        return self.arrange([self.tokenize(self.used_part(text)) for text in _as_tensors(texts)])

    def arrange(self, rows: list[dict[str, tf.RaggedTensor]]) -> dict[str, tf.Tensor]:
        """What a call returns, from the results of `tokenize` for texts and, in pairs, second texts."""
        cuts = self._choose_cuts([row["input_ids"].row_lengths() for row in rows])
        rows = [cut.apply(row) for row, cut in zip(rows, cuts, strict=True)]
        special = self._model.special
        ids = _surround([row["input_ids"] for row in rows], special.cls, special.sep)  # [R, (L)]
        totals = ids.row_lengths()
        inputs = {"input_ids": self._pad(ids, special.pad)}  # [R, L]
        positions = tf.range(tf.shape(inputs["input_ids"])[1])
        mask = positions < totals[:, tf.newaxis]
        types = mask & (positions >= cuts[0].lengths[:, tf.newaxis] + 2) if len(rows) == 2 else tf.zeros_like(mask)
        inputs |= {"attention_mask": tf.cast(mask, tf.int32), "token_type_ids": tf.cast(types, tf.int32)}
        if self._return_offsets:
            spans = [_surround([row[name] for row in rows], 0, 0) for name in ("starts", "ends")]
            inputs["offsets"] = tf.stack([self._pad(span, 0) for span in spans], axis=2)  # [R, L, 2]
        if self._layout.doc_stride is not None:
            inputs["overflow_to_sample_mapping"] = cuts[0].samples
        return inputs

    def get_config(self) -> dict[str, Any]:
        """The vocabulary's files and all options."""
        with tempfile.TemporaryDirectory() as folder:
            self._model.save(folder)
            paths = [path for path in Path(folder).iterdir() if path.name != TOKENIZERS_FILE]
            files = {path.name: base64.b64encode(path.read_bytes()).decode() for path in paths}
        return {
            "name": self.name,
            "files": files,
            "layout": asdict(self._layout),
            "return_offsets": self._return_offsets,
            "allow_special": self._allow_special,
        }

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> "TokenizerLayer":
        """Creates a layer from the result of `get_config`."""
        config = dict(config)
        with tempfile.TemporaryDirectory() as folder:
            for name, content in config.pop("files").items():
                (Path(folder) / Path(name).name).write_bytes(base64.b64decode(content))
            model = load_piece_model(find_vocabulary(folder))
        return cls(model, BatchLayout(**config.pop("layout")), **config)

    def used_part(self, texts: tf.Tensor) -> tf.Tensor:
        """What of tf.string [B] is tokenized if texts are truncated: time may grow with the square of the length."""
        most = self._layout.max_characters
        return texts if most is None else tf.strings.substr(texts, 0, most, unit="UTF8_CHAR")

    def tokenize(self, texts: tf.Tensor) -> dict[str, tf.RaggedTensor]:
        """Converts tf.string [B] to `input_ids` [B, (T)], without special ids, and `starts` and `ends` in bytes."""
        if not self._return_offsets:
            return {"input_ids": self._pieces.tokenize(texts)}
        encoded = self._pieces.tokenize_with_offsets(texts)
        starts, ends = (encoded.ids.with_values(encoded.offsets.values[:, side]) for side in (0, 1))
        return {"input_ids": encoded.ids, "starts": starts, "ends": ends}

    def _choose_cuts(self, lengths: list[tf.Tensor]) -> list["_Cut"]:
        """As `batching.choose_windows`, for texts and for second texts."""
        layout, first = self._layout, lengths[0]
        samples, capacity = tf.range(tf.size(first)), layout.max_length - 1 - len(lengths)
        if layout.doc_stride is not None:
            return self._spread(lengths, capacity)
        if len(lengths) == 1:
            return [_Cut(samples, tf.zeros_like(first), tf.minimum(first, capacity))]
        second = lengths[1]
        cut = (
            tf.minimum(first, tf.maximum(capacity - second, (capacity + 1) // 2)),
            tf.minimum(second, tf.maximum(capacity - first, capacity // 2)),
        )
        return [_Cut(samples, tf.zeros_like(first), length) for length in cut]

    def _spread(self, lengths: list[tf.Tensor], capacity: int) -> list["_Cut"]:
        *fixed, spread = lengths
        capacities = capacity - fixed[0] if fixed else tf.fill(tf.shape(spread), capacity)
        message = "The first text of a pair must leave space for the second in every window: raise max_length."
        with tf.control_dependencies([tf.debugging.assert_positive(capacities, message)]):
            steps = tf.minimum(capacities, self._layout.doc_stride)
        counts = 1 + (tf.maximum(spread - capacities, 0) + steps - 1) // steps  # [B]
        samples = tf.repeat(tf.range(tf.size(spread)), counts)  # [R]
        starts = tf.ragged.range(counts).values * tf.gather(steps, samples)
        lengths = tf.minimum(tf.gather(capacities, samples), tf.gather(spread, samples) - starts)
        whole = [_Cut(samples, tf.zeros_like(samples), tf.gather(length, samples)) for length in fixed]
        return [*whole, _Cut(samples, starts, lengths)]

    def _pad(self, rows: tf.RaggedTensor, value: int) -> tf.Tensor:
        if self._layout.padding == "max_length":
            return rows.to_tensor(value, shape=[None, self._layout.max_length])
        multiple = self._layout.pad_to_multiple_of
        if multiple is None:
            return rows.to_tensor(value)
        longest = tf.reduce_max(tf.concat([[0], rows.row_lengths()], axis=0))
        return rows.to_tensor(value, shape=tf.stack([-1, -(-longest // multiple) * multiple]))


@dataclass(frozen=True)
class _Cut:
    """The part of a text in each row: int32 [R]."""

    samples: tf.Tensor
    starts: tf.Tensor
    lengths: tf.Tensor

    def apply(self, rows: Mapping[str, tf.RaggedTensor]) -> dict[str, tf.RaggedTensor]:
        return {name: take(values, self.samples, self.starts, self.lengths) for name, values in rows.items()}


def _surround(rows: list[tf.RaggedTensor], before: int, after: int) -> tf.RaggedTensor:
    """Adds a value before the first and after each text: from [R, (T)] each to [R, (L)]."""
    first, last = (tf.fill([rows[0].nrows(), 1], value) for value in (before, after))
    return tf.concat([first, *(part for row in rows for part in (row, last))], axis=1)


def _as_tensors(texts: tf.Tensor | tuple[tf.Tensor, tf.Tensor]) -> list[tf.Tensor]:
    tensors = list(texts) if isinstance(texts, list | tuple) else [texts]
    is_valid = 1 <= len(tensors) <= 2 and all(each.shape.rank == 1 and each.dtype == tf.string for each in tensors)
    if not is_valid or not tensors[0].shape.is_compatible_with(tensors[-1].shape):
        received = ", ".join(f"{each.dtype.name} {each.shape}" for each in tensors)
        raise ValueError(
            f"`texts` must be one or two string tensors of shape [B], as long as each other. Received: {received}."
        )
    if len(tensors) == 2:  # lengths may be unknown until now
        message = "`texts` must have as many second texts as first texts."
        with tf.control_dependencies([tf.debugging.assert_equal(*map(tf.size, tensors), message)]):
            tensors[1] = tf.identity(tensors[1])
    return tensors
