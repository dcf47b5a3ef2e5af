"""Proves what can be proved of the container images without a container engine: files, extras, user, command."""

import fnmatch
import json
import pathlib
import re
import shlex
import shutil
import tomllib
import zipfile
from collections.abc import Iterator

import pytest
import typer.main

from albert_tf.cli.app import app

ROOT = pathlib.Path(__file__).parents[1]
IMAGES = ("training/launch/Dockerfile", "saved_models/Dockerfile")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def instructions(image: str) -> list[tuple[str, str]]:
    """Each instruction of a Dockerfile and its arguments."""
    lines = (ROOT / image).read_text(encoding="utf-8").replace("\\\n", " ").splitlines()
    return [tuple(line.split(maxsplit=1)) for line in lines if line and not line.startswith("#")]


def arguments_of(image: str, name: str) -> list[str]:
    return [arguments for instruction, arguments in instructions(image) if instruction == name]


def copied(image: str) -> Iterator[tuple[str, str]]:
    """The files of the checkout that an image copies, and where to."""
    for arguments in arguments_of(image, "COPY"):
        *sources, target = shlex.split(arguments)
        if not sources[0].startswith("--from"):
            yield from ((source, target) for source in sources)


def is_in_context(name: str) -> bool:
    """What .dockerignore says of a file; the last pattern that fits decides."""
    left_out = False
    for line in (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            pattern = line.lstrip("!")
            if fnmatch.fnmatch(name, pattern) or name.startswith(f"{pattern}/"):
                left_out = not line.startswith("!")
    return not left_out


@pytest.mark.parametrize("image", IMAGES)
def test_all_that_is_copied_is_there(image):
    sources = [source for source, _ in copied(image)]
    assert "albert_tf" in sources
    assert [source for source in sources if not (ROOT / source).exists() or not is_in_context(source)] == []
    for left_out in ("runs/mine", "tests/test_images.py", ".venv/bin/python", ".git/config"):
        assert not is_in_context(left_out)


@pytest.mark.parametrize("image", IMAGES)
def test_python_is_one_that_the_package_allows_and_nobody_is_root(image):
    bases = {base.split()[0] for base in arguments_of(image, "FROM")}
    assert bases == {"python:3.11-slim-bookworm"}
    assert PROJECT["requires-python"] == ">=3.11,<3.14"
    (user,) = arguments_of(image, "USER")
    assert int(user) > 0


def test_the_extras_of_the_image_for_training_exist():
    defaults = dict(argument.split("=", 1) for argument in arguments_of(IMAGES[0], "ARG"))
    extras = defaults["EXTRAS"].strip('"').split(",")
    assert "cloud" in extras
    assert set(extras) <= PROJECT["optional-dependencies"].keys()


@pytest.mark.parametrize(("image", "more"), [(IMAGES[0], ["info", "base_v2"]), (IMAGES[1], [])])
def test_the_command_of_an_image_is_understood(image, more):
    (entry,), command = arguments_of(image, "ENTRYPOINT"), arguments_of(image, "CMD")
    program, name, *arguments = [*json.loads(entry), *(json.loads(command[0]) if command else []), *more]
    assert program in PROJECT["scripts"]
    typer.main.get_command(app).commands[name].make_context(name, arguments)


@pytest.mark.exhaustive  # builds a wheel
def test_a_wheel_is_built_from_what_is_copied(run_python, tmp_path):
    for source, target in copied(IMAGES[0]):
        folder = tmp_path / target.strip("/")
        if (ROOT / source).is_dir():
            shutil.copytree(ROOT / source, folder, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            folder.mkdir(exist_ok=True)
            shutil.copy(ROOT / source, folder)
    run_python("-m", "build", "--wheel", "--no-isolation", "--outdir", tmp_path / "wheels", tmp_path / "source")
    (wheel,) = (tmp_path / "wheels").iterdir()
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    assert {"albert_tf/cli/app.py", "albert_tf/assets/30k-clean.model"} <= set(names)
    assert any(re.search(r"licenses/NOTICE$", name) for name in names)
