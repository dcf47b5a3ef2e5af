"""The question-answering head for SQuAD 2.0: starts, ends given a start, and whether there is an answer.

Letters: B batch, L sequence, D hidden, K start candidates, J end candidates of each.
"""

import keras
from keras import ops

from albert_tf.config import AlbertConfig
from albert_tf.layers.base import AlbertLayer
from albert_tf.layers.heads import gather_positions


@keras.saving.register_keras_serializable("albert_tf")
class BeamAnswerHead(AlbertLayer):
    """Scores every token as the start of an answer, every token as its end given the start, and "no answer".

    Ends are scored for the given `start_positions` (in training), or else for the most probable starts.

    Args:
        config: AlbertConfig.
        start_n_top: int. Number of start candidates, K.
        end_n_top: int. Number of end candidates per start, J.
        dropout: float. Rate before the last layer of the "no answer" score.

    Call arguments:
        sequence_output: float tensor [B, L, D].
        p_mask: tensor [B, L]. 1 where no answer can start or end, else 0.
        start_positions: int tensor [B], or None.

    Returns:
        dict. `cls_logits` float32 [B], high if there is no answer. With `start_positions`, also `start_log_probs` and
        `end_log_probs`, float32 [B, L], about -1e30 where `p_mask` is 1. Otherwise, most probable first,
        `start_top_log_probs` float32 and `start_top_index` int32 [B, K], `end_top_log_probs` float32 and
        `end_top_index` int32 [B, K J], with end j of start i at `i * J + j`.

    Raises:
        ValueError: L is less than K or J.

    References:
        `squad_utils.py` (v2_model_fn_builder) of google-research/albert; XLNet, arXiv 1906.08237.
    """

    def __init__(self, config: AlbertConfig, start_n_top: int = 5, end_n_top: int = 5, dropout: float = 0.0, **kwargs):
        super().__init__(config, **kwargs)
        self.start_n_top, self.end_n_top = start_n_top, end_n_top
        self.dropout_rate = dropout
        self.start = self.make_dense(1, "start")
        self.end_0 = self.make_dense(config.hidden_size, "end_0")
        self.end_layer_norm = self.make_layer_norm("end_layer_norm")
        self.end_1 = self.make_dense(1, "end_1")
        self.answer_0 = self.make_dense(config.hidden_size, "answer_0", activation="tanh")
        self.answer_1 = self.make_dense(1, "answer_1", use_bias=False)
        self.dropout = self.make_dropout(dropout)

    def build(self, input_shape=None, **shapes):
        self.end_layer_norm.build((None, None, None, self.config.hidden_size))  # of the rank that it is called with
        for layer in (self.start, self.end_1, self.answer_1):
            layer.build((None, self.config.hidden_size))
        for layer in (self.end_0, self.answer_0):
            layer.build((None, 2 * self.config.hidden_size))
        self.built = True

    def compute_output_shape(self, *shapes, **named_shapes):
        starts, ends = (None, self.start_n_top), (None, self.start_n_top * self.end_n_top)
        tops = {"start_top_log_probs": starts, "start_top_index": starts}
        return {"cls_logits": (None,), **tops, "end_top_log_probs": ends, "end_top_index": ends}

    def call(self, sequence_output, p_mask, start_positions=None, training=False):
        p_mask = ops.cast(p_mask, "float32")
        start_log_probs = _log_probs(self.start(sequence_output)[..., 0], p_mask)  # [B, L]
        outputs = {"cls_logits": self._no_answer_scores(sequence_output, start_log_probs, training)}
        if start_positions is not None:
            starts = ops.reshape(start_positions, (-1, 1))
            ends = self._end_log_probs(sequence_output, starts, p_mask)[:, 0]  # [B, L]
            return {**outputs, "start_log_probs": start_log_probs, "end_log_probs": ends}
        self._check_length(sequence_output.shape[1])
        top_starts, start_index = ops.top_k(start_log_probs, self.start_n_top)  # [B, K] each
        ends = self._end_log_probs(sequence_output, start_index, p_mask)  # [B, K, L]
        top_ends, end_index = ops.top_k(ends, self.end_n_top)  # [B, K, J] each
        beams = self.start_n_top * self.end_n_top
        return {
            **outputs,
            "start_top_log_probs": top_starts,
            "start_top_index": ops.cast(start_index, "int32"),
            "end_top_log_probs": ops.reshape(top_ends, (-1, beams)),
            "end_top_index": ops.cast(ops.reshape(end_index, (-1, beams)), "int32"),
        }

    def _end_log_probs(self, sequence_output, starts, p_mask):
        """Log probabilities of ends for each of the starts [B, K]: float32 [B, K, L]."""
        # The reference concatenates token and start before the product. Splitting the kernel gives the same sum and
        # computes the larger product once, not once per start.
        kernel = self.in_compute_dtype(self.end_0.kernel)  # [2 D, D]
        of_tokens = ops.matmul(sequence_output, kernel[: self.config.hidden_size])  # [B, L, D]
        features = gather_positions(sequence_output, starts)  # [B, K, D]
        of_starts = ops.matmul(features, kernel[self.config.hidden_size :]) + self.in_compute_dtype(self.end_0.bias)
        hidden = ops.tanh(of_tokens[:, None] + of_starts[:, :, None])  # [B, K, L, D]
        # Not by the layer: Keras 3.14 makes a product of four and two axes of it, with which TensorFlow 2.21 crashes.
        scores = ops.tensordot(self.end_layer_norm(hidden), self.in_compute_dtype(self.end_1.kernel), 1)
        return _log_probs((scores + self.in_compute_dtype(self.end_1.bias))[..., 0], p_mask[:, None])

    def _no_answer_scores(self, sequence_output, start_log_probs, training):
        """Scores from the first token and the mean of tokens weighted by their start probability: float32 [B]."""
        probabilities = ops.cast(ops.exp(start_log_probs), self.compute_dtype)  # [B, L]
        mean = ops.matmul(probabilities[:, None], sequence_output)[:, 0]  # [B, D]
        hidden = self.answer_0(ops.concatenate([mean, sequence_output[:, 0]], axis=-1))
        return ops.cast(self.answer_1(self.dropout(hidden, training=training))[:, 0], "float32")

    def _check_length(self, length: int | None) -> None:
        if length is not None and length < max(self.start_n_top, self.end_n_top):
            raise ValueError(
                "Sequences must be at least as long as `start_n_top` and `end_n_top`. Received: "
                f"length={length}, start_n_top={self.start_n_top}, end_n_top={self.end_n_top}; lower these or pad."
            )

    def get_config(self):
        options = {"start_n_top": self.start_n_top, "end_n_top": self.end_n_top, "dropout": self.dropout_rate}
        return {**super().get_config(), **options}


def _log_probs(logits, p_mask):
    """Log probabilities over the last axis, float32; about -1e30 where the mask is 1, as in the reference."""
    return ops.log_softmax(ops.cast(logits, "float32") * (1.0 - p_mask) - 1e30 * p_mask)
