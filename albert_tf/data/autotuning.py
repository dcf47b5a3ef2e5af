"""tf.data without autotuning.

Its tuning thread sleeps for 10 ms, then 20 ms, and on to a minute, and an iterator deleted meanwhile often waits
for it to wake: seconds at the end of a `fit` that has done its work.
"""

import tensorflow as tf

# Batches that are ready ahead of a step; what AUTOTUNE would begin with is none.
PREFETCHED_BATCHES = 2


def without_autotuning(dataset: tf.data.Dataset) -> tf.data.Dataset:
    """The dataset with autotuning off; parallel calls that are left to it use as many threads as there are cores."""
    options = tf.data.Options()
    options.autotune.enabled = False
    return dataset.with_options(options)
