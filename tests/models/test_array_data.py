"""Data of users without the autotuning of tf.data."""

import keras
import numpy as np
import pytest
from keras.src.trainers.data_adapters.array_data_adapter import ArrayDataAdapter

import albert_tf

CONFIG = albert_tf.AlbertConfig.from_preset("tiny").replace(num_hidden_layers=1)
IDS = np.full([4, 8], 9)


def is_tuned() -> bool:
    return ArrayDataAdapter(IDS).get_tf_dataset().options().autotune.enabled is not False


class Looks(keras.callbacks.Callback):
    """Looks at the datasets that Keras makes meanwhile."""

    def __init__(self):
        super().__init__()
        self.found = []

    def on_train_batch_end(self, batch, logs=None):
        self.found.append(is_tuned())

    on_test_batch_end = on_predict_batch_end = on_train_batch_end


@pytest.mark.parametrize("call", ["fit", "evaluate", "predict"])
def test_datasets_of_arrays_are_not_tuned(call):
    model = albert_tf.AlbertForSequenceClassification(CONFIG, num_labels=2)
    model.compile("sgd")
    looks = Looks()
    labels = [] if call == "predict" else [np.zeros(4, "int32")]
    getattr(model, call)(IDS, *labels, verbose=0, callbacks=[looks])
    assert looks.found == [False]
    assert is_tuned()


def test_an_error_leaves_keras_as_it_was():
    model = albert_tf.AlbertForSequenceClassification(CONFIG, num_labels=2)
    model.compile("sgd")
    with pytest.raises(ValueError, match="input_ids"):
        model.fit(IDS + 10**6, np.zeros(4, "int32"))
    assert is_tuned()
