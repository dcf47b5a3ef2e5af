"""`albert-tf bench`: the speed of a model on this machine."""

import statistics
import time
from collections.abc import Callable
from typing import Annotated, Any

import typer

from albert_tf.cli.paths import ConfigSource, read_config
from albert_tf.cli.tables import AsJson, print_json, print_table
from albert_tf.config import AlbertConfig
from albert_tf.costs import encoder_flops
from albert_tf.inference.cpu import has_amx
from albert_tf.inference.progress import counted, progress_line

NAME = "bench"


def run(
    model: ConfigSource = "base_v2",
    batch_size: Annotated[int, typer.Option(help="Sequences per batch.", min=1)] = 8,
    sequence_length: Annotated[int, typer.Option(help="Tokens per sequence.", min=1)] = 128,
    dtype: Annotated[
        str, typer.Option(help="Data type of computation: float32 or bfloat16; auto: bfloat16 on a CPU with AMX.")
    ] = "auto",
    rounds: Annotated[int, typer.Option(help="Timed calls of each kind.", min=1)] = 9,
    as_json: AsJson = False,
) -> None:
    """Times inference and a training step of a classifier with random weights, full rows and the config's dropout.

    Nothing else should run meanwhile.

    Example: albert-tf bench base_v2 --batch-size 8 --sequence-length 128
    """
    config = read_config(model)
    if dtype not in ("auto", "float32", "bfloat16"):
        raise ValueError(f"`--dtype` must be auto, float32 or bfloat16. Received: {dtype}.")
    width = ("bfloat16" if has_amx() else "float32") if dtype == "auto" else dtype
    if sequence_length > config.max_position_embeddings:
        raise ValueError(
            f"`--sequence-length` must be at most max_position_embeddings={config.max_position_embeddings}. Received: "
            f"{sequence_length}."
        )
    flops, tokens = batch_size * encoder_flops(config, sequence_length), batch_size * sequence_length
    with progress_line("bench"):
        calls = _calls(config, (batch_size, sequence_length), "float32" if width == "float32" else "mixed_bfloat16")
        seconds: dict[str, list[float]] = {work: [] for work in calls}
        for round_number in counted(range(rounds + 2), rounds + 2, "rounds", size=lambda _: 1):
            for work, call in calls.items():
                begun = time.perf_counter()
                call()
                if round_number >= 2:  # the first ones compile
                    seconds[work].append(time.perf_counter() - begun)
    timings = [
        {"work": work, "seconds": times, "tokens": tokens, "flops": flops * (3 if work == "training step" else 1)}
        for work, times in seconds.items()
    ]
    if as_json:
        print_json(timings)
        return
    title = f"{model}, {batch_size} x {sequence_length} tokens, {width}"
    print_table(title, ("", "median ms", "lowest - highest", "tokens/s", "GFLOP/s"), map(_row, timings))


def _row(timing: dict[str, Any]) -> tuple[str, ...]:
    times, median = timing["seconds"], statistics.median(timing["seconds"])
    speeds = (f"{timing['tokens'] / median:,.0f}", f"{timing['flops'] / median / 1e9:,.0f}")
    return timing["work"], f"{median * 1e3:,.1f}", f"{min(times) * 1e3:,.1f} - {max(times) * 1e3:,.1f}", *speeds


def _calls(config: AlbertConfig, shape: tuple[int, int], policy: str) -> dict[str, Callable[[], object]]:
    """The calls to time; each returns once its result has been computed."""
    import numpy as np
    import tensorflow as tf

    from albert_tf.layers.kernels import fastest_for_inference, inference_with
    from albert_tf.models import AlbertForSequenceClassification
    from albert_tf.optimizers import AdamW

    ids = np.random.default_rng(0).integers(5, config.vocab_size, shape).astype("int32")
    model = AlbertForSequenceClassification(config, num_labels=2, dtype=policy)
    model.compile(AdamW(1e-5))

    def infer(ids):
        with inference_with(model, fastest_for_inference()):  # as `predict` computes
            return model({"input_ids": ids}, training=False)["logits"]

    inference = tf.function(infer, autograph=False)
    labels = np.arange(shape[0], dtype="int32") % 2
    batches = iter(tf.data.Dataset.from_tensors(({"input_ids": ids}, labels)).repeat())
    step = model.make_train_function()
    return {
        "inference": lambda: inference(tf.constant(ids)).numpy(),
        "training step": lambda: float(step(batches)["loss"]),
    }
