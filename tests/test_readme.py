"""The documents' examples run: Python as it stands, command lines as far as their options are known."""

import re
import shlex

import pytest
import typer.main

from albert_tf import AlbertConfig, AlbertEncoder
from albert_tf.cli.app import app
from albert_tf.tokenization import AlbertTokenizer
from albert_tf.trainer import load_recipe
from tests.small_pipeline import REPOSITORY

DOCUMENTS = (
    "README.md",
    "README.ko.md",
    "docs/reference/commands.md",
    "docs/guides/own-language.md",
    "docs/guides/korean.md",
    "albert_tf/README.md",
    "training/README.md",
    "saved_models/README.md",
)
RECIPES = sorted(str(file.relative_to(REPOSITORY)) for file in (REPOSITORY / "training/recipes").glob("*.toml"))


def blocks(document: str, language: str) -> list[str]:
    text = (REPOSITORY / document).read_text(encoding="utf-8")
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


def without_comments(document: str, language: str) -> list[str]:
    return [re.sub(r"\s+#.*", "", block) for block in blocks(document, language)]


def command_lines(document: str) -> list[str]:
    text = (REPOSITORY / document).read_text(encoding="utf-8")
    lines = [line.lstrip("# ") for line in text.splitlines()] if document.endswith(".toml") else []
    lines += [line for block in blocks(document, "bash") for line in block.replace("\\\n", " ").splitlines()]
    calls = [line for line in lines if "albert-tf " in line and "`albert-tf" not in line]
    return [re.sub(r"^.*?(?=albert-tf )", "", line) for line in calls]


def run_examples(document: str) -> int:
    examples = blocks(document, "python")
    for example in examples:
        exec(compile(example, document, "exec"), {})
    return len(examples)


@pytest.mark.exhaustive
def test_the_first_examples_give_the_answers_shown(tmp_path, monkeypatch, capsys):
    """The labels; scores differ with processors and versions. A folder stands for the name of published weights."""
    (tmp_path / "training").symlink_to(REPOSITORY / "training")
    monkeypatch.chdir(tmp_path)
    AlbertEncoder(AlbertConfig.from_preset("tiny").replace(vocab_size=30000)).save_pretrained("albert/albert-base-v2")
    AlbertTokenizer.english().save_pretrained("albert/albert-base-v2")
    assert run_examples("README.md") == 2
    *_, probabilities, good, bad = capsys.readouterr().out.splitlines()
    assert re.search(r"\{'bad': 0\.\d+, 'good': 0\.\d+\}$", probabilities)
    given = [line.rpartition(" ") for line in (good, bad)]
    shown = [line.rpartition(" ") for line in blocks("README.md", "text")[0].splitlines()]
    assert [answer for answer, _, _ in given] == [answer for answer, _, _ in shown]
    assert all(float(score) > 0.8 for *_, score in given + shown)


def test_the_korean_readme_has_the_same_example():
    for language in ("python", "text"):
        assert without_comments("README.ko.md", language) == without_comments("README.md", language) != []


@pytest.mark.exhaustive
def test_the_examples_of_the_library_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run_examples("albert_tf/README.md") == 4


@pytest.mark.parametrize("document", ["README.md", "README.ko.md"])
def test_figures_of_speed_are_in_the_results_that_they_name(document):
    text = (REPOSITORY / document).read_text(encoding="utf-8")
    rows = re.findall(r"^\| [^|]+ \|(.+)\| \[.+\]\((tests/benchmarks/results/.+)\) \|$", text, re.MULTILINE)
    assert len(rows) == 4
    for cells, file in rows:
        measured = set(re.findall(r"[\d.,]*\d", (REPOSITORY / file).read_text(encoding="utf-8")))
        figures = re.findall(r"(?<![a-z\d])[\d.,]*\d", cells)
        assert len(figures) >= 3, cells
        assert set(figures) <= measured


@pytest.mark.parametrize("document", [*DOCUMENTS, *RECIPES])
def test_command_lines_are_understood(document):
    commands = typer.main.get_command(app)
    for line in command_lines(document):
        _, name, *arguments = shlex.split(line, comments=True)
        commands.commands[name].make_context(name, arguments)


@pytest.mark.parametrize("document", [*DOCUMENTS, *RECIPES])
def test_what_one_command_writes_fits_the_next(document, tmp_path):
    """A recipe that ships, or is shown, finds its vocabulary and examples among what was written before."""
    (shown,) = (block for block in blocks("training/README.md", "toml") if "[training]" in block)
    (tmp_path / "my_recipe.toml").write_text(shown, encoding="utf-8")
    commands = typer.main.get_command(app).commands
    sizes, examples = {None: AlbertTokenizer.english().vocab_size}, {}
    for line in command_lines(document):
        _, name, *arguments = shlex.split(line, comments=True)
        given = commands[name].make_context(name, arguments).params
        if name == "train-tokenizer":
            sizes[given["output"]] = given["vocab_size"]
        elif name == "prepare":
            examples[given["output"]] = given
        elif name == "pretrain":
            mine = given["recipe"].name == "my_recipe.toml"
            recipe_file = (tmp_path if mine else REPOSITORY) / given["recipe"]
            folders = {option: given[option] for option in ("examples", "documents", "heldout")}
            recipe = load_recipe(recipe_file, **folders)
            for folder in filter(None, (recipe.data.source, recipe.data.heldout)):
                assert folder in examples, line
                assert sizes[examples[folder]["tokenizer"]] == recipe.config.vocab_size, line
                assert examples[folder]["objective"] == recipe.data.objective, line
                assert examples[folder]["max_seq_length"] <= recipe.config.max_position_embeddings, line


def test_there_are_command_lines_to_check():
    assert len(command_lines("docs/reference/commands.md")) == 13
    assert all(len(command_lines(file)) == 2 for file in RECIPES if "_v" in file)


def test_a_wrong_option_would_be_seen():
    commands = typer.main.get_command(app)
    with pytest.raises(Exception, match="No such option"):
        commands.commands["info"].make_context("info", ["base_v2", "--no-such-option"])
