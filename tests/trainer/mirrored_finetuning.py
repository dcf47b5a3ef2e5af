"""Run by a test in a process of its own: fine-tunes on one device, and on two of which each takes half of a batch."""

import pathlib
import sys

import tensorflow as tf


def main(folder: pathlib.Path, strategy: str) -> None:
    if strategy == "mirrored":
        (cpu,) = tf.config.list_physical_devices("CPU")
        tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)

    from albert_tf.trainer import FinetuneOptions, finetune  # the devices are fixed by now

    finetune(
        FinetuneOptions(
            pretrained=folder / "pretrained",
            train=folder / "train.tsv",
            dev=folder / "dev.tsv",
            output=folder / strategy,
            strategy=strategy,
            gradient_accumulation_steps=2 if strategy == "one_device" else 1,  # drops the same rows at an epoch's end
            epochs=2,
            batch_size=8,
            learning_rate=1e-3,
            dropout=0.0,
        )
    )


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]), sys.argv[2])
