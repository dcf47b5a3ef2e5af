"""Optimizers, learning rate schedules and rules over variable paths, imported on first use."""

from typing import TYPE_CHECKING

from albert_tf.lazy import lazy_names

if TYPE_CHECKING:
    from albert_tf.optimizers.adamw import AdamW
    from albert_tf.optimizers.lamb import Lamb
    from albert_tf.optimizers.rules import ALBERT_EXCLUSIONS
    from albert_tf.optimizers.schedules import WarmupSchedule

__all__ = ["ALBERT_EXCLUSIONS", "AdamW", "Lamb", "WarmupSchedule"]
__getattr__, __dir__ = lazy_names(__name__)
