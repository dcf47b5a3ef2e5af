"""Measures a pretraining step of ALBERT-base, what each way to save time in it gains, and KerasHub's, in turns.

    pip install keras-hub==0.32.0        # or leave its row out
    python -m tests.benchmarks.pretraining_step --rows 8 --length 128 --predictions 20 --dtype mixed_bfloat16

Rows are full and there is no dropout. KerasHub has neither sentence order nor LAMB: its model is trained with AdamW.
Run nothing else beside it.
"""

import argparse
import dataclasses
import importlib.util
import statistics
import time
from collections.abc import Callable

import keras
import numpy as np

from albert_tf import AlbertConfig, AlbertForPreTraining
from albert_tf.layers.kernels import Plain
from albert_tf.optimizers import AdamW, Lamb
from tests.benchmarks.speed_worker import keras_step

Step = Callable[[], float]


def main() -> None:
    """Parses the command line, measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=int, default=8)
    parser.add_argument("--length", type=int, default=128)
    parser.add_argument("--predictions", type=int, default=20)
    parser.add_argument("--dtype", choices=("float32", "mixed_bfloat16"), default="float32")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--preset", default="base_v2")
    options = parser.parse_args()
    config = dataclasses.replace(
        AlbertConfig.from_preset(options.preset), hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0
    )
    keras.config.set_dtype_policy(options.dtype)
    shape = options.rows, options.length
    ids = np.random.default_rng(0).integers(5, config.vocab_size, shape).astype("int32")
    few, all_tokens = (np.tile(np.arange(n, dtype="int32"), (options.rows, 1)) for n in (options.predictions, shape[1]))
    steps: dict[str, Step] = {
        "ours, LAMB": our_step(config, ids, few, Lamb(1e-5)),
        "logits of all tokens": our_step(config, ids, all_tokens, Lamb(1e-5)),
        "without XLA programs": our_step(config, ids, few, Lamb(1e-5), has_programs=False),
        "AdamW": our_step(config, ids, few, AdamW(1e-5)),
        "SGD": our_step(config, ids, few, keras.optimizers.SGD(1e-5)),
    }
    if importlib.util.find_spec("keras_hub"):
        steps["KerasHub, AdamW"] = keras_hub_step(config, ids, few)
    report(measure(steps, options.rounds), ids.size)


def our_step(
    config: AlbertConfig, ids: np.ndarray, positions: np.ndarray, optimizer, has_programs: bool = True
) -> Step:
    """A step of pretraining that predicts the pieces at `positions`."""
    model = AlbertForPreTraining(config)
    model.compile(optimizer)
    if not has_programs:
        model.encoder.training_kernels = Plain()
    labels = {
        "masked_lm_ids": np.take_along_axis(ids, positions, axis=1),
        "masked_lm_weights": np.ones(positions.shape, "float32"),
        "sentence_order_labels": np.arange(len(ids), dtype="int32") % 2,
    }
    return keras_step(model, ({"input_ids": ids, "masked_lm_positions": positions}, labels))


def keras_hub_step(config: AlbertConfig, ids: np.ndarray, positions: np.ndarray) -> Step:
    """A step of masked LM of KerasHub's network of the same sizes."""
    import keras_hub

    backbone = keras_hub.models.AlbertBackbone(
        vocabulary_size=config.vocab_size,
        num_layers=config.num_hidden_layers,
        num_heads=config.num_attention_heads,
        embedding_dim=config.embedding_size,
        hidden_dim=config.hidden_size,
        intermediate_dim=config.intermediate_size,
        dropout=0.0,
    )
    model = keras_hub.models.AlbertMaskedLM(backbone=backbone, preprocessor=None)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.AdamW(1e-5, weight_decay=0.01), loss=loss)
    inputs = {"token_ids": ids, "segment_ids": np.zeros_like(ids), "padding_mask": np.ones_like(ids)}
    return keras_step(model, ({**inputs, "mask_positions": positions}, np.take_along_axis(ids, positions, axis=1)))


def measure(steps: dict[str, Step], rounds: int) -> dict[str, list[float]]:
    """Seconds of each step, in turns, after two rounds of warm-up."""
    seconds: dict[str, list[float]] = {name: [] for name in steps}
    for number in range(rounds + 2):
        for name, step in steps.items():
            begun = time.perf_counter()
            step()
            if number >= 2:
                seconds[name].append(time.perf_counter() - begun)
    return seconds


def report(seconds: dict[str, list[float]], tokens: int) -> None:
    """Prints a table; the first step is what the others are compared with."""
    medians = {name: statistics.median(values) for name, values in seconds.items()}
    first = next(iter(medians.values()))
    print("| | ms | lowest - highest | tokens/s | times as fast is ours |\n|---|---|---|---|---|")
    for name, median in medians.items():
        spread = f"{min(seconds[name]) * 1e3:.0f} - {max(seconds[name]) * 1e3:.0f}"
        print(f"| {name} | {median * 1e3:.0f} | {spread} | {tokens / median:.0f} | {median / first:.2f} |")


if __name__ == "__main__":
    main()
