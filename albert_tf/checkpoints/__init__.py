"""Checkpoints of every origin: a file becomes {our variable path: array}, and back. Knows the config and no model."""

from albert_tf.checkpoints.checkpoint import Checkpoint, assign
from albert_tf.checkpoints.huggingface import save_huggingface, write_whole
from albert_tf.checkpoints.reading import read

__all__ = ["Checkpoint", "assign", "read", "save_huggingface", "write_whole"]
