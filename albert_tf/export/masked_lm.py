"""A pretrained model as TensorFlow functions: what stands behind a [MASK], and which of two segments comes first.

Letters: B batch, K best pieces.
"""

import numpy as np
import tensorflow as tf

from albert_tf.export.prediction import MASK, fill_mask, mask_output, sentence_order, with_mask
from albert_tf.export.served import ServedModel, traced
from albert_tf.models import AlbertForPreTraining

TOP = 10

# What `str.isspace` is true of.
_SPACE_FIRST = r"(?s)[\s\p{Z}\x{0b}\x{1c}-\x{1f}\x{85}].*"
_SAMPLES = ("A [MASK] text.", "[MASK]", "The last word of this longer text, with 1,000 others, is [MASK].")


class ServedMaskedLM(ServedModel):
    """What a SavedModel of a pretrained or masked-LM model consists of."""

    def signatures(self) -> dict:
        """One traced function for each way to call the model."""
        texts = tf.TensorSpec([None], tf.string)
        functions = {"serving_default": traced(self._fill_mask, text=texts)}
        if isinstance(self._loaded.model, AlbertForPreTraining):
            functions["sentence_order"] = traced(self._sentence_order, text=texts, text_pair=texts)
        return functions

    def largest_difference(self, restored) -> float:
        """Largest absolute difference between probabilities of the Keras model and of the SavedModel."""
        expected = np.array([prediction.probabilities for prediction in fill_mask(self._loaded, _SAMPLES, TOP)])
        given = restored.signatures["serving_default"](text=tf.constant(_SAMPLES))
        differences = [np.abs(given["probabilities"].numpy() - expected).max()]
        if "sentence_order" in restored.signatures:
            first, second = _SAMPLES, _SAMPLES[::-1]
            expected = np.array(sentence_order(self._loaded, first, second))
            given = restored.signatures["sentence_order"](text=tf.constant(first), text_pair=tf.constant(second))
            differences.append(np.abs(given["in_order"].numpy() - expected).max())
        return float(max(differences))

    def _fill_mask(self, text):
        parts = tf.strings.split(text, MASK, maxsplit=1)
        has_mask = tf.debugging.assert_equal(
            parts.row_lengths(), tf.constant(2, tf.int64), f"Each text must hold {MASK}."
        )
        with tf.control_dependencies([has_mask]):
            parts = parts.to_tensor(shape=[None, 2])
        prefix, suffix = parts[:, 0], parts[:, 1]
        follows_directly = tf.logical_not(tf.strings.regex_full_match(suffix, _SPACE_FIRST))
        inputs = with_mask(self.tokenizer((prefix, suffix)), self._loaded.tokenizer, follows_directly)
        logits = self._loaded.model(inputs, training=False)[mask_output(self._loaded.model)]
        best = tf.math.top_k(tf.nn.softmax(logits[:, 0]), TOP)  # [B, K]
        pieces = tf.gather(tf.constant(self._loaded.tokenizer.pieces), best.indices)
        return {"pieces": pieces, "probabilities": best.values}

    def _sentence_order(self, text, text_pair):
        outputs = self._loaded.model(self.tokenizer((text, text_pair)), training=False)
        return {"in_order": tf.nn.softmax(outputs["sentence_order_logits"])[:, 0]}
