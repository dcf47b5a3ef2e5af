"""Reads and writes checkpoints of all formats as arrays by variable path, independently of the models.

Names are imported on first use, so that formats are loaded only when they are needed.
"""

from typing import TYPE_CHECKING

from albert_tf.lazy import lazy_names

if TYPE_CHECKING:
    from albert_tf.checkpoints.checkpoint import Checkpoint
    from albert_tf.checkpoints.conversion import write
    from albert_tf.checkpoints.formats.google import save_google
    from albert_tf.checkpoints.reading import read

__all__ = ["Checkpoint", "read", "save_google", "write"]
__getattr__, __dir__ = lazy_names(__name__)
