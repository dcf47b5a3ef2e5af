"""ALBERT for TensorFlow 2 and Keras 3: from raw text to a served model.

Names are imported when they are first used, so that `import albert_tf` is quick and loads no TensorFlow.
"""

import importlib
from typing import TYPE_CHECKING

from albert_tf.registration import register_classes
from albert_tf.tasks.table import TASKS

__version__ = "0.2.0"

register_classes()

_HOME = {
    "AlbertConfig": "albert_tf.config",
    "AlbertEncoder": "albert_tf.models",
    "AlbertTokenizer": "albert_tf.tokenization",
    "Preprocessor": "albert_tf.models",
    "pipeline": "albert_tf.inference.pipeline",
    **{task.model: "albert_tf.models" for task in TASKS},
}
__all__ = [
    "AlbertConfig",
    "AlbertEncoder",
    "AlbertForMaskedLM",
    "AlbertForMultipleChoice",
    "AlbertForPreTraining",
    "AlbertForQuestionAnswering",
    "AlbertForSentenceEmbedding",
    "AlbertForSequenceClassification",
    "AlbertForTokenClassification",
    "AlbertTokenizer",
    "Preprocessor",
    "__version__",
    "checkpoints",
    "config",
    "costs",
    "data",
    "export",
    "inference",
    "layers",
    "metrics",
    "models",
    "optimizers",
    "pipeline",
    "tokenization",
    "trainer",
]

if TYPE_CHECKING:
    from albert_tf import checkpoints as checkpoints
    from albert_tf import config as config
    from albert_tf import costs as costs
    from albert_tf import data as data
    from albert_tf import export as export
    from albert_tf import inference as inference
    from albert_tf import layers as layers
    from albert_tf import metrics as metrics
    from albert_tf import models as models
    from albert_tf import optimizers as optimizers
    from albert_tf import tokenization as tokenization
    from albert_tf import trainer as trainer
    from albert_tf.config import AlbertConfig as AlbertConfig
    from albert_tf.inference.pipeline import pipeline as pipeline
    from albert_tf.models import AlbertEncoder as AlbertEncoder
    from albert_tf.models import AlbertForMaskedLM as AlbertForMaskedLM
    from albert_tf.models import AlbertForMultipleChoice as AlbertForMultipleChoice
    from albert_tf.models import AlbertForPreTraining as AlbertForPreTraining
    from albert_tf.models import AlbertForQuestionAnswering as AlbertForQuestionAnswering
    from albert_tf.models import AlbertForSentenceEmbedding as AlbertForSentenceEmbedding
    from albert_tf.models import AlbertForSequenceClassification as AlbertForSequenceClassification
    from albert_tf.models import AlbertForTokenClassification as AlbertForTokenClassification
    from albert_tf.models import Preprocessor as Preprocessor
    from albert_tf.tokenization import AlbertTokenizer as AlbertTokenizer


def __getattr__(name: str):
    if name in _HOME:
        return getattr(importlib.import_module(_HOME[name]), name)
    if name in __all__:
        return importlib.import_module(f"albert_tf.{name}")
    raise AttributeError(f"module 'albert_tf' has no attribute {name!r}")


def __dir__():
    return sorted(__all__)
