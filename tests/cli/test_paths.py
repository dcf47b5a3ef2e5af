"""Proves that what could not be written, or was killed, can be written again by the same command."""

import re

import pytest

from albert_tf.cli import paths
from tests.disk import full_disk

from .terminal import mistake, output_of


def write_files(folder, *names):
    paths.check_new_folder(folder)
    with paths.new_folder(folder) as written:
        for name in names:
            (written / name).write_text(name)


def test_what_a_killed_process_left_is_removed_and_other_files_are_refused(tmp_path):
    left = tmp_path / "new" / ".partial.01234567"
    left.mkdir(parents=True)
    (left / "weights").touch()
    write_files(tmp_path / "new", "weights", "config.json")
    assert sorted(file.name for file in (tmp_path / "new").iterdir()) == ["config.json", "weights"]
    with pytest.raises(ValueError, match="new is not empty; use another folder, or empty this one"):
        write_files(tmp_path / "new", "weights", "config.json")


def test_a_vocabulary_that_did_not_fit_on_the_disk_is_trained_again(tmp_path):
    (tmp_path / "corpus.txt").write_text(
        "\n".join(f"some words {i} and letters {chr(97 + i % 26)}" for i in range(300))
    )
    call = ("train-tokenizer", tmp_path / "corpus.txt", "--output", tmp_path / "new", "--vocab-size", "70")
    with full_disk(300_000):  # room for the first file alone
        sentence = mistake(*call)
    assert re.search(rf"{tmp_path}/new/\S+/tokenizer\.json: could not write the file \(File too large\)", sentence)
    assert not (tmp_path / "new").exists()
    assert f"70 pieces in {tmp_path / 'new'}" in output_of(*call)
