"""Run as a script: the same fits on one device and on two mirrored logical CPUs, logs and weights printed as JSON.

A process of its own, because logical devices must be declared before TensorFlow starts.
"""

import json
import pathlib
import sys

import keras
import numpy as np
import tensorflow as tf

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))

from models.small import CONFIG, make_inputs, make_pretraining_batch

from albert_tf import AlbertForPreTraining, AlbertForSequenceClassification
from albert_tf.optimizers import Lamb

# Batches of 4 rows, the last of 1: one replica then gets none.
ROWS = 21


def pretraining(norm, **changes):
    keras.utils.set_random_seed(1)
    model = AlbertForPreTraining(CONFIG)
    model.compile(Lamb(0.02, global_clipnorm=norm), **changes)
    return model, tf.data.Dataset.from_tensor_slices(make_pretraining_batch(ROWS))


def classification(**changes):
    keras.utils.set_random_seed(1)
    model = AlbertForSequenceClassification(CONFIG, num_labels=3)
    model.compile(keras.optimizers.Adam(0.01, global_clipnorm=0.5), **changes)
    labels = np.random.default_rng(2).integers(0, 3, ROWS)
    weights = np.random.default_rng(3).uniform(0.2, 2, ROWS)
    return model, tf.data.Dataset.from_tensor_slices((make_inputs(ROWS), labels, weights))


RUNS = {
    "pretraining": lambda: pretraining(0.1),
    "not_clipped": lambda: pretraining(None),
    "four_steps_in_one": lambda: pretraining(0.1, steps_per_execution=4),
    "own_loss": classification,
    "keras_loss": lambda: classification(
        loss="sparse_categorical_crossentropy",
        metrics=["accuracy"],
        weighted_metrics=[keras.metrics.SparseCategoricalAccuracy(name="weighted")],
    ),
}


def fit(make, strategy, keras_step=False):
    with strategy.scope():
        model, data = make()
    if keras_step:
        keras.Model.make_train_function(model)
    history = model.fit(data.batch(4), epochs=2, shuffle=False, validation_data=data.batch(4), verbose=0).history
    return {"history": history, "weights": [np.asarray(v).ravel().tolist() for v in model.variables_by_path().values()]}


def main():
    cpu = tf.config.list_physical_devices("CPU")[0]
    tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
    one, two = tf.distribute.get_strategy(), tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    results = {name: {"one": fit(make, one), "two": fit(make, two)} for name, make in RUNS.items()}
    # What Keras' own step makes of it: clipping first and adding then is another step.
    results["keras_step"] = fit(RUNS["pretraining"], two, keras_step=True)
    print(json.dumps(results))


if __name__ == "__main__":
    main()
