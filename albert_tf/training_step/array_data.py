"""Arrays, generators and PyDatasets given to `fit`, `evaluate` and `predict`, without the autotuning of tf.data."""

import contextlib

from albert_tf.data.autotuning import without_autotuning
from albert_tf.keras_internals import changed_datasets


def untuned_datasets() -> contextlib.AbstractContextManager[None]:
    """Within it, the datasets that Keras makes of its users' data are not tuned, so that they end at once."""
    return changed_datasets(without_autotuning)
