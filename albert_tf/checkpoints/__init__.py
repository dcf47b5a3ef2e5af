"""Checkpoints of every origin: a file becomes {our variable path: array}, and back. Knows the config and no model.

Names are imported when they are first used: a model that reads no file loads no format.
"""

from typing import TYPE_CHECKING

from albert_tf.lazy import lazy_names

if TYPE_CHECKING:
    from albert_tf.checkpoints.checkpoint import Checkpoint, assign, digest, refuse_another_size
    from albert_tf.checkpoints.conversion import Placement, write
    from albert_tf.checkpoints.formats.google import save_google, write_google
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
_MODULE_OF = {
    **dict.fromkeys(("Checkpoint", "assign", "digest", "refuse_another_size"), "checkpoint"),
    **dict.fromkeys(("Placement", "write"), "conversion"),
    **dict.fromkeys(("save_google", "write_google"), "formats.google"),
    "save_huggingface": "huggingface",
    **dict.fromkeys(("holds_weights", "read"), "reading"),
}
__getattr__, __dir__ = lazy_names(__name__, _MODULE_OF)
