"""Export of token classification: TensorFlow functions from raw text to labelled spans.

Letters: B texts, R windows of all texts, L sequence, N tokens or words of all texts, S entities of a text.
"""

# The checker's stubs of TensorFlow know little of ragged tensors.
# pyright: reportAttributeAccessIssue=false, reportArgumentType=false

import numpy as np
import tensorflow as tf

from albert_tf.data.finetuning.encoded import window_stride
from albert_tf.export.serve_base import Form, ServedModel
from albert_tf.export.windows import WindowTensors, bytes_of, cut, parts_of
from albert_tf.inference.folder import ModelFolder
from albert_tf.metrics.entities import entity_tags, split_tag
from albert_tf.tokenization.splitting_graph import WHITE_SPACE

_PREFIXES = {"B": 0, "I": 1, "E": 2, "S": 3}
_INSIDE, _LAST = (1, 2), (2, 3)
_LETTER = r"[\pL\pM\pN_]"


class ServedTags(ServedModel):
    """The exported object of a model of token classification; computes what the `decode` of its task does."""

    def __init__(self, loaded: ModelFolder, form: Form):
        super().__init__(loaded, form)
        stride = window_stride(self._settings.max_length, self._settings.doc_stride)
        self._doc_stride = stride
        self.tokenizer = loaded.tokenizer.as_layer(self._settings.max_length, return_offsets=True, doc_stride=stride)
        parts = [split_tag(name) for name in entity_tags(loaded.model.labels)]
        self._names = sorted({label for _, label in parts} - {""})
        self._label = np.array([self._names.index(label) if label else -1 for _, label in parts], np.int32)
        self._prefix = np.array([_PREFIXES.get(prefix, -1) for prefix, _ in parts], np.int32)

    def outputs(self, inputs):
        logits = super().outputs(inputs)["logits"]
        return {"logits": logits, "probabilities": tf.nn.softmax(logits)}  # [B, L, tags]

    def answer(self, encoded, texts):
        text = bytes_of(texts["text"])
        windows = WindowTensors.of(encoded, self._settings.max_length, self._doc_stride)
        probabilities = self.outputs(self.model_inputs(encoded))["probabilities"]
        is_best = windows.is_best()
        order = tf.argsort(tf.boolean_mask(windows.keys(), is_best))
        samples = tf.broadcast_to(windows.samples[:, tf.newaxis], tf.shape(is_best))
        samples, offsets, probabilities = (
            tf.gather(tf.boolean_mask(each, is_best), order) for each in (samples, windows.offsets, probabilities)
        )  # [N], [N, 2], [N, tags]
        starts, ends = offsets[:, 0], offsets[:, 1]
        if self._settings.tag_words:
            is_first, ends = _words(text, samples, starts, ends)
            samples, starts, ends, probabilities = (
                tf.boolean_mask(each, is_first) for each in (samples, starts, ends, probabilities)
            )
        return self._entities(text, samples, starts, ends, probabilities)

    def _entities(self, text, samples, starts, ends, probabilities):
        tags = tf.argmax(probabilities, axis=-1, output_type=tf.int32)  # [N]
        label, prefix = tf.gather(self._label, tags), tf.gather(self._prefix, tags)
        continues = (label >= 0) & _follows(samples) & tf.equal(label, _previous(label, -1))
        continues &= _is_one_of(prefix, _INSIDE) & ~_is_one_of(_previous(prefix, -1), _LAST)
        # An entity's number is that of its first token among all that begin one.
        begins = (label >= 0) & ~continues
        number = tf.where(label >= 0, tf.cumsum(tf.cast(begins, tf.int32)) - 1, -1)
        total = tf.reduce_sum(tf.cast(begins, tf.int32))
        first = tf.boolean_mask(starts, begins)
        last = tf.math.unsorted_segment_max(ends, number, total)
        score = tf.math.unsorted_segment_mean(tf.reduce_max(probabilities, axis=-1), number, total)
        samples = tf.boolean_mask(samples, begins)
        parts, start, end = cut(text, samples, first, last)
        names = tf.gather(tf.constant(self._names), tf.boolean_mask(label, begins))

        def rows(values, padding):  # [B, S]
            splits = tf.searchsorted(samples, tf.range(text.nrows() + 1))
            return tf.RaggedTensor.from_row_splits(values, splits, validate=False).to_tensor(padding)

        return {
            "entity_label": rows(names, ""),
            "entity_text": rows(parts, ""),
            "entity_start": rows(start, -1),
            "entity_end": rows(end, -1),
            "entity_score": rows(score, 0.0),
        }


def _words(texts, samples, starts, ends):
    """Whether each token begins a word, bool [N], and where its word ends, int32 [N]; see `word_starts`."""
    tokens = parts_of(texts, samples, starts, ends)
    is_space = tf.strings.regex_full_match(tokens, f"[{WHITE_SPACE}]*")
    continues = _follows(samples) & tf.equal(starts, _previous(ends, -1)) & ~is_space
    continues &= tf.strings.regex_full_match(tokens, rf"{_LETTER}(?s:.*)")
    continues &= _previous(tf.strings.regex_full_match(tokens, rf"(?s:.*){_LETTER}"), False)
    is_first = ~is_space & ~continues
    number = tf.where(is_space, -1, tf.cumsum(tf.cast(is_first, tf.int32)) - 1)
    word_ends = tf.math.unsorted_segment_max(ends, number, tf.size(starts))
    return is_first, tf.gather(word_ends, tf.maximum(number, 0))


def _previous(values, first):
    """The previous value of each: [N]."""
    return tf.concat([tf.fill([tf.minimum(tf.size(values), 1)], tf.cast(first, values.dtype)), values[:-1]], axis=0)


def _follows(samples):
    """Whether the previous token is of the same text: bool [N]."""
    return tf.equal(samples, _previous(samples, -1))


def _is_one_of(values, members):
    return tf.reduce_any(tf.equal(values[:, tf.newaxis], members), axis=1)
