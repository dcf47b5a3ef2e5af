"""What the pages take from elsewhere when the site is built, so that no fact is written twice.

In a page, `<!-- include training/README.md "Memory" -->` stands for the section of that file with this heading; without
a heading for all of the file but its title, for a notebook with its outputs, or for a chart. `<!-- generate costs -->`
is a table that is made from the code. The line after it, which readers of the plain file see instead, is dropped.
"""

import base64
import dataclasses
import json
import pathlib
import re
from collections.abc import Callable, Iterator
from typing import Any

import griffe

REPOSITORY = pathlib.Path(__file__).parents[1]
_DIRECTIVE = re.compile(r'^<!-- (include|generate) (\S+?)(?: "(.+)")? -->$(?:\n\(.+\)$)?', re.MULTILINE)
_HEADING = re.compile(r"^(#+) (.+)$", re.MULTILINE)
_CODE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """MkDocs calls this with the text of each page."""
    return expand(markdown, "../" * page.file.src_uri.count("/"))


def expand(markdown: str, root: str = "") -> str:
    """Replaces the directives of a page, from which `root` leads to the first page.

    Raises:
        ValueError: the section or the table is unknown.
    """

    def replacement(match: re.Match) -> str:
        kind, name, heading = match.groups()
        if kind == "include":
            return _relinked(section(name, heading), root)
        if name not in GENERATED:
            raise ValueError(f"`generate` must be followed by one of {', '.join(GENERATED)}. Received: {name}.")
        return GENERATED[name]()

    return _DIRECTIVE.sub(replacement, markdown)


def section(file: str, heading: str | None = None) -> str:
    """The text under a heading of a file of the repository; all of it but its title if there is no heading.

    A notebook is shown with its outputs, and a chart as it is.
    """
    text = (REPOSITORY / file).read_text(encoding="utf-8")
    if file.endswith(".svg"):
        return f"![chart](data:image/svg+xml;base64,{base64.b64encode(text.encode()).decode()})"
    if file.endswith(".ipynb"):
        return notebook_page(REPOSITORY / file)
    hidden = _CODE.sub(lambda match: "x" * len(match[0]), text)  # a comment in a code block is no heading
    headings = [(len(match[1]), match[2], match.start(), match.end()) for match in _HEADING.finditer(hidden)]
    if heading is None:
        return text[headings[0][3] :].strip("\n")
    for number, (level, name, _, end) in enumerate(headings):
        if name == heading:
            following = (start for other, _, start, _ in headings[number + 1 :] if other <= level)
            return text[end : next(following, len(text))].strip("\n")
    raise ValueError(f"{file} has no heading {heading!r}; it has {', '.join(name for _, name, _, _ in headings)}.")


def _relinked(text: str, root: str) -> str:
    """Links from the repository's root: to pages they stay, and of other files the names are left."""
    pages = re.sub(r"\]\(docs/", f"]({root}", text)
    return re.sub(r"\[([^]\n]+)\]\((?:tests|training|saved_models|albert_tf)/[^)]*\)", r"\1", pages)


def table(titles: tuple[str, ...], rows: Any) -> str:
    """A Markdown table."""
    lines = [titles, ["---"] * len(titles), *rows]
    return "\n".join("| " + " | ".join(str(cell).replace("|", "\\|") for cell in line) + " |" for line in lines)


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
    return table(titles, [row(name) for name in PRESETS])


def presets() -> str:
    """A row of dimensions for each size."""
    from albert_tf.config import PRESETS, AlbertConfig

    fields = ("embedding_size", "hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size")
    titles = ("size", *fields, "vocab_size", "dropout")
    configs = {name: AlbertConfig.from_preset(name) for name in PRESETS}
    return table(
        tuple(title.replace("_", " ") for title in titles),
        [
            (f"`{name}`", *(getattr(config, field) for field in fields), config.vocab_size, config.hidden_dropout_prob)
            for name, config in configs.items()
        ],
    )


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
    """A table for each section of a pretraining recipe."""
    from albert_tf.trainer.optimizer_recipe import OptimizerRecipe
    from albert_tf.trainer.recipe import DataRecipe, TrainingRecipe

    meanings = dict(_meanings_in_table(section("training/README.md", "Recipes")))
    parts = {"[data]": DataRecipe, "[optimizer]": OptimizerRecipe, "[training]": TrainingRecipe}
    return "\n\n".join(f"### `{name}`\n\n{_fields(model, meanings)}" for name, model in parts.items())


def finetune_keys() -> str:
    """The table of the options of fine-tuning."""
    from albert_tf.tasks.settings import Settings
    from albert_tf.trainer.optimizer_recipe import Section
    from albert_tf.trainer.task_options import FinetuneOptions

    models = [model for model in reversed(FinetuneOptions.__mro__) if issubclass(model, Section | Settings)]
    meanings = {name: text for model in models for name, text in _meanings_in_docstring(model)}
    return _fields(FinetuneOptions, meanings)


def prepare_keys() -> str:
    """The table of the options of `prepare`."""
    from albert_tf.data.options import ExampleOptions, PrepareOptions

    meanings = {
        name: text for model in (ExampleOptions, PrepareOptions) for name, text in _meanings_in_docstring(model)
    }
    return _fields(PrepareOptions, meanings)


def commands() -> str:
    """The help of every command."""
    from typer.testing import CliRunner

    from albert_tf.cli.app import COMMANDS, app

    def help_of(name: str) -> str:
        shown = CliRunner().invoke(app, [name, "--help"], prog_name="albert-tf", env={"COLUMNS": "100"})
        return f"## albert-tf {name}\n\n```text\n{shown.output.strip()}\n```"

    return "\n\n".join(help_of(command.NAME) for command in COMMANDS)


def scale_corpora() -> str:
    """What texts of each size become."""
    from docs import scale

    return table(*scale.corpora())


def scale_runs() -> str:
    """What runs take on each machine."""
    from docs import scale

    return table(*scale.runs())


def scale_network() -> str:
    """What runs read and send on each machine."""
    from docs import scale

    return table(*scale.network())


GENERATED: dict[str, Callable[[], str]] = {
    function.__name__: function
    for function in (
        *(costs, presets, parameters, recipe_keys, finetune_keys, prepare_keys, commands),
        *(scale_corpora, scale_runs, scale_network),
    )
}


def _fields(model: Any, meanings: dict[str, str]) -> str:
    """A table with a row for each field of a pydantic model.

    Raises:
        ValueError: a field has no meaning.
    """
    if missing := [name for name in model.model_fields if name not in meanings]:
        raise ValueError(f"{model.__name__} has fields that no text explains: {', '.join(missing)}.")
    rows = []
    for name, field in model.model_fields.items():
        default = (
            "required"
            if field.is_required()
            else f"`{json.dumps(field.get_default(call_default_factory=True, validated_data={}), default=str)}`"
        )
        rows.append((f"`{name}`", _type(field), default.replace("null", "none"), meanings[name]))
    rows = table(("key", "value", "default", "meaning"), rows)
    return f'<div class="keys" markdown>\n\n{rows}\n\n</div>'


def _type(field: Any) -> str:
    text = str(field.annotation) if not isinstance(field.annotation, type) else field.annotation.__name__
    text = re.sub(r"typing\.Literal\[(.+?)\]", r"\1", text.replace("pathlib.Path", "Path").replace("NoneType", "None"))
    text = re.sub(r"Annotated\[(\w+),.*?\)\]\)?\]", r"\1", text.replace("typing.", "")).replace(" | None", "")
    text = re.sub(r"Union\[(.+)\]", r"\1", text)
    limits = [str(item) for item in field.metadata if not re.search("Strict|Validator", str(item))]
    bounds = ", ".join(re.sub(r"\w+\((\w+)=(.+)\)", _bound, limit) for limit in limits)
    return f"{re.sub(r'albert_tf[.a-z_]*[.]', '', text)}{f', {bounds}' if bounds else ''}"


def _bound(match: re.Match) -> str:
    signs = {"ge": "at least", "gt": "above", "le": "at most", "lt": "below", "min_length": "length at least"}
    return f"{signs[match[1]]} {match[2]}"


def _meanings_in_table(text: str) -> Iterator[tuple[str, str]]:
    """The keys in the second column of a table, each with the third."""
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split(" | ")]
        if len(cells) == 3:
            for name in re.findall(r"`(\w+)`", cells[1]):
                yield name, cells[2]


def _meanings_in_docstring(model: Any) -> Iterator[tuple[str, str]]:
    """The arguments that a docstring describes; several may share a description."""
    for part in griffe.Docstring(model.__doc__).parse("google", warnings=False):
        if part.kind is griffe.DocstringSectionKind.parameters:
            for parameter in part.value:
                for name in parameter.name.split(", "):
                    yield name, " ".join(parameter.description.split())


def notebook_page(notebook: pathlib.Path) -> str:
    """A notebook with its outputs as Markdown."""
    parts = []
    for cell in json.loads(notebook.read_text(encoding="utf-8"))["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(source)
        else:
            parts.append(f"```python\n{source}\n```")
            parts += [text for output in cell["outputs"] if (text := _output(output))]
    return "\n\n".join(parts) + f"\n\nThis page is `docs/notebooks/{notebook.name}` with its outputs.\n"


def _output(output: dict[str, Any]) -> str:
    data = output.get("data", {})
    if output.get("name") == "stderr":
        return ""
    if "image/png" in data:
        return f"![plot](data:image/png;base64,{''.join(data['image/png']).strip()})"
    text = "".join(output.get("text", data.get("text/plain", "")))
    return f"```text\n{text.rstrip()}\n```" if text else ""


class Doctests(griffe.Extension):
    """Fences the examples in docstrings, which Markdown would read as quotations."""

    def on_instance(self, *, obj: griffe.Object, **_: Any) -> None:
        """Griffe calls this for each object that it has read."""
        if obj.docstring:
            fenced = re.sub(r"^(>>> .*?)(?=\n\n|\Z)", r"```pycon\n\1\n```", obj.docstring.value, flags=re.M | re.S)
            obj.docstring.value = fenced
