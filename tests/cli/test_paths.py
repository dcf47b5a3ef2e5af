"""Proves that what could not be written, or was killed, can be written again by the same command."""

import signal
import subprocess
import sys

import pytest

from albert_tf.cli import paths
from tests.disk import full_disk

from .terminal import mistake, output_of


def write_files(folder, *names):
    paths.check_new_folder(folder)
    with paths.new_folder(folder) as written:
        for name in names:
            (written / name).write_text(name)


KILLED = """
import os, pathlib, signal, sys
from albert_tf.cli import paths

def move_one(*files):
    move(*files)
    os.kill(os.getpid(), signal.SIGKILL)

move, paths.move = paths.move, move_one
with paths.new_folder(pathlib.Path(sys.argv[1])) as written:
    for name in ("weights", "config.json"):
        (written / name).write_text(name)
"""


def test_files_of_a_killed_process_are_written_again(tmp_path):
    for folder in (tmp_path / "same", tmp_path / "other"):
        killed = subprocess.run([sys.executable, "-c", KILLED, str(folder)], check=False, capture_output=True)
        assert killed.returncode == -signal.SIGKILL, killed.stderr
        assert sorted(file.name.partition(".")[0] for file in folder.iterdir()) == ["", "weights"]
    write_files(tmp_path / "same", "weights", "config.json")
    assert sorted(file.name for file in (tmp_path / "same").iterdir()) == ["config.json", "weights"]
    with pytest.raises(ValueError, match="same is not empty; use another folder, or empty this one"):
        write_files(tmp_path / "same", "weights", "config.json")
    with pytest.raises(ValueError, match=r"other holds weights of another command, which was killed; empty it\."):
        write_files(tmp_path / "other", "config.json")


def test_a_vocabulary_that_did_not_fit_on_the_disk_is_trained_again(tmp_path):
    (tmp_path / "corpus.txt").write_text(
        "\n".join(f"some words {i} and letters {chr(97 + i % 26)}" for i in range(300))
    )
    call = ("train-tokenizer", tmp_path / "corpus.txt", "--output", tmp_path / "new", "--vocab-size", "70")
    with full_disk(300_000):  # room for the first file alone
        sentence = mistake(*call)
    assert f"{tmp_path}/new/tokenizer.json: could not write the file (File too large)" in sentence
    assert not (tmp_path / "new").exists()
    assert f"70 pieces in {tmp_path / 'new'}" in output_of(*call)
