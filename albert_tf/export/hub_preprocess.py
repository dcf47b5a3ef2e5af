"""The preprocessing module for TF Hub: from texts to the encoder's inputs.

Letters: B batch, L sequence, T tokens of a text.
"""

# The checker's stubs of TensorFlow know little of ragged tensors, and tensorflow-text has none.
# pyright: reportAttributeAccessIssue=false, reportOptionalCall=false, reportOptionalMemberAccess=false

from typing import Any

import tensorflow as tf
import tensorflow_text

from albert_tf.tokenization import AlbertTokenizer
from albert_tf.tokenization.ragged import take


class HubPreprocessor(tf.Module):
    """From string [B] to the encoder's inputs, int32 [B, L]."""

    def __init__(self, tokenizer: AlbertTokenizer, seq_length: int):
        super().__init__()
        self.tokenize = _Tokenize(tokenizer)
        self.bert_pack_inputs = _PackInputs(tokenizer, seq_length)

    @tf.function(autograph=False, input_signature=[tf.TensorSpec([None], tf.string)])
    def __call__(self, inputs):
        return self.bert_pack_inputs([self.tokenize(inputs)])


class _Tokenize(tf.Module):
    """From string [B] to int32 [B, (T)], without special ids."""

    def __init__(self, tokenizer: AlbertTokenizer):
        super().__init__()
        self._layer = tokenizer.as_layer()
        self._special = {
            "vocab_size": tokenizer.vocab_size,
            "padding_id": tokenizer.pad_token_id,
            "start_of_sequence_id": tokenizer.cls_token_id,
            "end_of_segment_id": tokenizer.sep_token_id,
            "mask_id": tokenizer.mask_token_id,
        }

    @tf.function(autograph=False, input_signature=[tf.TensorSpec([None], tf.string)])
    def __call__(self, inputs):
        return self._layer.tokenize(inputs)["input_ids"].with_row_splits_dtype(tf.int64)

    @tf.function(autograph=False, input_signature=[])
    def get_special_tokens_dict(self):
        return {name: tf.constant(number) for name, number in self._special.items()}


class _PackInputs(tf.Module):
    """From one or two ragged segments int32 [B, (T)] to the encoder's inputs, int32 [B, seq_length].

    Of two segments that are too long together, ids are removed from the end of the longer one.
    """

    def __init__(self, tokenizer: AlbertTokenizer, seq_length: int):
        super().__init__()
        self._cls, self._sep, self._pad = tokenizer.cls_token_id, tokenizer.sep_token_id, tokenizer.pad_token_id
        self._seq_length = seq_length
        segment = tf.RaggedTensorSpec([None, None], tf.int32)
        for segments in ([segment], [segment, segment]):
            for length in (None, tf.TensorSpec([], tf.int32)):
                self.__call__.get_concrete_function(segments, seq_length=length)

    @tf.function(autograph=False)
    def __call__(self, inputs, seq_length=None):
        seq_length = self._seq_length if seq_length is None else seq_length
        segments = _trim(inputs, seq_length - len(inputs) - 1)
        ids, types = tensorflow_text.combine_segments(segments, self._cls, self._sep)
        ids, mask = tensorflow_text.pad_model_inputs(ids, seq_length, pad_value=self._pad)  # [B, L]
        types, _ = tensorflow_text.pad_model_inputs(types, seq_length)
        return {"input_word_ids": ids, "input_mask": mask, "input_type_ids": types}


def _trim(segments: list[tf.RaggedTensor], capacity: Any) -> list[tf.RaggedTensor]:
    """Truncates one or two segments [B, (T)] as `AlbertTokenizer` does.

    TensorFlow Serving's tensorflow-text is too old for the operation of `tensorflow_text.RoundRobinTrimmer`.
    """
    segments = [segment.with_row_splits_dtype(tf.int32) for segment in segments]
    lengths = [segment.row_lengths() for segment in segments]
    parts = [tf.minimum(lengths[0], capacity)]
    if len(lengths) == 2:
        first, second = lengths
        parts = [
            tf.minimum(first, tf.maximum(capacity - second, (capacity + 1) // 2)),
            tf.minimum(second, tf.maximum(capacity - first, capacity // 2)),
        ]
    return [take(rows, tf.range(rows.nrows()), tf.zeros_like(length), length) for rows, length in zip(segments, parts)]
