"""A model that finds the answer to a question in a passage, or that there is none.

Letters: B batch, L sequence, K start candidates, J end candidates of each.
"""

from typing import Any, Literal

import keras
from keras import ops

from albert_tf.config import AlbertConfig
from albert_tf.data.finetuning.encoded import IGNORED_LABEL, IMPOSSIBLE
from albert_tf.layers import BeamAnswerHead, ClassificationHead
from albert_tf.models.base import AlbertBase
from albert_tf.models.distillation import Imitation
from albert_tf.models.encoder import AlbertEncoder, with_states
from albert_tf.models.inputs import ENCODER_INPUTS, Field, only
from albert_tf.models.losses import WeightedMean, label_accuracy, label_loss, weighted_mean, weights_for

Head = Literal["span", "beam"]


@keras.saving.register_keras_serializable("albert_tf")
class AlbertForQuestionAnswering(AlbertBase):
    """The encoder with a head that finds spans of tokens; there is no pooler.

    `head="span"` scores every token as start and as end, independently (SQuAD 1.1, and Hugging Face's head). Padding
    has logits of -1e9, so that losses and answers do not depend on how far rows are padded; with `mask_padding=False`
    padding counts like tokens, as in the reference and transformers.
    `head="beam"` scores ends given a start, and "no answer" (the reference's head for SQuAD 2.0). In training, starts
    are given in the inputs; otherwise the `start_n_top` most probable ones are used.

    `fit` takes `(inputs, labels)`, labels being a dict of `start_positions` and `end_positions`, int [B], and for
    `"beam"` `is_impossible` [B] (1 = no answer). The loss is the sum of the mean cross entropies of starts, of ends,
    and for `"beam"` of "no answer", each times 0.5, and reported so. Positions beyond the sequence are ignored,
    negative ones count as 0.

    Args:
        config: AlbertConfig.
        head: str. `"span"` or `"beam"`.
        start_n_top: int. K, for `"beam"`.
        end_n_top: int. J, for `"beam"`.
        mask_padding: bool. For `"span"`, whether no answer can start or end in padding.

    Call arguments:
        inputs: dict as for AlbertEncoder, and for `"beam"` optionally `p_mask` [B, L], 1 where no answer can start or
            end (default: padding), and `start_positions` int [B].

    Returns:
        dict. For `"span"`: `start_logits` and `end_logits`, float32 [B, L]. For `"beam"`: `cls_logits` float32 [B],
        high if there is no answer. With `start_positions` in the inputs, also `start_log_probs` and `end_log_probs`,
        float32 [B, L]. Otherwise, most probable first, `start_top_log_probs` float32 and `start_top_index` int32
        [B, K], `end_top_log_probs` float32 and `end_top_index` int32 [B, K J], with end j of start i at `i * J + j`.

    Raises:
        ValueError: L is less than K or J, or a beam head is trained without `start_positions` in the inputs.

    Example:

    >>> import numpy as np
    >>> model = AlbertForQuestionAnswering(AlbertConfig.from_preset("tiny"), head="beam")
    >>> outputs = model({"input_ids": np.ones((2, 8), "int32")})
    >>> tuple(outputs["end_top_index"].shape)
    (2, 25)

    References:
        `squad_utils.py` (v1_model_fn_builder, v2_model_fn_builder) of google-research/albert.
    """

    architecture = "AlbertForQuestionAnswering"
    input_fields = {
        **ENCODER_INPUTS,
        "p_mask": Field("BL", 2, optional=True),
        "start_positions": Field("B", optional=True),
    }

    def __init__(
        self,
        config: AlbertConfig,
        head: Head = "span",
        start_n_top: int = 5,
        end_n_top: int = 5,
        mask_padding: bool = True,
        **kwargs,
    ):
        super().__init__(config, **kwargs)
        self.head, self.start_n_top, self.end_n_top, self.mask_padding = head, start_n_top, end_n_top, mask_padding
        self.encoder = AlbertEncoder(config, add_pooling_layer=False, name="encoder", dtype=self.dtype_policy)
        if head == "span":
            self.answers = ClassificationHead(config, 2, name="qa_span", dtype=self.dtype_policy)
        elif head == "beam":
            dropout = config.classifier_dropout_prob
            self.answers = BeamAnswerHead(
                config, start_n_top, end_n_top, dropout, name="qa_beam", dtype=self.dtype_policy
            )
        else:
            raise ValueError(f"`head` must be 'span' or 'beam'. Received: head={head!r}.")
        kind = "logits" if head == "span" else "log_probs"
        edges: dict[str, Imitation] = {f"start_{kind}": "classes", f"end_{kind}": "classes"}
        self.imitated = edges if head == "span" else {**edges, "cls_logits": "decisions"}
        self.answers.build((None, None, config.hidden_size))
        self.build_parts(self.encoder, self.answers)

    def label_fields(self):
        answers = {"start_positions": Field("B"), "end_positions": Field("B")}
        return {**answers, "is_impossible": Field("B", 2)} if self.head == "beam" else answers

    def call(self, inputs, training=False, output_hidden_states=False):
        encoded = self.encoder(
            only(ENCODER_INPUTS, inputs), training=training, output_hidden_states=output_hidden_states
        )
        sequence_output = encoded["sequence_output"]
        if self.head == "span":
            logits = self.answers(sequence_output)  # [B, L, 2]
            if self.mask_padding and "attention_mask" in inputs:
                is_token = ops.cast(inputs["attention_mask"], "bool")[..., None]  # [B, L, 1]
                logits = ops.where(is_token, logits, IMPOSSIBLE)
            outputs = {"start_logits": logits[..., 0], "end_logits": logits[..., 1]}
        else:
            conditions = _p_mask(inputs), inputs.get("start_positions")
            outputs = self.answers(sequence_output, *conditions, training=training)
        return with_states(outputs, encoded)

    def loss_terms(self, y, outputs, sample_weight=None):
        terms = {
            f"{edge}_loss": label_loss(positions, scores, weights).times(0.5)
            for edge, positions, scores, weights in self._edges(y, outputs, sample_weight)
        }
        if self.head == "beam":
            terms["no_answer_loss"] = _no_answer_loss(y, outputs, sample_weight).times(0.5)
        return terms

    def reported_terms(self):
        names = ("start_loss", "end_loss", "start_accuracy", "end_accuracy")
        return (*names, "no_answer_loss") if self.head == "beam" else names

    def metric_terms(self, y, outputs):
        return {
            f"{edge}_accuracy": label_accuracy(positions, scores)
            for edge, positions, scores, _ in self._edges(y, outputs)
        }

    def _edges(self, y, outputs, sample_weight=None):
        """For starts and ends: the name, positions [B], scores [B, L] and weights [B]."""
        kind = "logits" if self.head == "span" else "log_probs"
        if f"start_{kind}" not in outputs:
            raise ValueError(
                "The inputs must contain `start_positions` to train or evaluate a beam head, because ends are scored "
                "for the correct starts; add them to the inputs."
            )
        return [
            (edge, _within(y[label], scores), scores, weights_for(label, sample_weight))
            for edge in ("start", "end")
            for label, scores in [(f"{edge}_positions", outputs[f"{edge}_{kind}"])]
        ]

    def get_config(self):
        head_options = {"head": self.head, "start_n_top": self.start_n_top, "end_n_top": self.end_n_top}
        return {**super().get_config(), **head_options, "mask_padding": self.mask_padding}

    def head_settings(self) -> dict[str, Any]:
        if self.head == "beam":
            return {"start_n_top": self.start_n_top, "end_n_top": self.end_n_top}
        return {} if self.mask_padding else {"mask_padding": False}

    @classmethod
    def settings_from_file(cls, settings):
        tops = {name: settings[name] for name in ("start_n_top", "end_n_top") if name in settings}
        if tops:
            return {"head": "beam", **tops}
        return {"mask_padding": settings["mask_padding"]} if "mask_padding" in settings else {}


def _p_mask(inputs):
    """1 where no answer can be, [B, L]; by default the padding."""
    if "p_mask" in inputs:
        return inputs["p_mask"]
    if "attention_mask" in inputs:
        return 1.0 - ops.cast(inputs["attention_mask"], "float32")
    return ops.zeros_like(inputs["input_ids"])


def _within(positions, scores):
    """Positions as labels [B]: negative ones become 0, those beyond the scores [B, L] are ignored."""
    positions = ops.maximum(ops.cast(positions, "int32"), 0)
    return ops.where(positions < ops.shape(scores)[-1], positions, IGNORED_LABEL)


def _no_answer_loss(y, outputs, sample_weight) -> WeightedMean:
    is_impossible = ops.reshape(ops.cast(y["is_impossible"], "float32"), (-1,))
    losses = ops.binary_crossentropy(is_impossible, outputs["cls_logits"], from_logits=True)
    return weighted_mean(losses, sample_weight=weights_for("is_impossible", sample_weight))
