"""Tokenization in TensorFlow graphs, from raw strings to model inputs.

B texts, R rows of the batch, T ids of a text, L sequence. R is B, or more if texts are split into windows.
"""

# The checker's stubs of TensorFlow know little of ragged tensors.
# pyright: reportAttributeAccessIssue=false, reportOptionalMemberAccess=false
# pyright: reportReturnType=false, reportArgumentType=false

import base64
import re
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import keras
import tensorflow as tf

from albert_tf.tokenization.batching import BatchLayout
from albert_tf.tokenization.files import TOKENIZERS_FILE, find_vocabulary
from albert_tf.tokenization.interface import PieceModel, PiecesInGraph, RaggedPieces, SpecialTokens
from albert_tf.tokenization.loading import load_piece_model
from albert_tf.tokenization.ragged import follows_in_row, positions_in_rows, select, take

# Invalid UTF-8 that does not occur in texts.
_BORDER = b"\xff\x00[special]\xff"
# All characters that `str.strip` removes.
WHITE_SPACE = "".join(filter(str.isspace, map(chr, range(sys.maxunicode + 1))))
_BEGINS_WITH_SPACE = rf"[{WHITE_SPACE}]\C*"


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
        self._pieces = SpecialTokensInGraph(pieces, model.special_tokens()) if allow_special else pieces

    def call(self, texts: tf.Tensor | tuple[tf.Tensor, tf.Tensor]) -> dict[str, tf.Tensor]:
        return self.arrange([self.tokenize(text) for text in _as_tensors(texts)])

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
        kept = (
            tf.minimum(first, tf.maximum(capacity - second, (capacity + 1) // 2)),
            tf.minimum(second, tf.maximum(capacity - first, capacity // 2)),
        )
        return [_Cut(samples, tf.zeros_like(first), length) for length in kept]

    def _spread(self, lengths: list[tf.Tensor], capacity: int) -> list["_Cut"]:
        *fixed, spread = lengths
        capacities = capacity - fixed[0] if fixed else tf.fill(tf.shape(spread), capacity)
        message = "The first text of a pair must leave space for the second in every window: raise max_length."
        with tf.control_dependencies([tf.debugging.assert_positive(capacities, message)]):
            steps = tf.minimum(capacities, self._layout.doc_stride)
        counts = 1 + (tf.maximum(spread - capacities, 0) + steps - 1) // steps  # [B]
        samples = tf.repeat(tf.range(tf.size(spread)), counts)  # [R]
        starts = tf.ragged.range(counts).values * tf.gather(steps, samples)
        kept = tf.minimum(tf.gather(capacities, samples), tf.gather(spread, samples) - starts)
        whole = [_Cut(samples, tf.zeros_like(samples), tf.gather(length, samples)) for length in fixed]
        return [*whole, _Cut(samples, starts, kept)]

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
        found = ", ".join(f"{each.dtype.name} {each.shape}" for each in tensors)
        raise ValueError(
            f"`texts` must be one or two string tensors of shape [B], as long as each other. Received: {found}."
        )
    if len(tensors) == 2:  # lengths may be unknown until now
        message = "`texts` must have as many second texts as first texts."
        with tf.control_dependencies([tf.debugging.assert_equal(*map(tf.size, tensors), message)]):
            tensors[1] = tf.identity(tensors[1])
    return tensors


class SpecialTokensInGraph(tf.Module):
    """As `SplitAtSpecialTokens`, in a graph. B texts, P parts of a text, T ids."""

    def __init__(self, pieces: PiecesInGraph, special: SpecialTokens):
        super().__init__()
        self._pieces = pieces
        self._pattern = f"({'|'.join(map(re.escape, special.ids))})"
        self._literals, self._ids = list(special.ids), list(special.ids.values())
        self._inside_words = special.inside_words

    def tokenize(self, texts: tf.Tensor) -> tf.RaggedTensor:
        """Converts tf.string [B] to int32 ids [B, (T)]."""
        parts, is_literal = self._split(texts)
        between = self._pieces.tokenize(_between(parts, is_literal))
        between, _ = self._continue_words(parts, is_literal, between)
        return _join(parts, between, self._special(is_literal))

    def tokenize_with_offsets(self, texts: tf.Tensor) -> RaggedPieces:
        """Converts tf.string [B] to int32 ids [B, (T)] and offsets int32 [B, (T), 2] in bytes."""
        parts, is_literal = self._split(texts)
        encoded = self._pieces.tokenize_with_offsets(_between(parts, is_literal))
        between, kept = self._continue_words(parts, is_literal, encoded.ids)
        special = self._special(is_literal)
        lengths = tf.strings.length(parts.values)
        before = positions_in_rows(parts.with_values(lengths))
        spans = between.with_values(tf.boolean_mask(encoded.offsets.values, kept))
        of_special = tf.gather(tf.stack([tf.zeros_like(lengths), lengths], axis=1), special.value_rowids())
        shifted = (
            rows.with_values(rows.values + tf.gather(before, rows.value_rowids())[:, tf.newaxis])
            for rows in (spans, special.with_values(of_special))
        )
        return RaggedPieces(_join(parts, between, special), _join(parts, *shifted))

    def _split(self, texts: tf.Tensor) -> tuple[tf.RaggedTensor, tf.Tensor]:
        """The parts [B, (P)], and which special token each part is: bool [parts, special tokens]."""
        marked = tf.strings.regex_replace(texts, self._pattern, _BORDER + rb"\1" + _BORDER)
        parts = tf.strings.split(marked, _BORDER).with_row_splits_dtype(tf.int32)
        return parts, tf.equal(parts.values[:, tf.newaxis], self._literals)

    def _special(self, is_literal: tf.Tensor) -> tf.RaggedTensor:
        indices = tf.cast(tf.where(is_literal), tf.int32)
        counts = tf.reduce_sum(tf.cast(is_literal, tf.int32), axis=1)
        return tf.RaggedTensor.from_row_lengths(tf.gather(self._ids, indices[:, 1]), counts, validate=False)

    def _continue_words(
        self, parts: tf.RaggedTensor, is_literal: tf.Tensor, ids: tf.RaggedTensor
    ) -> tuple[tf.RaggedTensor, tf.Tensor]:
        """Replaces pieces that follow a special token without white space; returns ids, and a mask of those kept."""
        if self._inside_words is None:
            return ids, tf.ones_like(ids.values, tf.bool)
        follows = follows_in_row(parts, tf.reduce_any(is_literal, axis=1))
        follows &= ~tf.strings.regex_full_match(parts.values, _BEGINS_WITH_SPACE)
        is_first = tf.range(tf.size(ids.values)) == tf.gather(ids.row_starts(), ids.value_rowids())
        continues = is_first & tf.gather(follows, ids.value_rowids())
        changed = tf.where(continues, tf.gather(self._inside_words, ids.values), ids.values)
        kept = changed >= 0
        return select(ids.with_values(changed), kept), kept


def _join(parts: tf.RaggedTensor, between: tf.RaggedTensor, special: tf.RaggedTensor) -> tf.RaggedTensor:
    """Concatenates the ids of parts, each either from `between` or from `special`: [B, (T)]."""
    return parts.with_values(tf.concat([between, special], axis=1)).merge_dims(1, 2)


def _between(parts: tf.RaggedTensor, is_literal: tf.Tensor) -> tf.Tensor:
    return tf.where(tf.reduce_any(is_literal, axis=1), "", parts.values)
