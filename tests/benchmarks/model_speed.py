"""Measures ALBERT-base beside KerasHub's, float32, full rows: inference and a training step, in turns in one process.

    pip install keras-hub==0.32.0
    python tests/benchmarks/model_speed.py --batch 8 --length 128 --rounds 15

Both sides have the same sizes and no dropout, predict the same number of masked tokens, and train with the AdamW of
Keras. Printed are medians and the ratio of the medians (above 1: ours is faster). Run nothing else beside it.
"""

import argparse
import statistics
import time

import keras
import keras_hub
import numpy as np
import tensorflow as tf

from albert_tf import AlbertConfig, AlbertEncoder, AlbertForMaskedLM


def main() -> None:
    """Parses the command line, measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--length", type=int, default=128)
    parser.add_argument("--predictions", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--preset", default="base_v2")
    options = parser.parse_args()
    config = AlbertConfig.from_preset(options.preset)
    batch = make_batch(config, options)
    print(f"{options.preset}, batch {options.batch}, length {options.length}, float32, {options.rounds} rounds")
    report("inference", *measure(our_inference(config, batch), their_inference(config, batch), options.rounds))
    report("training step", *measure(our_training(config, batch), their_training(config, batch), options.rounds))


def make_batch(config, options) -> dict[str, np.ndarray]:
    """Random ids in full rows, with random masked positions."""
    generator = np.random.default_rng(0)
    shape, predictions = (options.batch, options.length), (options.batch, options.predictions)
    return {
        "ids": generator.integers(5, config.vocab_size, shape).astype("int32"),
        "mask": np.ones(shape, "int32"),
        "types": np.zeros(shape, "int32"),
        "positions": np.sort(generator.integers(0, options.length, predictions), axis=1).astype("int32"),
        "labels": generator.integers(5, config.vocab_size, predictions).astype("int32"),
        "weights": np.ones(predictions, "float32"),
    }


def our_inputs(batch) -> dict[str, np.ndarray]:
    """The batch under our names."""
    return {
        "input_ids": batch["ids"],
        "attention_mask": batch["mask"],
        "token_type_ids": batch["types"],
        "masked_lm_positions": batch["positions"],
    }


def our_inference(config, batch):
    """A function that encodes the batch."""
    encoder = AlbertEncoder(config)
    inputs = {name: tf.constant(value) for name, value in our_inputs(batch).items() if name != "masked_lm_positions"}
    function = tf.function(lambda x: encoder(x, training=False)["sequence_output"])
    return lambda: function(inputs).numpy()


def our_training(config, batch):
    """A function that makes one step of masked-LM training."""
    model = AlbertForMaskedLM(config)
    model.compile(optimizer=keras.optimizers.AdamW(1e-5, weight_decay=0.01))
    labels = {"masked_lm_ids": batch["labels"], "masked_lm_weights": batch["weights"]}
    return step_function(model, (our_inputs(batch), labels))


def their_backbone(config):
    """KerasHub's network of the same sizes."""
    return keras_hub.models.AlbertBackbone(
        vocabulary_size=config.vocab_size,
        num_layers=config.num_hidden_layers,
        num_heads=config.num_attention_heads,
        embedding_dim=config.embedding_size,
        hidden_dim=config.hidden_size,
        intermediate_dim=config.intermediate_size,
        num_groups=config.num_hidden_groups,
        num_inner_repetitions=config.inner_group_num,
        dropout=0.0,
        max_sequence_length=config.max_position_embeddings,
        num_segments=config.type_vocab_size,
    )


def their_inputs(batch) -> dict[str, np.ndarray]:
    """The batch under KerasHub's names."""
    return {"token_ids": batch["ids"], "segment_ids": batch["types"], "padding_mask": batch["mask"]}


def their_inference(config, batch):
    """A function that encodes the batch."""
    backbone = their_backbone(config)
    inputs = {name: tf.constant(value) for name, value in their_inputs(batch).items()}
    function = tf.function(lambda x: backbone(x, training=False)["sequence_output"])
    return lambda: function(inputs).numpy()


def their_training(config, batch):
    """A function that makes one step of masked-LM training."""
    model = keras_hub.models.AlbertMaskedLM(backbone=their_backbone(config), preprocessor=None)
    model.compile(
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        optimizer=keras.optimizers.AdamW(1e-5, weight_decay=0.01),
    )
    return step_function(model, ({**their_inputs(batch), "mask_positions": batch["positions"]}, batch["labels"]))


def step_function(model, data):
    """One step of `fit` on the same batch, again and again."""
    iterator = iter(tf.data.Dataset.from_tensors(data).repeat())
    model.make_train_function()
    return lambda: float(model.train_function(iterator)["loss"])


def measure(ours, theirs, rounds: int) -> tuple[list[float], list[float]]:
    """Times both in turns, after two rounds of warm-up."""
    seconds: tuple[list[float], list[float]] = ([], [])
    for number in range(rounds + 2):
        for function, times in zip((ours, theirs), seconds):
            begun = time.perf_counter()
            function()
            if number >= 2:
                times.append(time.perf_counter() - begun)
    return seconds


def report(name: str, ours: list[float], theirs: list[float]) -> None:
    """Prints medians and their ratio."""
    median, other = statistics.median(ours), statistics.median(theirs)
    print(f"{name}: ours {median * 1000:.0f} ms, KerasHub {other * 1000:.0f} ms, ratio {other / median:.3f}")


if __name__ == "__main__":
    main()
