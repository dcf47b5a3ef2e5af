"""Optimizers, learning rate schedules and rules over variable paths; loaded when first used."""

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from albert_tf.optimizers.adamw import AdamW
    from albert_tf.optimizers.lamb import Lamb
    from albert_tf.optimizers.rules import ALBERT_EXCLUSIONS, assign_rules, is_excluded
    from albert_tf.optimizers.schedules import WarmupSchedule

__all__ = ["ALBERT_EXCLUSIONS", "AdamW", "Lamb", "WarmupSchedule", "assign_rules", "is_excluded"]

_MODULE_OF = {
    "ALBERT_EXCLUSIONS": "rules",
    "AdamW": "adamw",
    "Lamb": "lamb",
    "WarmupSchedule": "schedules",
    "assign_rules": "rules",
    "is_excluded": "rules",
}


def __getattr__(name: str):
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_MODULE_OF[name]}"), name)


def __dir__():
    return __all__
