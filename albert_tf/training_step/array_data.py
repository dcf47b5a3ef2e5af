"""Arrays, generators and PyDatasets given to `fit`, `evaluate` and `predict`, without the autotuning of tf.data."""

import contextlib
from collections.abc import Iterator
from typing import Any

from keras.src.trainers.data_adapters import array_data_adapter, generator_data_adapter, py_dataset_adapter

from albert_tf.data.autotuning import without_autotuning

_ADAPTERS: tuple[Any, ...] = (
    array_data_adapter.ArrayDataAdapter,
    generator_data_adapter.GeneratorDataAdapter,
    py_dataset_adapter.PyDatasetAdapter,
)


@contextlib.contextmanager
def untuned_datasets() -> Iterator[None]:
    """Within it, the datasets that Keras makes of its users' data are not tuned, so that they end at once.

    A `tf.data.Dataset` of a user is left as it is.
    """
    with contextlib.ExitStack() as stack:
        for adapter in _ADAPTERS:
            make = adapter.get_tf_dataset
            stack.callback(setattr, adapter, "get_tf_dataset", make)
            adapter.get_tf_dataset = lambda self, make=make: without_autotuning(make(self))
        yield
