"""Proves what the wheel holds: the package alone, its data files, its command."""

import itertools
import pathlib
import re
import shutil
import tomllib
import zipfile

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import albert_tf
from tools.release.install import PYTHONS

ROOT = pathlib.Path(__file__).parents[1]


@pytest.fixture(scope="module")
def wheel(run_python, tmp_path_factory):
    """The wheel, built from a copy of what the repository tracks, so that no build folder is left in it."""
    source, target = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("wheel")
    shutil.copytree(ROOT / "albert_tf", source / "albert_tf", ignore=shutil.ignore_patterns("__pycache__"))
    for path in ROOT.iterdir():
        if path.is_file() and not path.name.startswith("."):
            shutil.copy(path, source)
    run_python("-m", "build", "--wheel", "--no-isolation", "--outdir", target, source)
    (built,) = target.iterdir()
    with zipfile.ZipFile(built) as archive:
        yield archive


def test_only_the_package_is_installed(wheel):
    tops = {name.split("/")[0] for name in wheel.namelist()}
    assert tops == {"albert_tf", f"albert_tf-{albert_tf.__version__}.dist-info"}


def test_every_module_and_data_file_is_there(wheel):
    package = ROOT / "albert_tf"
    wanted = {path for path in package.rglob("*") if path.is_file() and "__pycache__" not in path.parts}
    assert {path.relative_to(ROOT).as_posix() for path in wanted} <= set(wheel.namelist())
    assert "albert_tf/py.typed" in wheel.namelist()
    assert wheel.getinfo("albert_tf/assets/30k-clean.model").file_size == 760289


def test_metadata(wheel):
    folder = f"albert_tf-{albert_tf.__version__}.dist-info"
    metadata = wheel.read(f"{folder}/METADATA").decode()
    assert f"\nVersion: {albert_tf.__version__}\n" in metadata
    assert "\nLicense-Expression: Apache-2.0\n" in metadata
    assert "albert-tf = albert_tf.cli.app:main" in wheel.read(f"{folder}/entry_points.txt").decode()
    for name in ("LICENSE", "NOTICE", "albert_tf/assets/LICENSE.30k-clean.txt"):
        assert f"{folder}/licenses/{name}" in wheel.namelist()


def test_the_citation_names_this_version():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert citation["version"] == albert_tf.__version__
    assert {"cff-version", "title", "message", "authors", "license"} <= citation.keys()


def test_the_notice_names_what_is_by_others():
    notice = (ROOT / "NOTICE").read_text(encoding="utf-8")
    named = [line for line in notice.splitlines() if "/" in line and not line.startswith(" ")]
    assert all((ROOT / line).exists() for line in named)
    assert {"albert_tf/assets/30k-clean.model", "training/sample_data/novels", "training/sample_data/nsmc"} <= set(
        named
    )
    assert {path.name for path in (ROOT / "training/sample_data").iterdir() if path.is_dir()} == {"novels", "nsmc"}


def test_every_supported_python_is_checked_and_tried():
    """`make lint` checks workflows against GitHub's schema."""
    for name in ("ci", "nightly"):
        workflow = yaml.safe_load((ROOT / f".github/workflows/{name}.yml").read_text())
        assert workflow["jobs"]["check"]["strategy"]["matrix"]["python"] == list(PYTHONS)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    oldest, newest = (int(version.partition(".")[2]) for version in (min(PYTHONS), max(PYTHONS)))
    assert project["requires-python"] == f">=3.{oldest},<3.{newest + 1}"


@pytest.mark.parametrize("version", PYTHONS)
@pytest.mark.parametrize("platform", ["linux", "darwin"])
def test_locked_versions_fit(version, platform):
    """`make lock` writes them."""
    environment = {"python_version": version, "python_full_version": f"{version}.9", "sys_platform": platform}
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pins = [Requirement(line) for line in lines if not line.startswith("#")]
    locked = {pin.name: pin.specifier for pin in pins if not pin.marker or pin.marker.evaluate(environment)}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = [*project["dependencies"], *itertools.chain(*project["optional-dependencies"].values())]
    for requirement in map(Requirement, wanted):
        if requirement.name != "albert-tf":
            (pin,) = locked[canonicalize_name(requirement.name)]
            assert pin.operator == "=="
            assert requirement.specifier.contains(pin.version), f"{requirement}, but locked is {pin}; run `make lock`"


def test_only_a_tag_is_published():
    text = (ROOT / ".github/workflows/release.yml").read_text()
    workflow = yaml.safe_load(text)
    assert workflow[True] == {"push": {"tags": ["v*"]}}  # YAML reads `on` as true
    publish = workflow["jobs"]["publish"]
    assert (publish["needs"], publish["permissions"]) == ("build", {"id-token": "write"})
    assert any(step.get("uses", "").startswith("pypa/gh-action-pypi-publish@") for step in publish["steps"])
    assert "secrets." not in text


def test_the_newest_changes_are_of_this_version():
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.search(r"^## \[(.*?)\]", changelog, re.MULTILINE)[1] in (albert_tf.__version__, "Unreleased")


@pytest.mark.parametrize("file", sorted((ROOT / ".github/ISSUE_TEMPLATE").glob("*_*.yml")), ids=lambda file: file.stem)
def test_issue_templates_are_forms(file):
    form = yaml.safe_load(file.read_text(encoding="utf-8"))
    assert form["name"]
    assert form["description"]
    assert all(part["type"] in ("textarea", "checkboxes") and part["attributes"]["label"] for part in form["body"])
