"""Export of classifiers: TensorFlow functions from raw text to scores.

Letters: B batch, L sequence, C classes.
"""

import numpy as np
import tensorflow as tf

from albert_tf.export.prediction import classify
from albert_tf.export.serve_base import SAMPLES, ServedModel, traced


class ServedClassifier(ServedModel):
    """The exported object of a classifier."""

    def signatures(self) -> dict:
        """The signatures by name."""
        texts = tf.TensorSpec([None], tf.string)
        ids = tf.TensorSpec([None, None], tf.int32)
        of_text = self._of_pair if self._loaded.takes_pairs else self._of_text
        names = ("text", "text_pair") if self._loaded.takes_pairs else ("text",)
        functions = {
            "serving_default": traced(of_text, **dict.fromkeys(names, texts)),
            "token_ids": traced(self._of_ids, input_ids=ids, attention_mask=ids, token_type_ids=ids),
        }
        if self._loaded.model.problem != "regression":
            functions["labels"] = traced(lambda: {"labels": tf.constant(self._loaded.model.labels)})
        return functions

    def largest_difference(self, restored) -> float:
        """Maximum absolute difference between scores of the Keras model and the SavedModel."""
        pairs = SAMPLES[::-1] if self._loaded.takes_pairs else None
        expected = np.array([_scores(prediction) for prediction in classify(self._loaded, SAMPLES, pairs)])
        texts = {"text": tf.constant(SAMPLES)} | ({} if pairs is None else {"text_pair": tf.constant(pairs)})
        inputs = self._loaded.tokenizer(SAMPLES, pairs, max_length=self._loaded.max_length)
        ids = {name: tf.constant(array) for name, array in inputs.items()}
        given = (restored.signatures["serving_default"](**texts), restored.signatures["token_ids"](**ids))
        name = "score" if self._loaded.model.problem == "regression" else "probabilities"
        return max(float(np.abs(np.reshape(outputs[name], expected.shape) - expected).max()) for outputs in given)

    def _of_text(self, text):
        return self._scores(self.tokenizer(text))

    def _of_pair(self, text, text_pair):
        return self._scores(self.tokenizer((text, text_pair)))

    def _of_ids(self, input_ids, attention_mask, token_type_ids):
        inputs = {"input_ids": input_ids, "attention_mask": attention_mask, "token_type_ids": token_type_ids}
        return self._scores(inputs)

    def _scores(self, inputs):
        logits = self._loaded.model(inputs, training=False)["logits"]  # [B, C]
        if self._loaded.model.problem == "regression":
            return {"score": logits[:, 0]}
        probabilities = self._loaded.model.probabilities(logits)
        labels = tf.gather(tf.constant(self._loaded.model.labels), tf.argmax(probabilities, axis=-1))
        return {"label": labels, "score": tf.reduce_max(probabilities, axis=-1), "probabilities": probabilities}


def _scores(prediction) -> list[float]:
    return list(prediction.probabilities.values()) or [prediction.score]
