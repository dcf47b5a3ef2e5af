"""Export of classifiers and of multiple choice: TensorFlow functions from raw text to scores.

Letters: B batch, R rows (B, or more if long texts are read in windows), L sequence, C classes or choices, T ids of a
text.
"""

# The checker's stubs of TensorFlow know little of ragged tensors.
# pyright: reportAttributeAccessIssue=false, reportArgumentType=false

import tensorflow as tf

from albert_tf.data.finetuning.encoded import window_stride
from albert_tf.export.checks import SAMPLES
from albert_tf.export.serve_base import Form, ServedModel
from albert_tf.inference.folder import ModelFolder
from albert_tf.tasks.multiple_choice.choices import MAX_STATEMENT_LENGTH
from albert_tf.tokenization.ragged import take


class ServedClassifier(ServedModel):
    """The exported object of a classifier."""

    def __init__(self, loaded: ModelFolder, form: Form):
        super().__init__(loaded, form)
        self.text_ranks = {"text": 1, "text_pair": 1} if self._settings.pair_column is not None else {"text": 1}
        if self._settings.windows is not None:
            stride = window_stride(self._settings.max_length, self._settings.doc_stride)
            self.tokenizer = loaded.tokenizer.as_layer(self._settings.max_length, doc_stride=stride)

    def outputs(self, inputs):
        logits = super().outputs(inputs)["logits"]  # [R, C]
        return {"logits": logits, **self._scores(logits)}

    def answer(self, encoded, texts):
        logits = super().outputs(self.model_inputs(encoded))["logits"]
        if self._settings.windows is not None:  # as `EncodedTexts.joined`
            if self._loaded.model.problem == "classification":
                logits = tf.nn.log_softmax(logits)
            join = tf.math.segment_mean if self._settings.windows == "mean" else tf.math.segment_max
            logits = join(logits, encoded["overflow_to_sample_mapping"])
        return self._scores(logits)

    def _scores(self, logits):
        """The outputs for logits [B, C]."""
        if self._loaded.model.problem == "regression":
            return {"score": logits[:, 0]}
        probabilities = self._loaded.model.probabilities(logits)
        if self._loaded.model.problem == "multi_label":
            decisions = probabilities > self._settings.thresholds
            names = tf.broadcast_to(tf.constant(self._loaded.model.labels), tf.shape(decisions))
            return {"labels": tf.ragged.boolean_mask(names, decisions).to_tensor(""), "probabilities": probabilities}
        labels = tf.gather(tf.constant(self._loaded.model.labels), tf.argmax(probabilities, axis=-1))
        return {"label": labels, "score": tf.reduce_max(probabilities, axis=-1), "probabilities": probabilities}


class ServedChoices(ServedModel):
    """The exported object of a model of multiple choice; a choice is a whole statement."""

    text_ranks = {"context": 1, "choices": 2}
    token_rank = 3

    def encode(self, texts):
        context, choices = texts["context"], texts["choices"]
        longest = min(self._settings.max_question_length or MAX_STATEMENT_LENGTH, self._settings.max_length - 4)
        statement = self.tokenizer.tokenize(tf.reshape(choices, [-1]))["input_ids"][:, -longest:]  # [B C, (T)]
        passage = self.tokenizer.tokenize(self.tokenizer.used_part(context))["input_ids"]  # [B, (T)]
        samples = tf.repeat(tf.range(tf.size(context)), tf.shape(choices)[1])
        room = self._settings.max_length - 3 - statement.row_lengths()
        lengths = tf.minimum(tf.gather(passage.row_lengths(), samples), room)
        passage = take(passage, samples, tf.zeros_like(lengths), lengths)  # [B C, (T)]
        rows = self.tokenizer.arrange([{"input_ids": passage}, {"input_ids": statement}])  # [B C, L]
        shape = tf.concat([tf.shape(choices), [-1]], axis=0)
        return {name: tf.reshape(row, shape) for name, row in rows.items()}

    def outputs(self, inputs):
        logits = super().outputs(inputs)["logits"]  # [B, C]
        probabilities = tf.nn.softmax(logits)
        return {
            "logits": logits,
            "choice": tf.argmax(probabilities, axis=-1, output_type=tf.int32),
            "score": tf.reduce_max(probabilities, axis=-1),
            "probabilities": probabilities,
        }

    def samples(self):
        return {"context": SAMPLES, "choices": [[text, "Another choice."] for text in SAMPLES[::-1]]}
