"""A model that turns sentences into vectors, close to each other for sentences of similar meaning.

Letters: B batch, T texts of a row, L sequence, D hidden, or the units of the last layer if the model has one.
"""

from typing import Any, get_args

import keras
from keras import ops

from albert_tf.checkpoints.sentence_modules import SENTENCE_SETTINGS
from albert_tf.config import AlbertConfig
from albert_tf.layers.seeds import next_seed
from albert_tf.models.base import AlbertBase
from albert_tf.models.encoder import AlbertEncoder, with_states
from albert_tf.models.inputs import TEXT_INPUTS, Field
from albert_tf.models.losses import correct, cross_entropy, weighted_mean
from albert_tf.tasks.table import Activation, Objective, Pooling

# As in sentence-transformers: cosines are multiplied by _SCALE before the softmax; a positive text must be closer than
# a negative one by _MARGIN.
_SCALE, _MARGIN = 20.0, 5.0
# Below all outputs, for those of padding.
_NEVER = -1e9
_TEXTS = {"similarity": (2, 2), "ranking": (2, None), "triplet": (3, 3)}


@keras.saving.register_keras_serializable("albert_tf")
class AlbertForSentenceEmbedding(AlbertBase):
    """The encoder with a mean over the tokens of each text, or another pooling; there is no pooler.

    `fit` takes rows of several texts, so its inputs are [B, T, L], and minimises the loss of `objective`:

    - `"similarity"`: T = 2 and labels float [B], the mean squared difference of cosine and label.
    - `"ranking"`: no labels. Text 1 is similar to text 0; all other texts of the batch are not, nor are further texts
      of the row. The loss is the cross entropy of 20 times the cosines. Larger batches are harder and better; each
      replica and each microbatch takes negatives from its own rows only.
    - `"triplet"`: T = 3, no labels. Text 0 is to be closer to text 1 than to text 2 by a Euclidean distance of 5.

    Args:
        config: AlbertConfig.
        objective: str.
        normalize: bool. Whether to scale embeddings to length 1.
        max_length: int. Maximum number of ids of a text, for tokenizers; by default `max_position_embeddings`.
        pooling: str. What makes an embedding of the outputs for tokens, in the words of sentence-transformers: their
            `"mean"`, that of the first token (`"cls"`), the largest of each unit (`"max"`), or their sum divided by the
            square root of their number (`"mean_sqrt_len"`).
        dense_size: int. Units of a dense layer after pooling, as in folders of sentence-transformers with a module
            `Dense`; by default there is none.
        dense_activation: str. Its activation: `"tanh"`, `"relu"`, `"gelu"` or `"linear"`.

    Call arguments:
        inputs: dict as for AlbertEncoder, without packed rows; every tensor is [B, L] or [B, T, L].

    Returns:
        dict: `sentence_embedding` float32 [B, D] or [B, T, D].

    Raises:
        ValueError: the number of texts of a row does not fit the objective.

    Example:

    >>> import numpy as np
    >>> model = AlbertForSentenceEmbedding(AlbertConfig.from_preset("tiny"))
    >>> tuple(model({"input_ids": np.ones((2, 8), "int32")})["sentence_embedding"].shape)
    (2, 128)

    References:
        Sentence-BERT, arXiv 1908.10084; `CosineSimilarityLoss`, `MultipleNegativesRankingLoss` and `TripletLoss` of
        sentence-transformers.
    """

    architecture = "AlbertModel"
    input_fields = {name: field._replace(axes="BTL", optional_axis="T") for name, field in TEXT_INPUTS.items()}
    imitated = {"sentence_embedding": "directions"}
    max_columns = 1  # of `predict`

    def __init__(
        self,
        config: AlbertConfig,
        objective: Objective = "similarity",
        normalize: bool = False,
        max_length: int | None = None,
        pooling: Pooling = "mean",
        dense_size: int | None = None,
        dense_activation: Activation = "tanh",
        **kwargs,
    ):
        super().__init__(config, **kwargs)
        choices = {"pooling": pooling, "objective": objective, "dense_activation": dense_activation}
        for (name, value), names in zip(choices.items(), map(get_args, (Pooling, Objective, Activation))):
            if value not in names:
                raise ValueError(f"`{name}` must be one of {', '.join(names)}. Received: {name}={value!r}.")
        if dense_size is not None and (type(dense_size) is not int or dense_size < 1):
            raise ValueError(f"`dense_size` must be an integer of at least 1. Received: dense_size={dense_size!r}.")
        self.pooling, self.objective, self.normalize = pooling, objective, bool(normalize)
        self.dense_size, self.dense_activation = dense_size, dense_activation
        self.max_length = config.max_position_embeddings if max_length is None else max_length
        if isinstance(max_length, bool) or not 3 <= self.max_length <= config.max_position_embeddings:
            raise ValueError(
                f"`max_length` must be an integer from 3 to max_position_embeddings={config.max_position_embeddings}. "
                f"Received: max_length={max_length!r}."
            )
        self.encoder = AlbertEncoder(config, add_pooling_layer=False, name="encoder", dtype=self.dtype_policy)
        self.dense = None
        if dense_size is not None:
            initializer = keras.initializers.GlorotUniform(next_seed())
            self.dense = keras.layers.Dense(
                dense_size, dense_activation, kernel_initializer=initializer, dtype="float32", name="dense"
            )
            self.dense.build((None, config.hidden_size))
        self.build_parts(self.encoder)

    def label_fields(self):
        return {"labels": Field("B", is_real=True)} if self.objective == "similarity" else {}

    def call(self, inputs, training=False, output_hidden_states=False):
        ids = inputs["input_ids"]
        has_texts = len(ids.shape) == 3
        rows = {
            name: ops.reshape(value, (-1, ops.shape(ids)[-1])) if has_texts else value for name, value in inputs.items()
        }
        encoded = self.encoder(rows, training=training, output_hidden_states=output_hidden_states)
        embedding = self.pool(encoded["sequence_output"], rows.get("attention_mask"))
        if has_texts:
            embedding = ops.reshape(embedding, (-1, ops.shape(ids)[1], self.dense_size or self.config.hidden_size))
        return with_states({"sentence_embedding": embedding}, encoded)

    def pool(self, sequence_output, attention_mask=None):
        """The embeddings [B, D] of texts, from their outputs [B, L, D] where the mask [B, L] is 1."""
        sequence_output = ops.cast(sequence_output, "float32")
        if attention_mask is None:
            attention_mask = ops.ones_like(sequence_output[..., 0])
        mask = ops.expand_dims(ops.cast(attention_mask, "float32"), -1)  # [B, L, 1]
        if self.pooling == "cls":
            embedding = sequence_output[:, 0]
        elif self.pooling == "max":
            embedding = ops.max(ops.where(mask > 0, sequence_output, _NEVER), axis=1)
        else:
            count = ops.maximum(ops.sum(mask, axis=1), 1e-9)
            divisor = count if self.pooling == "mean" else ops.sqrt(count)
            embedding = ops.sum(sequence_output * mask, axis=1) / divisor
        embedding = embedding if self.dense is None else self.dense(embedding)
        return _unit(embedding) if self.normalize else embedding

    def loss_terms(self, y, outputs, sample_weight=None):
        embeddings = self._rows_of_texts(outputs)
        if self.objective == "ranking":
            logits = _SCALE * _cosines_to_all(embeddings)
            losses = cross_entropy(ops.arange(ops.shape(logits)[0]), logits)
            return {"cross_entropy": weighted_mean(losses, sample_weight=sample_weight)}
        if self.objective == "triplet":
            anchor, positive, negative = (embeddings[:, text] for text in range(3))
            losses = ops.relu(_distance(anchor, positive) - _distance(anchor, negative) + _MARGIN)
            return {"triplet_loss": weighted_mean(losses, sample_weight=sample_weight)}
        cosines = ops.sum(_unit(embeddings[:, 0]) * _unit(embeddings[:, 1]), axis=-1)
        losses = ops.square(cosines - ops.reshape(ops.cast(y, "float32"), (-1,)))
        return {"squared_error": weighted_mean(losses, sample_weight=sample_weight)}

    def reported_terms(self):
        names = {"ranking": ("cross_entropy", "accuracy"), "triplet": ("triplet_loss", "accuracy")}
        return names.get(self.objective, ("squared_error",))

    def metric_terms(self, y, outputs):
        embeddings = self._rows_of_texts(outputs)
        if self.objective == "ranking":
            logits = _cosines_to_all(embeddings)
            return {"accuracy": weighted_mean(correct(ops.arange(ops.shape(logits)[0]), logits))}
        if self.objective == "triplet":
            anchor, positive, negative = (embeddings[:, text] for text in range(3))
            return {"accuracy": weighted_mean(_distance(anchor, positive) < _distance(anchor, negative))}
        return {}

    def _rows_of_texts(self, outputs):
        embeddings = outputs["sentence_embedding"]
        fewest, most = _TEXTS[self.objective]
        shape = tuple(embeddings.shape)
        if len(shape) != 3 or (shape[1] is not None and (shape[1] < fewest or shape[1] > (most or shape[1]))):
            count = str(fewest) if most else f"at least {fewest}"
            raise ValueError(
                f"Rows must have {count} texts for the objective {self.objective!r}: input_ids [B, T, L]. Received: "
                f"embeddings of shape {shape}."
            )
        return embeddings

    def get_config(self):
        options = {"objective": self.objective, "normalize": self.normalize, "max_length": self.max_length}
        dense = {"dense_size": self.dense_size, "dense_activation": self.dense_activation}
        return {**super().get_config(), **options, "pooling": self.pooling, **dense}

    def head_settings(self) -> dict[str, Any]:
        names = ("normalize", "pooling", *(("dense_size", "dense_activation") if self.dense else ()))
        length = getattr(self.preprocessor, "max_length", None) or self.max_length
        return {SENTENCE_SETTINGS: {"max_length": length, **{name: getattr(self, name) for name in names}}}

    @classmethod
    def settings_from_file(cls, settings) -> dict[str, Any]:
        return dict(settings.get(SENTENCE_SETTINGS, {}))


def _unit(vectors):
    """Scales vectors to length 1; a zero vector stays."""
    return vectors / ops.maximum(ops.sqrt(ops.sum(ops.square(vectors), axis=-1, keepdims=True)), 1e-12)


def _distance(first, second):
    """Euclidean distances of vectors [B, D]: [B]. The small number keeps gradients finite if vectors are equal."""
    return ops.sqrt(ops.sum(ops.square(first - second + 1e-6), axis=-1))


def _cosines_to_all(embeddings):
    """Cosines of each text 0 and all other texts, [B, (T - 1) B]; the similar one of row b is in column b."""
    embeddings = _unit(embeddings)
    others = ops.transpose(embeddings[:, 1:], (1, 0, 2))  # [T - 1, B, D]
    others = ops.reshape(others, (-1, ops.shape(embeddings)[-1]))
    return ops.matmul(embeddings[:, 0], ops.transpose(others))
