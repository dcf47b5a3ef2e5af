"""From the outputs for rows to the logits and probabilities of texts.

Letters: B texts, C labels.
"""

from collections.abc import Iterator

import numpy as np

from albert_tf.data.finetuning.encoded import EncodedTexts
from albert_tf.tasks.outputs import Computed, collect, log_softmax, softmax


def logits_of_texts(
    encoded: EncodedTexts, computed: Iterator[Computed], windows: str | None, problem: str
) -> np.ndarray:
    """The logits of B texts, float32 [B, C], from those of their rows.

    Where one label is chosen, the logits of a window are first normalised to logarithms of probabilities, because they
    are only known but for a constant.

    Args:
        encoded: EncodedTexts.
        computed: the outputs of all batches.
        windows: how those of the windows of a text are joined, see Settings; None: each text has one row.
        problem: see Settings.
    """
    logits = collect(computed, "logits", len(encoded))  # [rows, C]
    if windows is None or encoded.text is None:
        return logits
    if problem == "classification":
        logits = log_softmax(logits)
    first = np.flatnonzero(np.diff(encoded.text, prepend=-1))
    if windows == "max":
        return np.maximum.reduceat(logits, first)
    counts = np.diff(first, append=len(logits)).astype(logits.dtype)
    return np.add.reduceat(logits, first) / counts[:, None]


def probabilities_of(logits: np.ndarray, problem: str) -> np.ndarray:
    """The probabilities of labels, float32 [B, C]; they add up to 1 unless a text may have several labels."""
    if problem == "multi_label":
        with np.errstate(over="ignore"):  # of large negative logits
            return 1 / (1 + np.exp(-logits))
    return softmax(logits)
