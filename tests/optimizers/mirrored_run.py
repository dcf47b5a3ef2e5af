"""Run as a script: the same steps on one device and on two mirrored logical CPU devices, variables printed as JSON.

A process of its own, because logical devices must be declared before TensorFlow starts.
"""

import json

import keras
import numpy as np
import tensorflow as tf

from albert_tf.optimizers import Lamb, WarmupSchedule

SHAPES = {"kernel": (4, 3), "bias": (3,)}


def gradients(step, replica):
    generator = np.random.default_rng((step, replica))
    return [generator.standard_normal(shape).astype("float32") for shape in SHAPES.values()]


def make():
    generator = np.random.default_rng(7)
    variables = [
        keras.Variable(generator.standard_normal(shape), dtype="float32", name=name) for name, shape in SHAPES.items()
    ]
    return variables, Lamb(WarmupSchedule(0.1, num_train_steps=6, num_warmup_steps=2), weight_decay=0.1)


def main():
    tf.config.set_logical_device_configuration(
        tf.config.list_physical_devices("CPU")[0], [tf.config.LogicalDeviceConfiguration()] * 2
    )
    single, optimizer = make()
    for step in range(5):
        summed = [tf.constant(a + b) for a, b in zip(gradients(step, 0), gradients(step, 1), strict=True)]
        optimizer.apply(summed, single)

    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    with strategy.scope():
        mirrored, optimizer = make()
        optimizer.build(mirrored)

    @tf.function
    def train_step(per_replica):
        strategy.run(lambda *given: optimizer.apply(list(given), mirrored), args=per_replica)

    for step in range(5):
        pairs = zip(gradients(step, 0), gradients(step, 1), strict=True)
        train_step(
            tuple(
                strategy.experimental_distribute_values_from_function(
                    lambda context, pair=pair: tf.constant(pair[context.replica_id_in_sync_group])
                )
                for pair in pairs
            )
        )

    copies = [[value.numpy().tolist() for value in v.value.values] for v in mirrored]
    slots = [[value.numpy().tolist() for value in v.value.values] for v in optimizer._momentums]
    print(json.dumps({"single": [v.numpy().tolist() for v in single], "copies": copies, "slots": slots}))


if __name__ == "__main__":
    main()
