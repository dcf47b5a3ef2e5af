"""Export of pretrained models: TensorFlow functions for masked LM and sentence order.

Letters: B batch, L sequence, M masks of a text, K best pieces, V vocabulary.
"""

import re

import numpy as np
import tensorflow as tf

from albert_tf.export.serve_base import Form, ServedModel, traced
from albert_tf.inference.folder import ModelFolder
from albert_tf.models import AlbertForPreTraining
from albert_tf.tasks.masked_lm.task import MASK, TOP, SentenceOrder, no_mask_message

_SAMPLES = ("A [MASK] text.", "[MASK]", "The last [MASK] of this longer text, with 1,000 others, is [MASK].")


class ServedMaskedLM(ServedModel):
    """The exported object of a pretrained or masked-LM model."""

    def __init__(self, loaded: ModelFolder, form: Form):
        super().__init__(loaded, form)
        self._masked_tokenizer = loaded.tokenizer.as_layer(max_length=self._settings.max_length, allow_special=True)

    def signatures(self):
        functions = super().signatures()
        if isinstance(self._loaded.model, AlbertForPreTraining):
            texts = tf.TensorSpec([None], tf.string)
            functions["sentence_order"] = traced(self._sentence_order, text=texts, text_pair=texts)
        return functions

    def encode(self, texts):
        return self._masked_tokenizer(texts["text"])

    def answer(self, encoded, texts):
        mask_token_id, pieces = self._loaded.tokenizer.mask_token_id, self._loaded.tokenizer.pieces
        num_masks = tf.math.count_nonzero(encoded["input_ids"] == mask_token_id, axis=1, dtype=tf.int32)
        without = tf.strings.regex_replace(texts["text"], re.escape(MASK), "")
        wanted = (tf.strings.length(texts["text"]) - tf.strings.length(without)) // len(MASK)
        is_complete = tf.reduce_all((num_masks >= wanted) & (wanted > 0))
        with tf.control_dependencies([tf.debugging.Assert(is_complete, [no_mask_message(self._settings.max_length)])]):
            inputs, is_mask = _with_mask_positions(encoded, mask_token_id)
        is_pretrained = isinstance(self._loaded.model, AlbertForPreTraining)
        logits = self.outputs(inputs)["masked_lm_logits" if is_pretrained else "logits"]  # [B, M, V]
        best = tf.math.top_k(tf.nn.softmax(logits), min(TOP, len(pieces)))  # [B, M, K]
        return {
            "pieces": tf.where(is_mask[..., tf.newaxis], tf.gather(tf.constant(pieces), best.indices), ""),
            "probabilities": tf.where(is_mask[..., tf.newaxis], best.values, 0.0),
        }

    def _sentence_order(self, text, text_pair):
        outputs = self.outputs(self.tokenizer((text, text_pair)))
        return {"in_order": tf.nn.softmax(outputs["sentence_order_logits"])[:, 0]}

    def samples(self):
        return {"text": _SAMPLES}

    def largest_difference(self, restored):
        differences = [super().largest_difference(restored)]
        if "sentence_order" in restored.signatures:
            first, second = _SAMPLES, _SAMPLES[::-1]
            order = SentenceOrder(self._loaded.tokenizer, self._settings)
            expected = np.array(self._loaded.predict(first, second, task=order))
            computed = restored.signatures["sentence_order"](text=tf.constant(first), text_pair=tf.constant(second))
            differences.append(float(np.abs(computed["in_order"].numpy() - expected).max()))
        return max(differences)


def _with_mask_positions(inputs, mask_token_id):
    """Adds the positions of each row's masks, `masked_lm_positions` int32 [B, M], M being the most masks of a row.

    Returns:
        The inputs, and bool [B, M]: false where a row has fewer masks.
    """
    is_mask = tf.equal(inputs["input_ids"], mask_token_id)  # [B, L]
    length, most = tf.shape(is_mask)[1], tf.reduce_max(tf.math.count_nonzero(is_mask, axis=1, dtype=tf.int32))
    # Masks come first if positions are sorted with all others moved behind the sequence.
    positions = tf.sort(tf.where(is_mask, 0, length) + tf.range(length), axis=1)[:, :most]
    is_used = positions < length
    return {**inputs, "masked_lm_positions": tf.where(is_used, positions, 0)}, is_used
