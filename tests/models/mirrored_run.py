"""Run as a script: the same fits on one device and on two mirrored logical CPUs, logs and weights printed as JSON.

A process of its own, because logical devices must be declared before TensorFlow starts.
"""

import json
import os
import pathlib
import sys
from functools import partial

os.environ["XLA_FLAGS"] = "--xla_backend_optimization_level=0"  # programs compile in half of the time

import keras
import numpy as np
import tensorflow as tf

sys.path.insert(0, str(pathlib.Path(__file__).parents[2]))

from albert_tf import AlbertForPreTraining, AlbertForSequenceClassification, AlbertForTokenClassification
from albert_tf.optimizers import Lamb, WarmupSchedule
from tests.models.small import CONFIG as TWO_LAYERS
from tests.models.small import make_inputs, make_pretraining_batch

CONFIG = TWO_LAYERS.replace(num_hidden_layers=1)
# Batches of 4 rows, the last of 1: one replica then gets none.
ROWS = 21


def weighted(inputs, labels):
    """Rows with weights, so that devices differ in what their rows count for."""
    weights = np.random.default_rng(3).uniform(0.2, 2, len(inputs["input_ids"]))
    return tf.data.Dataset.from_tensor_slices((inputs, labels, weights))


def pretraining(optimizer=None, config=CONFIG, rows=ROWS, **changes):
    keras.utils.set_random_seed(1)
    model = AlbertForPreTraining(config)
    model.compile(optimizer or Lamb(0.02, global_clipnorm=0.1), **changes)
    return model, weighted(*make_pretraining_batch(rows))


def classification(optimizer, **changes):
    keras.utils.set_random_seed(1)
    model = AlbertForSequenceClassification(CONFIG, num_labels=3)
    model.compile(optimizer, **{"loss": "sparse_categorical_crossentropy", **changes})
    return model, weighted(make_inputs(ROWS), np.random.default_rng(2).integers(0, 3, ROWS))


def keras_loss():
    accuracy = keras.metrics.SparseCategoricalAccuracy(name="weighted")
    optimizer = keras.optimizers.Adam(0.01, global_clipnorm=0.5)
    return classification(optimizer, metrics=["accuracy"], weighted_metrics=[accuracy])


def own_classification_loss():
    return classification(keras.optimizers.SGD(0.1), loss=None)


def microbatches_of_one(count):
    # Each device takes its two rows one after the other.
    model, data = pretraining(keras.optimizers.SGD(0.1), gradient_accumulation_steps=count, jit_compile=False)
    return model, data.take(20)


def dropout_model(**changes):
    return pretraining(config=CONFIG.replace(hidden_dropout_prob=0.2, attention_probs_dropout_prob=0.2), **changes)


class Distilled(AlbertForSequenceClassification):
    """What subclasses may add to a loss: in `compute_loss`, by `add_loss` and by a regularizer."""

    def call(self, inputs, training=False):
        outputs = super().call(inputs, training=training)
        self.add_loss(0.1 * keras.ops.mean(keras.ops.square(outputs["logits"])))
        return outputs

    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
        loss = super().compute_loss(x, y, y_pred, sample_weight, training)
        return loss + 0.1 * keras.ops.mean(keras.ops.abs(y_pred["logits"]))


def distilled():
    keras.utils.set_random_seed(1)
    # Tokens without padding differ in number between devices.
    teacher = AlbertForTokenClassification(CONFIG.replace(num_hidden_layers=2, initializer_range=0.3), num_labels=3)
    model = AlbertForTokenClassification(CONFIG, num_labels=3)
    model.compile(keras.optimizers.SGD(0.1), teacher=teacher)
    inputs = make_inputs(ROWS)
    return model, weighted(inputs, np.random.default_rng(2).integers(0, 3, inputs["input_ids"].shape))


def own_loss():
    keras.utils.set_random_seed(1)
    model = Distilled(CONFIG, num_labels=3)
    model.classifier.trainable_variables[0].regularizer = keras.regularizers.L2(0.1)
    model.compile(keras.optimizers.SGD(0.1), jit_compile=False)
    labels = np.random.default_rng(2).integers(0, 3, ROWS)
    # Even batches, since a mean over a batch is not that of its parts where these are uneven.
    return model, tf.data.Dataset.from_tensor_slices((make_inputs(ROWS), labels)).take(20)


def by_weights():
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True, reduction="mean_with_sample_weight")
    # Plain SGD, so that gradients which each device clips by itself would show.
    return classification(keras.optimizers.SGD(1.0, global_clipnorm=0.1), loss=loss)


def scalar_loss():
    return classification(keras.optimizers.SGD(0.1), loss=lambda y_true, y_pred: keras.ops.mean(y_pred**2))


def overflowing():
    # The scaled loss overflows at first: those steps are skipped, on both devices alike.
    scaled = keras.optimizers.LossScaleOptimizer(Lamb(0.02, global_clipnorm=0.1, use_ema=True), initial_scale=3e38)
    model, data = pretraining(scaled, jit_compile=False)
    return model, data.take(20)


def programs():
    model, data = pretraining(jit_compile=True)
    return model, data.take(20)


def programs_of_scaled_loss():
    scaled = keras.optimizers.LossScaleOptimizer(Lamb(0.02, global_clipnorm=0.1, use_ema=True), initial_scale=3e38)
    model, data = pretraining(scaled, jit_compile=True)
    return model, data.take(20)


def programs_of_keras_optimizer():
    # Its decay and its averages are assigned apart from the update; the last batch leaves a device without rows.
    optimizer = keras.optimizers.AdamW(0.01, weight_decay=0.1, use_ema=True, ema_overwrite_frequency=2)
    return classification(optimizer, metrics=["accuracy"], jit_compile=True)


def predictions(strategy):
    with strategy.scope():
        model, data = programs()
    return model.predict(data.map(lambda inputs, *_: inputs).batch(4), verbose=0)["sentence_order_logits"].tolist()


def fit(make, strategy, validate=True, batch_size=4):
    with strategy.scope():
        model, data = make()
    data = data.batch(batch_size)
    validation = data if validate else None
    history = model.fit(data, epochs=2, shuffle=False, validation_data=validation, verbose=0).history
    weights = {path: v.numpy().tolist() for path, v in model.variables_by_path().items()}
    report = model.step_monitor.snapshot()
    scale = getattr(model.optimizer, "dynamic_scale", None)
    return {
        "history": history,
        "weights": weights,
        "steps": report.step,
        "norms": report.norms,
        "scale": None if scale is None else float(scale.numpy()),
    }


def dropout_masks(strategy, remats):
    """Weights after each run, and what each replica then computes in training from the same row."""
    runs = []
    for remat in remats:
        with strategy.scope():
            model, _ = dropout_model(jit_compile=False, remat=remat)
        inputs, labels = make_pretraining_batch(1)
        rows = tf.nest.map_structure(lambda array: np.repeat(array, 4, axis=0), (inputs, labels))
        data = tf.data.Dataset.from_tensor_slices(rows).batch(4)
        model.fit(data, epochs=2, shuffle=False, verbose=0)
        runs.append([variable.numpy().tolist() for variable in model.trainable_variables])

    @tf.function
    def logits(batch):
        return strategy.run(lambda batch: model(batch[0], training=True)["sentence_order_logits"], args=(batch,))

    batch = next(iter(strategy.experimental_distribute_dataset(data)))
    replicas = [value.numpy()[:1].tolist() for value in strategy.experimental_local_results(logits(batch))]
    return {"runs": runs, "replicas": replicas}


def optimizer_alone(strategy):
    """Variables after steps whose gradients differ by device: on one device, and each copy of them and of the slots."""
    draw, shapes = np.random.default_rng(7), {"kernel": (4, 3), "bias": (3,)}
    values = {name: draw.standard_normal(shape) for name, shape in shapes.items()}
    gradients = [draw.standard_normal((5, 2, *shape)).astype("float32") for shape in shapes.values()]

    def make():
        variables = [keras.Variable(value, dtype="float32", name=name) for name, value in values.items()]
        optimizer = Lamb(WarmupSchedule(0.1, num_train_steps=6, num_warmup_steps=2), weight_decay=0.1)
        optimizer.build(variables)
        return variables, optimizer

    single, optimizer = make()
    with strategy.scope():
        mirrored, of_both = make()

    def of_replica(step):
        replica = tf.distribute.get_replica_context().replica_id_in_sync_group
        of_both.apply([tf.constant(gradient)[step, replica] for gradient in gradients], mirrored)

    train_step = tf.function(lambda step: strategy.run(of_replica, args=(step,)))
    for step in range(5):
        optimizer.apply([tf.constant(gradient[step].sum(axis=0)) for gradient in gradients], single)
        train_step(tf.constant(step))
    copies, slots = (
        [[copy.numpy().tolist() for copy in variable.value.values] for variable in variables]
        for variables in (mirrored, of_both._momentums)
    )
    return {"single": [variable.numpy().tolist() for variable in single], "copies": copies, "slots": slots}


def main():
    cpu = tf.config.list_physical_devices("CPU")[0]
    tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
    one, two = tf.distribute.get_strategy(), tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])

    def both(make, on_two=None, validate=False, **options):
        return {"one": fit(make, one, validate, **options), "two": fit(on_two or make, two, validate, **options)}

    results = {make.__name__: both(make, validate=True) for make in (pretraining, keras_loss)}
    for make in (overflowing, by_weights, own_loss, distilled):
        results[make.__name__] = both(make)
    results["microbatches_of_one"] = both(partial(microbatches_of_one, 1), partial(microbatches_of_one, 2))
    results["programs"] = both(programs, validate=True)
    results["programs_of_scaled_loss"] = both(programs_of_scaled_loss)
    results["programs_of_keras_optimizer"] = both(programs_of_keras_optimizer)
    results["predictions"] = [predictions(strategy) for strategy in (one, two)]
    # One row a batch, so that one of the devices never has any.
    results["own_classification_loss"] = both(own_classification_loss, validate=True, batch_size=1)
    results["pretraining"]["four_steps_in_one"] = fit(lambda: pretraining(steps_per_execution=4), two, validate=False)
    results["optimizer_alone"] = optimizer_alone(two)
    results["dropout"] = dropout_masks(two, ("none", "none", "block"))
    try:
        fit(scalar_loss, two, validate=False)
    except ValueError as error:
        results["scalar_loss"] = str(error)
    print(json.dumps(results))


if __name__ == "__main__":
    main()
