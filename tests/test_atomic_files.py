"""Files that appear complete or not at all, and locks that end with their process."""

import errno
import os
import subprocess
import sys

import pytest

from albert_tf.atomic_files import atomic_write, exclusive_lock, remove_temporary, sha256


def test_a_failed_write_leaves_the_old_file_and_names_it(tmp_path, monkeypatch):
    path = tmp_path / "model.bin"
    atomic_write(path, b"old")

    def full(descriptor):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match=r"could not write the file \(No space left on device\).*model.bin") as caught:
        atomic_write(path, b"new")
    assert caught.value.errno == errno.ENOSPC
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["model.bin"]


def test_what_a_killed_process_left_is_removed(tmp_path):
    (tmp_path / ".model.bin.abcd1234").write_bytes(b"half")
    atomic_write(tmp_path / "model.bin", b"whole")
    remove_temporary(tmp_path / "model.bin")
    assert os.listdir(tmp_path) == ["model.bin"]
    assert sha256(tmp_path / "model.bin").startswith("5d5766cf2d78")


def test_one_process_at_a_time(tmp_path):
    other = (
        "import pathlib, sys\n"
        "from albert_tf.atomic_files import exclusive_lock\n"
        "with exclusive_lock(pathlib.Path(sys.argv[1])): print('free')"
    )

    def run():
        return subprocess.run([sys.executable, "-c", other, str(tmp_path / "run")], capture_output=True, text=True)

    with exclusive_lock(tmp_path / "run"):
        assert "is being written by another process" in run().stderr
    assert run().stdout == "free\n"
