"""`albert-tf info`: what a model of a given size costs, and what ALBERT saves."""

from typing import Annotated

import typer

NAME = "info"


def run(
    model: Annotated[str, typer.Argument(help="A preset such as base_v2, or a config file (.json).")] = "base_v2",
    sequence_length: Annotated[int, typer.Option(help="Tokens in a sequence.", min=1)] = 512,
    dtype: Annotated[str, typer.Option(help="What activations are kept in: float32 or bfloat16.")] = "float32",
) -> None:
    """Shows parameters, arithmetic and memory of a model, also without factorisation and without sharing.

    Example: albert-tf info base_v2 --sequence-length 128
    """
    import rich

    from albert_tf.cli.tables import plain_table
    from albert_tf.config import AlbertConfig
    from albert_tf.costs import compare_costs

    config = AlbertConfig.from_json(model) if model.endswith(".json") else AlbertConfig.from_preset(model)
    if dtype not in ("float32", "bfloat16"):
        raise ValueError(f"`--dtype` must be float32 or bfloat16. Received: {dtype}.")
    comparison = compare_costs(config, sequence_length=sequence_length, dtype=dtype)
    columns = {
        "as it is": comparison.albert,
        "without factorisation": comparison.unfactorised,
        "without sharing": comparison.unshared,
        "without either": comparison.bert,
    }
    table = plain_table(f"{model}, {sequence_length} tokens, {dtype}", "", *columns)
    for label, value in _ROWS.items():
        table.add_row(label, *(value(costs) for costs in columns.values()))
    rich.print(table)


_ROWS = {
    "parameters, encoder with pooler": lambda costs: f"{costs.parameters.encoder:,}",
    "parameters, with pretraining heads": lambda costs: f"{costs.parameters.pretraining:,}",
    "MFLOP per token, forward": lambda costs: f"{costs.forward_flops_per_token / 1e6:,.1f}",
    "MFLOP per token, training": lambda costs: f"{costs.training_flops_per_token / 1e6:,.1f}",
    "activations per sequence, MiB": lambda costs: f"{costs.activation_bytes_per_sequence / 2**20:,.1f}",
}
