"""Proves that `albert-tf doctor` finds what breaks an installation, and names a cure for each."""

import json

import pytest

from albert_tf.cli import doctor

from .terminal import output_of, run


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """Adds the metadata of packages, as pip writes them, before those that are there."""

    def add(name: str, version: str, *requirements: str) -> None:
        folder = tmp_path / f"{name.replace('-', '_')}-{version}.dist-info"
        folder.mkdir()
        lines = ["Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}"]
        lines += [f"Requires-Dist: {requirement}" for requirement in requirements]
        (folder / "METADATA").write_text("\n".join(lines) + "\n")

    monkeypatch.syspath_prepend(tmp_path)
    return add


@pytest.mark.exhaustive
def test_this_environment_is_sound():
    printed = output_of("doctor")
    names = ("machine", "python", "cores", "packages", "requirements", "conflicts", "import", "devices", "attention")
    assert all(name in printed for name in names)
    assert "wrong" not in printed
    assert "CPU" in printed


def test_tensorflow_that_cannot_be_imported(tmp_path, monkeypatch):
    (tmp_path / "tensorflow.py").write_text('raise ImportError("libcudart.so is missing")')
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    code, printed, complaint = run("doctor", "--json")
    assert (code, complaint) == (2, "")
    (failed,) = (check for check in json.loads(printed) if not check["passed"])
    assert "(ImportError: libcudart.so is missing)" in failed["finding"]
    assert "; pip install --force-reinstall 'tensorflow==2.21.*'" in failed["finding"]


def test_tensorflow_that_crashes(tmp_path, monkeypatch):
    (tmp_path / "tensorflow.py").write_text("import os; os.abort()")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    (check,) = doctor._tensorflow()
    assert "(signal 6)" in check.finding


@pytest.mark.exhaustive
def test_a_variable_is_not_blamed_on_tensorflow(monkeypatch):
    monkeypatch.setenv("TF_USE_LEGACY_KERAS", "1")
    monkeypatch.setenv("KERAS_BACKEND", "jax")
    assert all(finding.passed for finding in doctor._tensorflow())


def test_an_environment_for_onnx_folders_is_sound(monkeypatch):
    version, missing = doctor._version, ("tensorflow", "tensorflow-text", "keras", "h5py", "matplotlib")
    monkeypatch.setattr(doctor, "_version", lambda package: None if package in missing else version(package))
    checks = list(doctor.examine())
    assert all(check.passed for check in checks)
    assert any("ONNX folders can be used" in check.finding for check in checks)


def test_requirements(installed):
    installed("protobuf", "3.20.0")
    installed("keras", "3.99.0")
    installed("tensorflow-text", "2.20.1")
    needed = dict(doctor._requirements(complete=True))
    assert any("but 3.20.0 is installed" in finding for finding in needed)
    assert any(cure.startswith("pip install 'protobuf") for cure in needed.values())
    assert any(cure.startswith("pip install 'tensorflow-text") for cure in needed.values())
    assert any(finding.startswith("albert-tf needs keras") for finding in needed)


@pytest.mark.parametrize(
    ("package", "version", "cure"),
    [
        ("tensorflow-cpu", "2.21.0", "pip uninstall tensorflow-cpu, then pip install"),
        ("tensorflow-addons", "0.23.0", "pip uninstall tensorflow-addons; albert_tf.optimizers.Lamb"),
    ],
)
def test_conflicting_packages(installed, package, version, cure):
    assert dict(doctor._conflicts()) == {}
    installed(package, version)
    (shown,) = dict(doctor._conflicts()).values()
    assert shown.startswith(cure)


def test_tensorflow_hub_needs_old_setuptools(installed):
    installed("tensorflow-hub", "0.16.1")
    installed("setuptools", "82.0.0")
    assert list(dict(doctor._conflicts()).values()) == ["pip install 'setuptools<81'"]


def test_variables_and_settings(tmp_path, monkeypatch):
    monkeypatch.setenv("TF_USE_LEGACY_KERAS", "1")
    monkeypatch.setenv("KERAS_BACKEND", "jax")
    assert list(dict(doctor._conflicts()).values()) == [
        "unset TF_USE_LEGACY_KERAS",
        "unset KERAS_BACKEND, or correct keras.json in ~/.keras",
    ]
    monkeypatch.delenv("TF_USE_LEGACY_KERAS")
    monkeypatch.delenv("KERAS_BACKEND")
    monkeypatch.setenv("KERAS_HOME", str(tmp_path))
    (tmp_path / "keras.json").write_text('{"backend": "torch"}')
    (finding,) = dict(doctor._conflicts())
    assert finding.startswith("the backend of Keras is torch")
