"""`albert-tf info`: the costs of a model, and what ALBERT saves; or whether its files are sound."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from albert_tf.cli.paths import ConfigSource, checkpoint_folder, read_config
from albert_tf.cli.tables import AsJson, print_json, print_table
from albert_tf.inference.progress import progress_line

NAME = "info"


def run(
    model: ConfigSource = "base_v2",
    sequence_length: Annotated[
        int | None, typer.Option(help="Tokens per sequence; default: 512, or as many as the model takes.", min=1)
    ] = None,
    dtype: Annotated[Literal["float32", "bfloat16"], typer.Option(help="Data type of activations.")] = "float32",
    check: Annotated[bool, typer.Option("--check", help="Check files, weights and vocabulary instead.")] = False,
    as_json: AsJson = False,
) -> None:
    """Shows parameters, FLOPs and memory of a model, with and without factorisation and sharing, or checks its files.

    With --check, MODEL is a checkpoint of any format; the first thing that is wrong is said, and the exit status is 2.

    Example: albert-tf info base_v2 --sequence-length 128

    Example: albert-tf info albert_base_v2 --check
    """
    if check:
        folder = checkpoint_folder(Path(model))
        with progress_line("check"):
            # This imports TensorFlow, so only after the path was checked.
            from albert_tf.cli.checkpoint_checks import check_checkpoint

            checks = list(check_checkpoint(folder))
        print_table("", ("check", "finding"), checks, num_text_columns=2)
        return
    from albert_tf.costs import compare_costs

    config = read_config(model)
    sequence_length = sequence_length or min(512, config.max_position_embeddings)
    comparison = compare_costs(config, sequence_length=sequence_length, dtype=dtype)
    columns = {
        "as it is": comparison.albert,
        "not factorised": comparison.unfactorised,
        "not shared": comparison.unshared,
        "neither": comparison.bert,
    }
    if as_json:
        print_json({"model": model, "sequence_length": sequence_length, "dtype": dtype, "costs": comparison})
        return
    rows = ((label, *(value(costs) for costs in columns.values())) for label, value in _ROWS.items())
    print_table(f"{model}, {sequence_length} tokens, {dtype}", ("", *columns), rows)


_ROWS = {
    "parameters, encoder": lambda costs: f"{costs.parameters.encoder:,}",
    "parameters, + heads": lambda costs: f"{costs.parameters.pretraining:,}",
    "MFLOP/token forward": lambda costs: f"{costs.forward_flops_per_token / 1e6:,.1f}",
    "MFLOP/token train": lambda costs: f"{costs.training_flops_per_token / 1e6:,.1f}",
    "MiB of activations": lambda costs: f"{costs.activation_bytes_per_sequence / 2**20:,.1f}",
}
