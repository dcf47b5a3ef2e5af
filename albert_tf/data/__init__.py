"""Data: from text files to batches of examples."""

from typing import TYPE_CHECKING

from albert_tf.lazy import lazy_names

if TYPE_CHECKING:
    from albert_tf.data.features import PRETRAINING_FEATURES, Feature
    from albert_tf.data.manifest import Manifest
    from albert_tf.data.options import ExampleOptions, Objective, PrepareOptions
    from albert_tf.data.preparation.pipeline import PrepareProgress, PrepareReport, prepare
    from albert_tf.data.pretraining.mask_tokens import mask_tokens
    from albert_tf.data.pretraining.on_the_fly import documents_dataset
    from albert_tf.data.reader import pretraining_dataset
    from albert_tf.data.sources import name_damage, verify_shards

_MODULE_OF = {
    "ExampleOptions": "options",
    "Feature": "features",
    "Manifest": "manifest",
    "Objective": "options",
    "PRETRAINING_FEATURES": "features",
    "PrepareOptions": "options",
    "PrepareProgress": "preparation.pipeline",
    "PrepareReport": "preparation.pipeline",
    "documents_dataset": "pretraining.on_the_fly",
    "mask_tokens": "pretraining.mask_tokens",
    "name_damage": "sources",
    "prepare": "preparation.pipeline",
    "pretraining_dataset": "reader",
    "verify_shards": "sources",
}

__all__ = [
    "PRETRAINING_FEATURES",
    "ExampleOptions",
    "Feature",
    "Manifest",
    "Objective",
    "PrepareOptions",
    "PrepareProgress",
    "PrepareReport",
    "documents_dataset",
    "mask_tokens",
    "name_damage",
    "prepare",
    "pretraining_dataset",
    "verify_shards",
]

__getattr__, __dir__ = lazy_names(__name__, _MODULE_OF)
