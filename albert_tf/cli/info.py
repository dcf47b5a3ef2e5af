"""`albert-tf info`: the costs of a model, and what ALBERT saves."""

from typing import TYPE_CHECKING, Annotated

import typer

from albert_tf.cli.tables import AsJson

if TYPE_CHECKING:
    from albert_tf.config import AlbertConfig

NAME = "info"


def run(
    model: Annotated[
        str, typer.Argument(help="A preset such as base_v2, a config file (.json), or a model's folder or name.")
    ] = "base_v2",
    sequence_length: Annotated[int, typer.Option(help="Tokens per sequence.", min=1)] = 512,
    dtype: Annotated[str, typer.Option(help="Data type of activations: float32 or bfloat16.")] = "float32",
    as_json: AsJson = False,
) -> None:
    """Shows parameters, FLOPs and memory of a model, with and without factorisation and sharing.

    Example: albert-tf info base_v2 --sequence-length 128
    """
    from albert_tf.cli.tables import print_json, print_table
    from albert_tf.costs import compare_costs

    config = _config(model)
    if dtype not in ("float32", "bfloat16"):
        raise ValueError(f"`--dtype` must be float32 or bfloat16. Received: {dtype}.")
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


def _config(model: str) -> "AlbertConfig":
    from albert_tf.config import PRESETS, AlbertConfig
    from albert_tf.hub import model_folder

    if model in PRESETS:
        return AlbertConfig.from_preset(model)
    if not model.endswith(".json"):
        folder = model_folder(model, weights=False)
        files = (folder / name for name in ("config.json", "albert_config.json"))
        model = str(next((file for file in files if file.is_file()), model))
    return AlbertConfig.from_json(model) if model.endswith(".json") else AlbertConfig.from_preset(model)


_ROWS = {
    "parameters, encoder": lambda costs: f"{costs.parameters.encoder:,}",
    "parameters, + heads": lambda costs: f"{costs.parameters.pretraining:,}",
    "MFLOP/token, forward": lambda costs: f"{costs.forward_flops_per_token / 1e6:,.1f}",
    "MFLOP/token, train": lambda costs: f"{costs.training_flops_per_token / 1e6:,.1f}",
    "MiB of activations": lambda costs: f"{costs.activation_bytes_per_sequence / 2**20:,.1f}",
}
