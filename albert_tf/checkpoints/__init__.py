"""Checkpoints of every origin: a file becomes {our variable path: array}, and back. Knows the config and no model."""

from albert_tf.checkpoints.checkpoint import Checkpoint, assign, digest, refuse_another_size
from albert_tf.checkpoints.conversion import Placement, write
from albert_tf.checkpoints.google import save_google, write_google
from albert_tf.checkpoints.huggingface import save_huggingface
from albert_tf.checkpoints.reading import holds_weights, read

__all__ = [
    "Checkpoint",
    "Placement",
    "assign",
    "digest",
    "holds_weights",
    "read",
    "refuse_another_size",
    "save_google",
    "save_huggingface",
    "write",
    "write_google",
]
