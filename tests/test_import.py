"""Proves that importing the package and asking for help are quick and load nothing heavy."""

import json

import pytest

import albert_tf

HEAVY = ("tensorflow", "tensorflow_text", "keras", "numpy", "sentencepiece", "matplotlib", "pydantic")
HEAVY += ("fsspec", "upath")
RUNS = 3

# Processor time of the whole process, its own start included: what else the machine does must not count.
TIMED = """
import json, sys, time
{statement}
modules = sorted({{name.split(".")[0] for name in sys.modules}})
print(json.dumps({{"seconds": time.process_time(), "modules": modules}}))
"""
HELP = """
import contextlib, io
from albert_tf.cli import app
sys.argv = ["albert-tf", "--help"]
with contextlib.redirect_stdout(io.StringIO()) as shown, contextlib.suppress(SystemExit):
    app.main()
assert "finetune" in shown.getvalue()
"""


def measure(run_python, statement):
    """The quickest of several runs, and what it had imported."""
    lines = [run_python("-c", TIMED.format(statement=statement)).stdout for _ in range(RUNS)]
    return min((json.loads(line.splitlines()[-1]) for line in lines), key=lambda result: result["seconds"])


@pytest.mark.parametrize(("statement", "limit"), [("import albert_tf", 0.2), (HELP, 0.5)], ids=["import", "help"])
def test_quick_and_light(statement, limit, run_python):
    result = measure(run_python, statement)
    assert "albert_tf" in result["modules"]
    assert not set(HEAVY) & set(result["modules"])
    assert result["seconds"] < limit


def test_every_public_name_resolves():
    assert dir(albert_tf) == sorted(albert_tf.__all__)
    for name in albert_tf.__all__:
        assert getattr(albert_tf, name) is not None, name
    assert albert_tf.AlbertConfig.from_preset("tiny").hidden_size == 128


def test_an_unknown_name():
    with pytest.raises(AttributeError, match="module 'albert_tf' has no attribute 'AlbertFor'"):
        albert_tf.AlbertFor  # noqa: B018


MISTAKES = """
from tests.cli.terminal import mistake
tables = ("--train", "{table}", "--dev", "{table}", "--output", "new")
assert "does not exist" in mistake("finetune", "nowhere", *tables)
assert "did you mean 'epochs'?" in mistake("finetune", "nowhere", *tables, "--recipe", "{recipe}")
assert "`task` must be one of" in mistake("finetune", "nowhere", *tables, "--task", "sequences")
assert "is not a run folder" in mistake("report", "nowhere")
for command in (["info", "--check"], ["evaluate", "--data", "{table}"], ["predict", "a"], ["export", "--name", "a"]):
    assert "does not exist" in mistake(command[0], "nowhere", *command[1:])
"""


def test_mistakes_are_reported_before_tensorflow_is_imported(tmp_path, run_python):
    (tmp_path / "a.tsv").write_text("text\tlabel\n")
    (tmp_path / "a.toml").write_text("epoch = 3\n")
    statement = "import sys\n" + MISTAKES.format(table=tmp_path / "a.tsv", recipe=tmp_path / "a.toml")
    result = json.loads(run_python("-c", TIMED.format(statement=statement)).stdout.splitlines()[-1])
    assert not {"tensorflow", "keras"} & set(result["modules"])
