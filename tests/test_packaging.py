"""Proves what the wheel holds: the package alone, its data files, its command."""

import pathlib
import shutil
import zipfile

import pytest

import albert_tf

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
    assert f"{folder}/licenses/LICENSE" in wheel.namelist()
