"""ALBERT for TensorFlow 2 and Keras 3: from raw text to a served model.

Names are imported when they are first used, so that `import albert_tf` is quick and loads no TensorFlow.
"""

from typing import TYPE_CHECKING

from albert_tf.lazy import lazy_names
from albert_tf.registration import register_classes

__version__ = "0.2.0"

register_classes()

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
    from albert_tf import (
        checkpoints,
        config,
        costs,
        data,
        export,
        inference,
        layers,
        metrics,
        models,
        optimizers,
        tokenization,
        trainer,
    )
    from albert_tf.config import AlbertConfig
    from albert_tf.inference.pipeline import pipeline
    from albert_tf.models import (
        AlbertEncoder,
        AlbertForMaskedLM,
        AlbertForMultipleChoice,
        AlbertForPreTraining,
        AlbertForQuestionAnswering,
        AlbertForSentenceEmbedding,
        AlbertForSequenceClassification,
        AlbertForTokenClassification,
        Preprocessor,
    )
    from albert_tf.tokenization import AlbertTokenizer

__getattr__, __dir__ = lazy_names(__name__)
