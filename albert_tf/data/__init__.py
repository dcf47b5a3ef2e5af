"""Data: from text files to batches of examples."""

from typing import TYPE_CHECKING

from albert_tf.lazy import lazy_names

if TYPE_CHECKING:
    from albert_tf.data.manifest import Manifest
    from albert_tf.data.options import ExampleOptions, Objective, PrepareOptions
    from albert_tf.data.preparation.pipeline import PrepareReport, prepare
    from albert_tf.data.pretraining.mask_tokens import mask_tokens
    from albert_tf.data.pretraining.on_the_fly import documents_dataset
    from albert_tf.data.reader import pretraining_dataset

__all__ = [
    "ExampleOptions",
    "Manifest",
    "Objective",
    "PrepareOptions",
    "PrepareReport",
    "documents_dataset",
    "mask_tokens",
    "prepare",
    "pretraining_dataset",
]
__getattr__, __dir__ = lazy_names(__name__)
