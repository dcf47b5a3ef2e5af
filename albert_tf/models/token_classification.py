"""A model that labels every token, for tasks such as named entity recognition.

Letters: B batch, L sequence.
"""

from collections.abc import Sequence

import keras

from albert_tf.config import AlbertConfig
from albert_tf.data.finetuning.encoded import IGNORED_LABEL
from albert_tf.layers import ClassificationHead
from albert_tf.models.classifier import NamedClassifier
from albert_tf.models.encoder import AlbertEncoder, with_states
from albert_tf.models.inputs import ENCODER_INPUTS, Field


@keras.saving.register_keras_serializable("albert_tf")
class AlbertForTokenClassification(NamedClassifier):
    """The encoder with a head on every token; there is no pooler.

    `fit` takes `(inputs, labels)`, labels int [B, L], and minimises mean cross entropy. Labels of -100 are ignored
    (padding, special tokens, all but the first piece of a word). Sample weights are per row [B] or per token [B, L].

    Args:
        config: AlbertConfig.
        num_labels: int. Number of classes; optional if `labels` is given.
        labels: sequence of str. Class names in order of their ids.

    Call arguments:
        inputs: dict as for AlbertEncoder.

    Returns:
        dict: `logits` float32 [B, L, num_labels].

    Example:

    >>> import numpy as np
    >>> config = AlbertConfig.from_preset("tiny")
    >>> model = AlbertForTokenClassification(config, labels=["O", "B-PER", "I-PER"])
    >>> tuple(model({"input_ids": np.array([[2, 17, 35, 3]])})["logits"].shape)
    (1, 4, 3)
    """

    architecture = "AlbertForTokenClassification"
    input_fields = ENCODER_INPUTS
    imitated = {"logits": "classes_of_tokens"}

    def __init__(
        self, config: AlbertConfig, num_labels: int | None = None, labels: Sequence[str] | None = None, **kwargs
    ):
        super().__init__(config, num_labels, labels, **kwargs)
        self.encoder = AlbertEncoder(config, add_pooling_layer=False, name="encoder", dtype=self.dtype_policy)
        self.classifier = ClassificationHead(
            config, self.num_labels, config.classifier_dropout_prob, name="classifier", dtype=self.dtype_policy
        )
        self.classifier.build((None, None, config.hidden_size))
        self.build_parts(self.encoder, self.classifier)

    def label_fields(self):
        return {"labels": Field("BL", "num_labels", ignored=IGNORED_LABEL)}

    def call(self, inputs, training=False, output_hidden_states=False):
        encoded = self.encoder(inputs, training=training, output_hidden_states=output_hidden_states)
        return with_states({"logits": self.classifier(encoded["sequence_output"], training=training)}, encoded)
