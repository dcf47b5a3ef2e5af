"""The tables of the pages that are made from the code: `python -m docs.tables` writes them, and a test compares.

In a page, a table stands between `<!-- table costs -->` and `<!-- end of table -->`.
"""

import dataclasses
import json
import pathlib
import re
import types
import typing
from collections.abc import Callable, Iterable

import griffe
import pydantic

from docs import scale

PAGES = pathlib.Path(__file__).parent
_TABLE = re.compile(r"(?<=^<!-- table )(\w+)( -->\n\n).*?(?=^<!-- end of table -->$)", re.MULTILINE | re.DOTALL)
_BOUNDS = {"ge": "at least", "gt": "above", "le": "at most", "lt": "below", "min_length": "length at least"}


def filled(page: str) -> str:
    """The text of a page with its tables as the code makes them."""
    return _TABLE.sub(lambda match: f"{match[1]}{match[2]}{TABLES[match[1]]()}\n\n", page)


def table(titles: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    """A Markdown table."""
    lines = [titles, *rows]
    cells = ["| " + " | ".join(str(cell).replace("|", "\\|") for cell in line) + " |" for line in lines]
    return "\n".join([cells[0], "|" + "---|" * (cells[0].count(" | ") + 1), *cells[1:]])


def costs() -> str:
    """A row of costs for each size, at 512 tokens."""
    from albert_tf.config import PRESETS, AlbertConfig
    from albert_tf.costs import compare_costs

    def row(name: str) -> tuple[str, ...]:
        both = compare_costs(AlbertConfig.from_preset(name), sequence_length=512)
        albert, bert = both.albert, both.bert
        return (
            f"`{name}`",
            f"{albert.parameters.encoder:,}",
            f"{bert.parameters.encoder:,}",
            f"{bert.parameters.encoder / albert.parameters.encoder:.1f}",
            f"{albert.forward_flops_per_token / 1e6:,.0f}",
            f"{albert.training_flops_per_token / 1e6:,.0f}",
            f"{albert.activation_bytes_per_sequence / 2**20:,.0f}",
        )

    titles = ("size", "parameters", "as BERT", "ratio", "MFLOP/token", "training", "MiB of activations")
    return table(titles, map(row, PRESETS))


def presets() -> str:
    """A row of dimensions for each size."""
    from albert_tf.config import PRESETS, AlbertConfig

    sizes = ("embedding_size", "hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size")
    fields = (*sizes, "vocab_size", "hidden_dropout_prob")
    configs = {name: AlbertConfig.from_preset(name) for name in PRESETS}
    titles = ("size", *(field.replace("_", " ") for field in fields))
    return table(titles, ((f"`{name}`", *(getattr(c, field) for field in fields)) for name, c in configs.items()))


def parameters() -> str:
    """A row of base_v2's parameters for each part, beside those without factorisation and sharing."""
    from albert_tf.config import AlbertConfig
    from albert_tf.costs import compare_costs

    both = compare_costs(AlbertConfig.from_preset("base_v2"))
    albert, bert = (dataclasses.asdict(costs.parameters) for costs in (both.albert, both.bert))
    rows = [(name.replace("_", " "), f"{albert[name]:,}", f"{bert[name]:,}") for name in albert]
    total = ("**all**", f"{both.albert.parameters.pretraining:,}", f"{both.bert.parameters.pretraining:,}")
    return table(("part", "ALBERT", "without factorisation and sharing"), [*rows, total])


def recipe_keys() -> str:
    """A table for each section of a pretraining recipe; what a key means is written in its row of the page."""
    from albert_tf.trainer.optimizer_recipe import OptimizerRecipe
    from albert_tf.trainer.recipe import DataRecipe, TrainingRecipe

    page = (PAGES / "reference/recipes.md").read_text(encoding="utf-8").partition("table finetune_keys")[0]
    meanings = dict(re.findall(r"^\| `(\w+)` \|.* \| (.+) \|$", page, re.MULTILINE))
    parts = {"[data]": DataRecipe, "[optimizer]": OptimizerRecipe, "[training]": TrainingRecipe}
    return "\n\n".join(f"### `{name}`\n\n{_fields(model, meanings)}" for name, model in parts.items())


def finetune_keys() -> str:
    """The table of the options of fine-tuning."""
    from albert_tf.tasks.settings import Settings
    from albert_tf.trainer.optimizer_recipe import Section
    from albert_tf.trainer.task_options import FinetuneOptions

    models = [model for model in reversed(FinetuneOptions.__mro__) if issubclass(model, Section | Settings)]
    return _fields(FinetuneOptions, _described(*models))


def prepare_keys() -> str:
    """The table of the options of `prepare`."""
    from albert_tf.data.options import ExampleOptions, PrepareOptions

    return _fields(PrepareOptions, _described(ExampleOptions, PrepareOptions))


def commands() -> str:
    """The help of every command."""
    from typer.testing import CliRunner

    from albert_tf.cli.app import COMMANDS, app

    def help_of(name: str) -> str:
        shown = CliRunner().invoke(app, [name, "--help"], prog_name="albert-tf", env={"COLUMNS": "100"})
        lines = "\n".join(line.rstrip() for line in shown.output.strip().splitlines())
        return f"## albert-tf {name}\n\n```text\n{lines}\n```"

    return "\n\n".join(help_of(command.NAME) for command in COMMANDS)


def _fields(model: type[pydantic.BaseModel], meanings: dict[str, str]) -> str:
    """A table with a row for each field of a model, each of which needs a meaning."""
    rows = []
    for name, field in model.model_fields.items():
        bounds = [
            f", {sign} {limit}"
            for item in field.metadata
            for kind, sign in _BOUNDS.items()
            if (limit := getattr(item, kind, None)) is not None and limit < 2**31
        ]
        default = "required"
        if not field.is_required():
            value = field.get_default(call_default_factory=True, validated_data={})
            default = f"`{json.dumps(value, default=str)}`".replace("null", "none")
        rows.append((f"`{name}`", _named(field.annotation) + "".join(bounds), default, meanings[name]))
    return f'<div class="keys" markdown>\n\n{table(("key", "value", "default", "meaning"), rows)}\n\n</div>'


def _named(annotation: typing.Any) -> str:
    """What a field may be, in words."""
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Annotated:
        return _named(arguments[0])
    if origin is typing.Literal:
        return ", ".join(map(repr, arguments))
    if origin in (typing.Union, types.UnionType):
        return " or ".join(_named(part) for part in arguments if part is not types.NoneType)
    if origin is not None:
        return f"{origin.__name__}[{', '.join(map(_named, arguments))}]"
    return "..." if annotation is ... else annotation.__name__


def _described(*models: type) -> dict[str, str]:
    """The arguments that docstrings describe; several may share a description."""
    return {
        name: " ".join(parameter.description.split())
        for model in models
        for part in griffe.Docstring(model.__doc__ or "").parse("google", warnings=False)
        if part.kind is griffe.DocstringSectionKind.parameters
        for parameter in part.value
        for name in parameter.name.split(", ")
    }


TABLES: dict[str, Callable[[], str]] = {
    **{
        make.__name__: make for make in (costs, presets, parameters, recipe_keys, finetune_keys, prepare_keys, commands)
    },
    "scale_corpora": lambda: table(*scale.corpora()),
    "scale_runs": lambda: table(*scale.runs()),
    "scale_network": lambda: table(*scale.network()),
}

if __name__ == "__main__":
    for file in sorted(PAGES.rglob("*.md")):
        before = file.read_text(encoding="utf-8")
        if (after := filled(before)) != before:
            file.write_text(after, encoding="utf-8")
            print(file)
