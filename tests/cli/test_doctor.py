"""Proves that `albert-tf doctor` shows versions and devices, and says what keeps TensorFlow from being imported."""

import pytest

from albert_tf.cli import doctor

from .terminal import mistake, output_of


@pytest.mark.exhaustive
def test_this_environment_is_sound_and_a_variable_is_not_blamed_on_tensorflow(monkeypatch):
    monkeypatch.setenv("TF_USE_LEGACY_KERAS", "1")
    monkeypatch.setenv("KERAS_BACKEND", "jax")
    printed = output_of("doctor")
    assert all(name in printed for name in ("machine", "python", "packages", "devices", "CPU", "attention"))


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        ('raise ImportError("libcudart.so is missing")', "(ImportError: libcudart.so is missing)"),
        ("import os; os.abort()", "(signal 6)"),
    ],
)
def test_tensorflow_that_cannot_be_imported(program, reason, tmp_path, monkeypatch):
    (tmp_path / "tensorflow.py").write_text(program)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    assert f"{reason}; pip install --force-reinstall 'tensorflow==2.21.*'" in mistake("doctor")


def test_an_environment_for_onnx_folders_is_sound(monkeypatch):
    version, missing = doctor._version, ("tensorflow", "tensorflow-text", "keras", "h5py", "matplotlib")
    monkeypatch.setattr(doctor, "_version", lambda package: None if package in missing else version(package))
    assert "only ONNX folders can be used" in output_of("doctor")
