"""Tests of the whole command line: the steps, completion, examples, JSON, colours, and silence."""

import itertools
import json
import os
import re

import pytest
import typer.main

from albert_tf.cli.app import COMMANDS, app
from albert_tf.cli.overview import next_command
from albert_tf.cli.session import user_errors

from .terminal import mistake, output_of
from .test_session import start


def write(folder, *paths):
    for path in paths:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text("")


def test_the_next_step_follows_from_the_folder(tmp_path, monkeypatch):
    times = itertools.count(1_700_000_000)
    assert next_command(tmp_path).startswith("albert-tf finetune albert/albert-base-v2 --train TABLE --dev TABLE")
    for path, command in (
        ("corpus/a.txt", "albert-tf train-tokenizer corpus/*.txt --output vocabulary --vocab-size 8000"),
        ("words/spiece.model", "albert-tf prepare corpus/*.txt --tokenizer words --output examples"),
        ("film_reviews/model.safetensors", 'albert-tf predict film_reviews "A text."'),
        ("data/128/manifest.json", "albert-tf pretrain recipe.toml --examples data/128 --output runs/mine"),
        ("runs/base/model/config.json", "albert-tf finetune runs/base/model --train TABLE --dev TABLE"),
        ("runs/b/c/model/config.json", "albert-tf finetune runs/b/c/model --train TABLE --dev TABLE"),
        ("runs/nsmc/metrics.json", "albert-tf export runs/nsmc --name nsmc"),
        ("runs/better/metrics.json", "albert-tf export runs/better --name better"),
        ("saved_models/nsmc/1/saved_model.pb", "albert-tf serve saved_models"),
    ):
        write(tmp_path, path)
        os.utime(tmp_path / path, (next(times),) * 2)
        assert next_command(tmp_path).startswith(command)
    monkeypatch.chdir(tmp_path)
    printed = output_of()
    assert printed.index("train-tokenizer") < printed.index("pretrain") < printed.index("export")
    assert printed.endswith("Next, for what is in this folder:\n  albert-tf serve saved_models\n")
    assert max(map(len, printed.splitlines())) <= 80


def test_the_backend_is_named_where_it_cannot_be_used(monkeypatch, capsys):
    monkeypatch.setenv("KERAS_BACKEND", "jax")
    for command in ("pretrain a.toml --output b", "export a --name b"):
        assert mistake(*command.split()).endswith("needs KERAS_BACKEND=tensorflow. Received: jax; unset it.")
    assert "KERAS_BACKEND" not in mistake("predict", "a", "--data", "b.tsv")
    with pytest.raises(SystemExit), user_errors():
        raise ModuleNotFoundError(name="jax")
    assert capsys.readouterr().err == "albert-tf: jax is not installed; unset KERAS_BACKEND.\n"


def test_steps_are_commands_that_exist(tmp_path):
    commands = typer.main.get_command(app).commands
    shown = re.findall(r"albert-tf ([a-z][a-z-]+) ", output_of())
    assert len(shown) >= 9
    assert set(shown) <= set(commands)


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.NAME)
def test_every_help_has_an_example(command):
    assert f"Example: albert-tf {command.NAME}" in output_of(command.NAME, "--help")


@pytest.mark.parametrize(("typed", "expected"), [("fin", "finetune"), ("info --seq", "--sequence-length")])
def test_completion(typed, expected):
    words = f"albert-tf {typed}"
    process = start(
        *("-c", "import sys; sys.argv[0] = 'albert-tf'; from albert_tf.cli.app import main; main()"),
        COMP_WORDS=words,
        COMP_CWORD=str(len(words.split()) - 1),
        _ALBERT_TF_COMPLETE="complete_bash",
    )
    out, err = process.communicate(timeout=60)
    assert (out.split(), err) == ([expected], "")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_can_be_shown_and_installed(shell, monkeypatch, tmp_path):
    monkeypatch.setenv("_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION", "1")  # the shell is an argument then
    assert f"_ALBERT_TF_COMPLETE=complete_{shell}" in output_of("--show-completion", shell)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert f"{shell} completion installed" in output_of("--install-completion", shell)
    written = [file.read_text() for file in tmp_path.rglob("*") if file.is_file()]
    assert any(f"_ALBERT_TF_COMPLETE=complete_{shell}" in text for text in written)


def test_json(folders):
    costs = json.loads(output_of("info", "base_v2", "--json"))["costs"]
    assert costs["albert"]["parameters"]["embeddings"] > 0
    checks = json.loads(output_of("info", folders["pretrained"], "--check", "--json"))
    assert {check["name"] for check in checks if check["passed"]} > {"weights"}
