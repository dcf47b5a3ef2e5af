"""`albert-tf bench`: the speed of a model on this machine."""

from typing import Annotated

import typer

from albert_tf.cli.paths import ConfigSource, read_config
from albert_tf.cli.tables import AsJson, print_json, print_table
from albert_tf.inference.cpu import has_amx
from albert_tf.inference.progress import progress_line

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
    """Times inference and a training step, and their matrix products alone; with random weights and full rows.

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
    with progress_line("bench"):
        from albert_tf.cli.model_timings import time_model

        timings = time_model(config, batch_size, sequence_length, width, rounds)
    if as_json:
        print_json(timings)
        return
    rows = (
        (
            timing.work,
            f"{timing.median * 1e3:,.1f}",
            f"{min(timing.seconds) * 1e3:,.1f} - {max(timing.seconds) * 1e3:,.1f}",
            f"{timing.tokens / timing.median:,.0f}",
            f"{timing.flops / timing.median / 1e9:,.0f}",
        )
        for timing in timings
    )
    print_table(
        f"{model}, {batch_size} x {sequence_length} tokens, {width}",
        ("", "median ms", "lowest - highest", "tokens/s", "GFLOP/s"),
        rows,
    )
