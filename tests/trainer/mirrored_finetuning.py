"""Run by a test in a process of its own: fine-tunes on two devices, of which each takes half of a batch, or on one."""

import pathlib
import sys

import tensorflow as tf


def main(folder: pathlib.Path, strategy: str, microbatches: int = 1) -> int:
    if strategy == "mirrored":
        (cpu,) = tf.config.list_physical_devices("CPU")
        tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)

    from albert_tf.trainer import FinetuneOptions, finetune  # the devices are fixed by now

    return finetune(
        FinetuneOptions(
            pretrained=folder / "pretrained",
            train=folder / "train.tsv",
            dev=folder / "dev.tsv",
            output=folder / f"{strategy}{microbatches}",
            strategy=strategy,
            gradient_accumulation_steps=microbatches,
            epochs=2,
            batch_size=8,
            learning_rate=1e-3,
            dropout=0.0,
        )
    ).steps


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]), sys.argv[2])
