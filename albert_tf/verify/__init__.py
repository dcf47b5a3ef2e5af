"""Checks of downloaded checkpoints."""

from typing import TYPE_CHECKING

from albert_tf.lazy import lazy_names

if TYPE_CHECKING:
    from albert_tf.verify.checks import Check, check_weights, verify

__all__ = ["Check", "check_weights", "verify"]

__getattr__, __dir__ = lazy_names(__name__, dict.fromkeys(__all__, "checks"))
