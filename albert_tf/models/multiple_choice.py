"""A model that chooses one of several texts, such as the answer to a multiple-choice question.

Letters: B batch, C choices, L sequence.
"""

import keras
from keras import ops

from albert_tf.config import AlbertConfig
from albert_tf.data.finetuning.encoded import IGNORED_LABEL
from albert_tf.layers import ClassificationHead
from albert_tf.models.classifier import AlbertClassifier
from albert_tf.models.encoder import AlbertEncoder, with_states
from albert_tf.models.inputs import TEXT_INPUTS, Field


@keras.saving.register_keras_serializable("albert_tf")
class AlbertForMultipleChoice(AlbertClassifier):
    """The encoder with a head that scores each choice separately.

    `fit` takes `(inputs, labels)`, labels int [B], the index of the correct choice, and minimises mean cross entropy
    over choices. Their number follows from the inputs.

    Args:
        config: AlbertConfig.

    Call arguments:
        inputs: dict as for AlbertEncoder, but every tensor is [B, C, L]: one sequence per choice.

    Returns:
        dict: `logits` float32 [B, C].

    Raises:
        ValueError: a tensor is not [B, C, L].

    Example:

    >>> import numpy as np
    >>> model = AlbertForMultipleChoice(AlbertConfig.from_preset("tiny"))
    >>> tuple(model({"input_ids": np.ones((2, 4, 8), "int32")})["logits"].shape)
    (2, 4)

    References:
        `race_utils.py` (create_model) of google-research/albert.
    """

    architecture = "AlbertForMultipleChoice"
    input_fields = {name: field._replace(axes="BCL") for name, field in TEXT_INPUTS.items()}

    def __init__(self, config: AlbertConfig, **kwargs):
        super().__init__(config, **kwargs)
        self.encoder = AlbertEncoder(config, name="encoder", dtype=self.dtype_policy)
        self.classifier = ClassificationHead(
            config, 1, config.classifier_dropout_prob, name="classifier", dtype=self.dtype_policy
        )
        self.build_parts(self.encoder, self.classifier)

    def label_fields(self):
        return {"labels": Field("B", "C", ignored=IGNORED_LABEL)}

    def call(self, inputs, training=False, output_hidden_states=False):
        rows = {name: ops.reshape(value, (-1, ops.shape(value)[2])) for name, value in inputs.items()}  # [B C, L]
        encoded = self.encoder(rows, training=training, output_hidden_states=output_hidden_states)
        scores = self.classifier(encoded["pooled_output"], training=training)  # [B C, 1]
        return with_states({"logits": ops.reshape(scores, (-1, ops.shape(inputs["input_ids"])[1]))}, encoded)
