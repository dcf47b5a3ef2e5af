"""Reads and writes checkpoints of all formats as arrays by variable path, independently of the models.

Names are imported on first use, so that formats are loaded only when they are needed.
"""

from typing import TYPE_CHECKING

from albert_tf.lazy import lazy_names

if TYPE_CHECKING:
    from albert_tf.checkpoints.checkpoint import Checkpoint, assign, check_size, digest, with_positions, with_sharing
    from albert_tf.checkpoints.conversion import Placement, write
    from albert_tf.checkpoints.formats.google import save_google, write_google
    from albert_tf.checkpoints.huggingface import save_huggingface
    from albert_tf.checkpoints.reading import holds_weights, read
    from albert_tf.checkpoints.sentence_modules import SENTENCE_SETTINGS, save_sentence_modules
    from albert_tf.checkpoints.vocabulary import check_larger, with_rows, with_vocabulary

__all__ = [
    "SENTENCE_SETTINGS",
    "Checkpoint",
    "Placement",
    "assign",
    "check_larger",
    "check_size",
    "digest",
    "holds_weights",
    "read",
    "save_google",
    "save_huggingface",
    "save_sentence_modules",
    "with_positions",
    "with_rows",
    "with_sharing",
    "with_vocabulary",
    "write",
    "write_google",
]
_MODULE_OF = {
    **dict.fromkeys(("Checkpoint", "assign", "check_size", "digest", "with_positions", "with_sharing"), "checkpoint"),
    **dict.fromkeys(("Placement", "write"), "conversion"),
    **dict.fromkeys(("save_google", "write_google"), "formats.google"),
    "save_huggingface": "huggingface",
    **dict.fromkeys(("holds_weights", "read"), "reading"),
    **dict.fromkeys(("SENTENCE_SETTINGS", "save_sentence_modules"), "sentence_modules"),
    **dict.fromkeys(("check_larger", "with_rows", "with_vocabulary"), "vocabulary"),
}
__getattr__, __dir__ = lazy_names(__name__, _MODULE_OF)
