"""Checks of downloaded checkpoints."""

from albert_tf.lazy import lazy_names

__all__ = ["Check", "check_weights", "verify"]

__getattr__, __dir__ = lazy_names(__name__, dict.fromkeys(__all__, "checks"))
