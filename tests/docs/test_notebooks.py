"""The notebooks run, in small, from top to bottom; what is kept in them are the outputs of a complete run."""

import json
import os
import re
import subprocess
import sys

import pytest

from tests.small_pipeline import REPOSITORY

NOTEBOOKS = sorted((REPOSITORY / "docs/notebooks").glob("*.ipynb"))


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", ["compare", "finetune"])  # which runs pretrain first, whose model it needs
def test_it_runs(name, tmp_path):
    options = ("-p", "no:cacheprovider", "--override-ini", "addopts=", "--nbmake-timeout=400")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "--nbmake", *options, f"docs/notebooks/{name}.ipynb"],
        cwd=REPOSITORY,
        env={
            **os.environ,
            "NOTEBOOK_SMALL": str(tmp_path),
            "PYTHONPATH": str(REPOSITORY),
            "JUPYTER_PLATFORM_DIRS": "1",
        },
        capture_output=True,
        text=True,
        timeout=460,
    )
    assert done.returncode == 0, done.stdout[-3000:]
    assert "1 passed" in done.stdout
    assert (tmp_path / "run/results.json").exists() == (name == "finetune")


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda file: file.stem)
def test_outputs_are_kept(notebook):
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    outputs = [output for cell in cells for output in cell.get("outputs", ())]
    assert all(cell["execution_count"] for cell in cells if cell["cell_type"] == "code")
    assert not [output for output in outputs if output["output_type"] == "error"]
    assert sum("image/png" in output.get("data", {}) for output in outputs) >= 2
    assert not re.search(r"/\w+/[\w./]*runs/", json.dumps(outputs))  # no path of the machine
    assert notebook.stat().st_size < 300_000


def first_code(notebook) -> str:
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    return "".join(next(cell["source"] for cell in cells if cell["cell_type"] == "code"))


@pytest.fixture(scope="module")
def install():
    """The first cell, which is the same in all."""
    (code,) = {first_code(notebook) for notebook in NOTEBOOKS}
    return code


def test_where_the_project_is_nothing_is_installed(install, monkeypatch):
    monkeypatch.chdir(REPOSITORY / "docs/notebooks")
    monkeypatch.setattr(subprocess, "run", lambda *command, **_: pytest.fail(f"{command} was run"))
    names = {}
    exec(install, names)
    assert names["root"] == REPOSITORY


def test_elsewhere_the_project_is_fetched(install, tmp_path, monkeypatch):
    published, here = tmp_path / "published", tmp_path / "here"
    (published / "albert_tf").mkdir(parents=True)
    (published / "albert_tf/py.typed").touch()
    here.mkdir()
    author = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    for command in (("init", "--quiet"), ("add", "."), (*author, "commit", "--quiet", "--message", "All")):
        subprocess.run(["git", *command], cwd=published, check=True)
    monkeypatch.chdir(here)
    monkeypatch.setattr("builtins.input", lambda question: published.as_uri())
    for _ in range(2):  # a second run of the cell finds it
        names = {}
        exec(install, names)
        assert (names["root"] / "albert_tf/py.typed").is_file()
    assert names["root"].parent == here


def test_there_are_three():
    assert [file.stem for file in NOTEBOOKS] == ["compare", "finetune", "pretrain"]
