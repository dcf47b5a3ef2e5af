"""Export of question answering: TensorFlow functions from question and passage to the answer in the passage.

Letters: B questions, R windows of all passages, L sequence, K starts, J ends of each.
"""

# The checker's stubs of TensorFlow know little of ragged tensors.
# pyright: reportAttributeAccessIssue=false, reportArgumentType=false

import tensorflow as tf

from albert_tf.data.finetuning.encoded import IMPOSSIBLE, window_stride
from albert_tf.export.serve_base import Form, ServedModel
from albert_tf.export.windows import WindowTensors, bytes_of, cut
from albert_tf.inference.folder import ModelFolder
from albert_tf.inference.network import INPUTS
from albert_tf.tasks.question_answering.questions import question_length

_CANDIDATES = 20
_NEVER = -float("inf")


class ServedAnswers(ServedModel):
    """The exported object of a model of question answering; computes what the `decode` of its task does."""

    text_ranks = {"question": 1, "context": 1}

    def __init__(self, loaded: ModelFolder, form: Form):
        super().__init__(loaded, form)
        stride = window_stride(self._settings.max_length, self._settings.doc_stride)
        self._doc_stride = stride
        self._longest_question = question_length(self._settings.max_length, self._settings.max_question_length)
        self.tokenizer = loaded.tokenizer.as_layer(self._settings.max_length, return_offsets=True, doc_stride=stride)
        self._is_beam = loaded.model.head == "beam"

    def encode(self, texts):
        asked = self.tokenizer.tokenize(texts["question"])
        longest = min(self._longest_question, self._settings.max_length - 4)
        asked = {name: rows[:, :longest] for name, rows in asked.items()}
        return self.tokenizer.arrange([asked, self.tokenizer.tokenize(texts["context"])])

    def network(self, inputs):
        return super().network({**inputs, "p_mask": _p_mask(inputs)} if self._is_beam else inputs)

    def answer(self, encoded, texts):
        windows = WindowTensors.of(encoded, self._settings.max_length, self._doc_stride)
        passage = "The passage of a question has no tokens; delete it."
        question = "The question about a passage has no tokens; write one, or delete it."
        checks = [
            tf.debugging.Assert(tf.reduce_all(numbers > limit), [message])
            for numbers, limit, message in ((windows.count, 0, passage), (windows.position, 2, question))
        ]
        with tf.control_dependencies(checks):
            inputs = {name: tf.identity(encoded[name]) for name in INPUTS}
        _, is_token = windows.tokens()
        is_open = is_token | (tf.range(tf.shape(is_token)[1]) == 0)
        starts, ends, start_scores, end_scores, no_answer, total = self._scores(inputs, is_open, windows.samples)
        # [R, K, J], from the first window's scores of a start and of an end
        first, last = (positions - windows.position[:, tf.newaxis, tf.newaxis] for positions in (starts, ends))
        is_best = tf.gather(windows.is_best(), starts[:, :, 0], batch_dims=1)[..., tf.newaxis]
        is_valid = is_best & (first >= 0) & (first <= last) & (last < windows.count[:, tf.newaxis, tf.newaxis])
        is_valid &= last - first < self._settings.max_answer_length
        scores = tf.where(is_valid, start_scores + end_scores, _NEVER)
        rows, best = _best_windows(tf.reshape(scores, [tf.shape(scores)[0], -1]), windows.samples)  # [B] each
        offsets = tf.gather(windows.offsets, rows)  # [B, L, 2]
        chosen = [
            tf.gather(
                tf.reshape(tf.gather(tf.broadcast_to(positions, tf.shape(scores)), rows), [tf.size(rows), -1]),
                best,
                batch_dims=1,
            )
            for positions in (starts, ends)
        ]
        start, end = (tf.gather(offsets[..., edge], position, batch_dims=1) for edge, position in enumerate(chosen))
        score = tf.math.segment_max(tf.reduce_max(scores, axis=[1, 2]), windows.samples)
        null_odds = tf.math.segment_min(no_answer, windows.samples)
        if not self._is_beam:
            null_odds -= tf.where(tf.math.is_finite(score), score, 0.0)
        has_span = tf.math.is_finite(score)
        return self._texts(texts["context"], start, end, has_span, tf.exp(score - total), null_odds)

    def _scores(self, inputs, is_open, samples):
        """Positions and scores of the best starts [R, K, 1] and ends [R, K or 1, J], "no answer" [R], totals [B]."""
        outputs = self.outputs(inputs)
        if self._is_beam:
            starts, start_scores = outputs["start_top_index"], outputs["start_top_log_probs"]
            shape = tf.concat([tf.shape(starts), [-1]], axis=0)
            ends, end_scores = (tf.reshape(outputs[name], shape) for name in ("end_top_index", "end_top_log_probs"))
            starts, start_scores = starts[..., tf.newaxis], start_scores[..., tf.newaxis]
            windows = tf.math.segment_sum(tf.ones_like(outputs["cls_logits"]), samples)
            return starts, ends, start_scores, end_scores, outputs["cls_logits"], 2.0 * tf.math.log(windows)
        logits = [tf.where(is_open, outputs[f"{edge}_logits"], IMPOSSIBLE) for edge in ("start", "end")]
        best = [tf.math.top_k(edge, tf.minimum(_CANDIDATES, tf.shape(edge)[1])) for edge in logits]
        total = tf.add_n([_log_sum(edge, samples) for edge in logits])
        no_answer = logits[0][:, 0] + logits[1][:, 0]
        (start_scores, starts), (end_scores, ends) = best
        return (
            starts[..., tf.newaxis],
            ends[:, tf.newaxis],
            start_scores[..., tf.newaxis],
            end_scores[:, tf.newaxis],
            no_answer,
            total,
        )

    def _texts(self, context, start, end, has_span, score, null_odds):
        text, first, last = cut(bytes_of(context), tf.range(tf.size(context)), start, end)
        threshold = self._settings.no_answer_threshold
        is_answered = has_span & (text != "")
        if threshold is not None:
            is_answered &= null_odds <= threshold
        return {
            "answer": tf.where(is_answered, text, ""),
            "start": tf.where(is_answered, first, -1),
            "end": tf.where(is_answered, last, -1),
            "score": tf.where(has_span & (text != ""), score, 0.0),
            "null_odds": null_odds,
        }

    def samples(self):
        has_room = self._longest_question <= self._settings.max_length - 4
        # Windows of a passage that repeats itself would have equal scores.
        passage = "ALBERT shares the weights of all layers. It was published in 2019. " + " ".join(
            map(str, range(99, 300))
        )
        return {
            "question": ("What does ALBERT share?", "When was it published?", "Who? " * (40 if has_room else 1)),
            "context": (passage, "It was published in 2019.", passage[::-1]),
        }


def _p_mask(inputs):
    """Where no answer can start or end, int32 [R, L]: everywhere but at [CLS] and in the passage."""
    mask, types = inputs["attention_mask"], inputs["token_type_ids"]
    positions, lengths = tf.range(tf.shape(mask)[1]), tf.reduce_sum(mask, axis=1, keepdims=True)
    return tf.cast((positions > 0) & ((types == 0) | (positions >= lengths - 1)), tf.int32)


def _best_windows(scores, samples):
    """The window with the highest of the scores [R, K J] of each text, and where it is in its row: int32 [B] each."""
    highest = tf.reduce_max(scores, axis=1)  # [R]
    most = tf.math.segment_max(highest, samples)
    rows = tf.range(tf.size(samples))
    is_most = tf.equal(highest, tf.gather(most, samples))
    rows = tf.math.segment_min(tf.where(is_most, rows, tf.size(samples) - 1), samples)
    return rows, tf.argmax(tf.gather(scores, rows), axis=1, output_type=tf.int32)


def _log_sum(logits, samples):
    """Logarithm of the sum of the exponentials of all windows of each text: from [R, L] to [B]."""
    sums = tf.reduce_logsumexp(logits, axis=1)
    most = tf.math.segment_max(sums, samples)
    return most + tf.math.log(tf.math.segment_sum(tf.exp(sums - tf.gather(most, samples)), samples))
