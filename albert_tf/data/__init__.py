"""Data: from text files to batches of examples."""

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from albert_tf.data.features import PRETRAINING_FEATURES, Feature
    from albert_tf.data.manifest import Manifest
    from albert_tf.data.options import ExampleOptions, Objective, PrepareOptions
    from albert_tf.data.preparation import PrepareReport, prepare
    from albert_tf.data.progress import PrepareProgress
    from albert_tf.data.reader import name_damage, pretraining_dataset, verify_shards

_HOMES = {
    "ExampleOptions": "options",
    "Feature": "features",
    "Manifest": "manifest",
    "Objective": "options",
    "PRETRAINING_FEATURES": "features",
    "PrepareOptions": "options",
    "PrepareProgress": "progress",
    "PrepareReport": "preparation",
    "name_damage": "reader",
    "prepare": "preparation",
    "pretraining_dataset": "reader",
    "verify_shards": "reader",
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
    "name_damage",
    "prepare",
    "pretraining_dataset",
    "verify_shards",
]


def __getattr__(name: str):
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
