"""Proves that `albert-tf doctor` shows versions and devices, and says what keeps TensorFlow from being imported."""

import json

import pytest

from albert_tf.cli import doctor

from .terminal import output_of, run


@pytest.mark.exhaustive
def test_this_environment_is_sound():
    printed = output_of("doctor")
    names = ("machine", "python", "packages", "import", "devices", "attention")
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
