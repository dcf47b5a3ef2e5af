"""Makes Keras find the classes of this package in files, without importing them before a file needs them."""

import importlib
import sys
from typing import Any

from albert_tf.lazy import FirstImport
from albert_tf.tasks.table import TASKS

_MODULE_OF = {
    **dict.fromkeys(("AlbertEncoder", *(task.model for task in TASKS)), "albert_tf.models"),
    **dict.fromkeys(
        (
            *("AlbertEmbeddings", "AttentionBlock", "FeedForwardBlock", "TransformerBlock"),
            *("BeamAnswerHead", "ClassificationHead", "MaskedLMHead"),
        ),
        "albert_tf.layers",
    ),
    **dict.fromkeys(("AdamW", "Lamb", "WarmupSchedule"), "albert_tf.optimizers"),
    "OnProbabilities": "albert_tf.models.compiled",
    "TokenizerLayer": "albert_tf.tokenization",
}


def register_classes() -> None:
    """Registers all classes with Keras, now if it is imported, or else when it is."""
    if "keras" in sys.modules:
        _register(sys.modules["keras"])
    else:
        sys.meta_path.insert(0, FirstImport("keras", _import_and_register))


def _import_and_register(keras: Any, execute) -> None:
    execute(keras)
    _register(keras)


def _register(keras: Any) -> None:
    classes = keras.saving.get_custom_objects()
    for name, module in _MODULE_OF.items():
        classes.setdefault(f"albert_tf>{name}", _Unloaded(module, name))


class _Unloaded:
    """Stands for a class until Keras makes an instance of it; importing the class registers the class itself."""

    def __init__(self, module: str, name: str):
        self._module, self._name = module, name

    def from_config(self, *args, **kwargs):
        return getattr(importlib.import_module(self._module), self._name).from_config(*args, **kwargs)
