"""Files that appear complete or not at all, and locks that end with their process."""

import errno
import os
import stat
import subprocess
import sys

import pytest

from albert_tf.export.versions import publish
from albert_tf.files.atomic import (
    atomic_open,
    atomic_write,
    exclusive_lock,
    remove_temporary,
    sha256,
    temporary_folder,
    write_json,
)
from tests.disk import full_disk


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


@pytest.mark.parametrize("umask", [0o022, 0o077])
def test_the_umask_limits_who_may_read_a_file_or_folder(tmp_path, umask):
    before = os.umask(umask)
    try:
        atomic_write(tmp_path / "model.bin", b"private")
        with temporary_folder(tmp_path / "task" / "1") as partial:
            publish(partial, tmp_path / "task" / "1")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "model.bin").stat().st_mode) == 0o666 & ~umask
    assert stat.S_IMODE((tmp_path / "task" / "1").stat().st_mode) == 0o777 & ~umask


def test_json_is_indented_and_may_hold_lone_surrogates(tmp_path):
    write_json(tmp_path / "a.json", {"b": ["\ud800"], "a": 1}, indent=1, sort_keys=True, ensure_ascii=False)
    written = (tmp_path / "a.json").read_bytes().decode("utf-8", "surrogatepass")
    assert written == '{\n "a": 1,\n "b": [\n  "\ud800"\n ]\n}\n'


def test_one_process_at_a_time(tmp_path):
    other = (
        "import pathlib, sys\n"
        "from albert_tf.files.atomic import exclusive_lock\n"
        "with exclusive_lock(pathlib.Path(sys.argv[1])): print('free')"
    )

    def run():
        return subprocess.run([sys.executable, "-c", other, str(tmp_path / "run")], capture_output=True, text=True)

    with exclusive_lock(tmp_path / "run"):
        assert "is being written by another process" in run().stderr
    assert run().stdout == "free\n"


def fail_half_way(path):
    with atomic_open(path) as file:
        file.write(b"half")
        file.flush()
        assert not path.exists()
        raise RuntimeError


def test_nothing_appears_before_the_end_or_after_an_error(tmp_path):
    with pytest.raises(RuntimeError):
        fail_half_way(tmp_path / "shard")
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_does_not_fit_leaves_nothing(tmp_path):
    expected = r"could not write the file \(File too large\): "
    with pytest.raises(OSError, match=expected), full_disk(100_000), atomic_open(tmp_path / "shard") as file:
        file.write(bytes(3_000_000))
    assert list(tmp_path.iterdir()) == []


WRITER = (
    "import pathlib, sys, time\n"
    "from albert_tf.files.atomic import atomic_open, temporary_folder\n"
    "path = pathlib.Path(sys.argv[1])\n"
    "with atomic_open(path) as file, temporary_folder(path) as folder:\n"
    "    (folder / 'part').write_bytes(b'half')\n"
    "    print('writing', flush=True)\n"
    "    time.sleep(600)\n"
)


def test_what_a_killed_writer_left_is_removed_by_the_next_one(tmp_path):
    path = tmp_path / "model [1].bin"
    writer = subprocess.Popen([sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE, text=True)
    try:
        assert writer.stdout.readline() == "writing\n"
        atomic_write(path, b"whole")
        remove_temporary(tmp_path / "*")
        assert len(os.listdir(tmp_path)) == 3, "what a living process writes stays"
    finally:
        writer.kill()
        writer.communicate()
    atomic_write(path, b"whole")
    assert os.listdir(tmp_path) == ["model [1].bin"]
    assert sha256(path).startswith("5d5766cf2d78")


def test_a_temporary_folder_is_removed_whatever_happens(tmp_path):
    def fail():
        with temporary_folder(tmp_path / "new" / "1") as folder:
            (folder / "part").mkdir()
            raise OSError("no space")

    with pytest.raises(OSError, match="no space"):
        fail()
    assert os.listdir(tmp_path) == []


def test_a_folder_made_for_a_lock_goes_again_unless_something_is_in_it(tmp_path):
    with exclusive_lock(tmp_path / "empty"):
        assert (tmp_path / "empty").is_dir()
    with exclusive_lock(tmp_path / "used"):
        (tmp_path / "used/file").write_text("mine")
    assert [path.name for path in tmp_path.iterdir()] == ["used"]
    with pytest.raises(ValueError, match="file is a file; give another folder"), exclusive_lock(tmp_path / "used/file"):
        pass
