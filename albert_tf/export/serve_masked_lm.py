"""Export of pretrained models: TensorFlow functions for masked LM and sentence order.

Letters: B batch, K best pieces.
"""

import numpy as np
import tensorflow as tf

from albert_tf.export.folder import ModelFolder
from albert_tf.export.prediction import MASK, fill_mask, mask_output, sentence_order, with_mask_positions
from albert_tf.export.serve_base import ServedModel, traced
from albert_tf.models import AlbertForPreTraining

TOP = 10

_SAMPLES = ("A [MASK] text.", "[MASK]", "The last word of this longer text, with 1,000 others, is [MASK].")


class ServedMaskedLM(ServedModel):
    """The exported object of a pretrained or masked-LM model."""

    def __init__(self, loaded: ModelFolder):
        super().__init__(loaded)
        self._masked_tokenizer = loaded.tokenizer.as_layer(max_length=loaded.max_length, allow_special=True)

    def signatures(self) -> dict:
        """The signatures by name."""
        texts = tf.TensorSpec([None], tf.string)
        functions = {"serving_default": traced(self._fill_mask, text=texts)}
        if isinstance(self._loaded.model, AlbertForPreTraining):
            functions["sentence_order"] = traced(self._sentence_order, text=texts, text_pair=texts)
        return functions

    def largest_difference(self, restored) -> float:
        """Maximum absolute difference between probabilities of the Keras model and the SavedModel."""
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
        mask_token_id = self._loaded.tokenizer.mask_token_id
        inputs = self._masked_tokenizer(text)
        counts = tf.math.count_nonzero(inputs["input_ids"] == mask_token_id, axis=1)
        message = f"Each text must contain {MASK} exactly once, within its first {self._loaded.max_length - 2} pieces."
        with tf.control_dependencies([tf.debugging.assert_equal(counts, tf.constant(1, tf.int64), message)]):
            inputs = with_mask_positions(inputs, mask_token_id)
        logits = self._loaded.model(inputs, training=False)[mask_output(self._loaded.model)]
        best = tf.math.top_k(tf.nn.softmax(logits[:, 0]), TOP)  # [B, K]
        pieces = tf.gather(tf.constant(self._loaded.tokenizer.pieces), best.indices)
        return {"pieces": pieces, "probabilities": best.values}

    def _sentence_order(self, text, text_pair):
        outputs = self._loaded.model(self.tokenizer((text, text_pair)), training=False)
        return {"in_order": tf.nn.softmax(outputs["sentence_order_logits"])[:, 0]}
