"""Tests of the whole command line: help, completion, examples, JSON, colours, and silence."""

import json

import pytest

from albert_tf.cli.app import COMMANDS
from albert_tf.cli.session import user_errors

from .terminal import mistake, output_of, run
from .test_session import start


def test_the_backend_is_named_where_it_cannot_be_used(monkeypatch, capsys):
    monkeypatch.setenv("KERAS_BACKEND", "jax")
    for command in ("pretrain a.toml --output b", "export a --name b"):
        assert mistake(*command.split()).endswith("needs KERAS_BACKEND=tensorflow. Received: jax; unset it.")
    assert "KERAS_BACKEND" not in mistake("predict", "a", "--data", "b.tsv")
    with pytest.raises(SystemExit), user_errors():
        raise ModuleNotFoundError(name="jax")
    assert capsys.readouterr().err == "albert-tf: jax is not installed; unset KERAS_BACKEND.\n"


def test_help_names_the_commands_in_their_order():
    code, _, printed = run()
    assert code == 2
    places = [printed.index(f"  {command.NAME} ") for command in COMMANDS]
    assert places == sorted(places)


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.NAME)
def test_every_help_has_an_example(command):
    assert f"Example: albert-tf {command.NAME}" in output_of(command.NAME, "--help")


def test_completion():
    words = "albert-tf info --seq"
    process = start(
        *("-c", "import sys; sys.argv[0] = 'albert-tf'; from albert_tf.cli.app import main; main()"),
        COMP_WORDS=words,
        COMP_CWORD="2",
        _ALBERT_TF_COMPLETE="complete_bash",
    )
    out, err = process.communicate(timeout=60)
    assert (out.split(), err) == (["--sequence-length"], "")


def test_json():
    costs = json.loads(output_of("info", "base_v2", "--json"))["costs"]
    assert costs["albert"]["parameters"]["embeddings"] > 0
