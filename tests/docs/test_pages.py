"""The pages' examples run: Python as it stands, one page after the other; command lines too where a page says so."""

import os
import pathlib
import re
import shlex
import subprocess
import sys
import tomllib

import pytest
import typer.main

from albert_tf.cli.app import app
from docs import hooks
from tests.cli.terminal import output_of
from tests.parameters import first_of
from tests.small_pipeline import REPOSITORY

PAGES = sorted(str(page.relative_to(REPOSITORY)) for page in (REPOSITORY / "docs").rglob("*.md"))
KOREAN = [page for page in PAGES if page.endswith(".ko.md")]
GUIDES = [page for page in PAGES if page.startswith("docs/guides/") and page not in KOREAN]
# `<!-- run -->` above command lines: they run; `<!-- file NAME -->` above a block: it is written to this file first;
# `<!-- needs network -->` above Python: it is checked for its syntax alone.
_BLOCK = re.compile(r"^(?:<!-- (run|file|needs) ?(\S*) -->\n)?```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(page: str) -> list[tuple[str, str, str, str]]:
    """Mark, its argument, language and text of each block."""
    return _BLOCK.findall((REPOSITORY / page).read_text(encoding="utf-8"))


def command_lines(text: str) -> list[list[str]]:
    lines = text.replace("\\\n", " ").splitlines()
    return [shlex.split(line, comments=True) for line in lines if line.startswith("albert-tf ")]


def run_page(page: str, folder: pathlib.Path) -> int:
    """Runs what a page shows, in its order and with the names of its earlier blocks; returns the number of blocks."""
    names, count = {"__name__": "page"}, 0
    for mark, argument, language, text in blocks(page):
        if mark == "file":
            (folder / argument).write_text(text, encoding="utf-8")
        elif mark == "run" and "\ndone" in text:
            commands = {**os.environ, "PATH": f"{pathlib.Path(sys.executable).parent}:{os.environ['PATH']}"}
            subprocess.run(["bash", "-e", "-c", text], env=commands, check=True, capture_output=True)
        elif mark == "run":
            for _, *arguments in command_lines(text):
                output_of(
                    *(file for part in arguments for file in (sorted(folder.glob(part)) if "*" in part else [part]))
                )
        elif language == "python":
            code = compile(text, page, "exec")
            if mark != "needs":
                exec(code, names)
        else:
            continue
        count += 1
    return count


WITH_EXAMPLES = [page for page in PAGES if {"python", "run"} & {mark or name for mark, _, name, _ in blocks(page)}]


@pytest.mark.parametrize("page", first_of(sorted(WITH_EXAMPLES, key=lambda page: page != "docs/guides/masked-lm.md")))
def test_the_examples_run(page, tmp_path, monkeypatch):
    (tmp_path / "training").symlink_to(REPOSITORY / "training")
    monkeypatch.chdir(tmp_path)
    assert run_page(page, tmp_path) > 0


@pytest.mark.parametrize("page", PAGES)
def test_command_lines_are_understood(page):
    commands = typer.main.get_command(app).commands
    for *_, language, text in blocks(page):
        for _, name, *arguments in command_lines(text) if language == "bash" else ():
            commands[name].make_context(name, list(arguments))


def test_there_are_examples():
    kinds = [language for page in PAGES for *_, language, _ in blocks(page)]
    assert kinds.count("python") > 20
    assert kinds.count("bash") > 15
    assert len(GUIDES) == 20


@pytest.mark.parametrize("page", [*GUIDES, *KOREAN])
def test_a_page_begins_with_what_one_gets_and_ends_with_the_next_step(page):
    title, first, *_, last = (REPOSITORY / page).read_text(encoding="utf-8").strip().split("\n\n")
    assert title.startswith("# ")
    assert not first.startswith(("#", "<!--", "```"))
    assert last.startswith("다음 단계: " if page in KOREAN else "Next: ")
    assert "](" in last


def examples(page: str) -> list[tuple[str, str]]:
    """Language and text of each block of a page as the site shows it, without comments."""
    text = hooks.expand((REPOSITORY / page).read_text(encoding="utf-8"))
    return [(language, re.sub(r"\s+#.*|^#.*\n", "", block)) for *_, language, block in _BLOCK.findall(text)]


@pytest.mark.parametrize("page", KOREAN)
def test_a_korean_page_has_the_blocks_of_the_english_one(page):
    english = page.replace(".ko.md", ".md")
    assert examples(page) == examples(english)
    assert [mark for *mark, _, _ in blocks(page) if mark[0]] == [mark for *mark, _, _ in blocks(english) if mark[0]]


def test_korean_pages_are_there():
    names = ("concepts", "first-hour", "guides/korean", "guides/tpus", "index", "troubleshooting")
    assert [f"docs/{name}.ko.md" for name in names] == KOREAN


def test_every_extra_is_explained():
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    page = (REPOSITORY / "docs/first-hour.md").read_text(encoding="utf-8")
    table = "".join(line.split("|")[1] for line in page.splitlines() if line.startswith("| `"))
    assert set(re.findall(r"`(\w+)`", table)) == project["optional-dependencies"].keys() - {"dev"}


def test_an_example_that_fails_is_seen(tmp_path, monkeypatch):
    monkeypatch.setattr("tests.docs.test_pages.REPOSITORY", tmp_path)
    (tmp_path / "page.md").write_text("Text\n\n```python\nx = 1\n```\n\n```python\nassert x == 2\n```\n")
    with pytest.raises(AssertionError):
        run_page("page.md", tmp_path)
