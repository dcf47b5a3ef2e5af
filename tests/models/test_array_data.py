"""What `fit`, `evaluate` and `predict` read; Keras' classes, which others use meanwhile, stay as they are."""

import keras
import numpy as np
import pytest
from keras.src.trainers.data_adapters.array_data_adapter import ArrayDataAdapter

import albert_tf
from albert_tf.training_step import dataset_of

CONFIG = albert_tf.AlbertConfig.from_preset("tiny").replace(num_hidden_layers=1)
IDS = np.full([4, 8], 9)


class Looks(keras.callbacks.Callback):
    """Looks at the methods of Keras' adapter and at the datasets that it makes meanwhile."""

    def __init__(self):
        super().__init__()
        self.found = []

    def on_train_batch_end(self, batch, logs=None):
        dataset = ArrayDataAdapter(IDS).get_tf_dataset()
        self.found.append((ArrayDataAdapter.get_tf_dataset.__module__, dataset.options().autotune.enabled))

    on_test_batch_end = on_predict_batch_end = on_train_batch_end


@pytest.mark.parametrize("call", ["fit", "evaluate", "predict"])
def test_keras_is_not_changed(call):
    model = albert_tf.AlbertForSequenceClassification(CONFIG, num_labels=2)
    model.compile("sgd")
    looks = Looks()
    labels = [] if call == "predict" else [np.zeros(4, "int32")]
    getattr(model, call)(IDS, *labels, verbose=0, callbacks=[looks])
    assert looks.found == [(ArrayDataAdapter.__module__, None)]


def test_batches_of_texts_are_not_tuned():
    class Batches(keras.utils.PyDataset):
        def __len__(self):
            return 2

        def __getitem__(self, index):
            return ({"input_ids": IDS[:, : 4 + index]},)

    dataset = dataset_of(Batches())
    assert dataset.options().autotune.enabled is False
    assert [batch["input_ids"].shape[1] for (batch,) in dataset] == [4, 5]
