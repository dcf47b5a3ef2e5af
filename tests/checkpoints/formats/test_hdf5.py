"""Proves that arrays come out of HDF5 files as they went in, and that no file leads the reader elsewhere."""

import io

import h5py
import numpy as np
import pytest

from albert_tf.checkpoints.formats.hdf5 import read_hdf5

TYPES = ("f2", "f4", "f8", ">f4", "i1", "i4", "i8", "u1", "u4")


def written(write, libver="earliest") -> bytes:
    content = io.BytesIO()
    with h5py.File(content, "w", libver=libver) as file:
        write(file)
    return content.getvalue()


# Newer files keep up to eight links in a group's header, and more in a heap.
@pytest.mark.parametrize("count", [0, 1, 8, 9, 300])
@pytest.mark.parametrize("libver", ["earliest", "v110", "latest"])
def test_what_was_written_is_read(libver, count):
    random = np.random.default_rng(0)
    arrays = {}
    for number in range(count):
        layer = f"layers/a_layer_with_a_long_name_{number}/vars"
        arrays[f"{layer}/0"] = random.integers(0, 100, (1 + number % 3, 2)).astype(TYPES[number % len(TYPES)])
        arrays[f"{layer}/1"] = np.float32(number)

    def write(file):
        for path, array in {**arrays, "optimizer/vars/0": np.zeros(2)}.items():
            file[path] = array

    found = read_hdf5(written(write, libver), skip="optimizer")
    assert set(found) == set(arrays)
    for path, array in arrays.items():
        np.testing.assert_array_equal(found[path], array, strict=True)


# === Files that lead elsewhere or hold something else ===

OUTSIDE, ELSEWHERE = "stored in another file", "not stored contiguously in this file"
UNSUPPORTED = "has an unsupported type"


def virtual(file):
    layout = h5py.VirtualLayout((4,), "f4")
    layout[:] = h5py.VirtualSource("other.h5", "a", (4,))
    file.create_virtual_dataset("a", layout)


def linked_twice(file):
    file["a"] = np.zeros(3, "f4")
    file["b"] = file["a"]


def its_own_parent(file):
    file.create_group("a")
    file["a/b"] = file["/"]


HOSTILE = {
    "external storage": (lambda file: file.create_dataset("a", (4,), "f4", external=[("secret", 0, 16)]), OUTSIDE),
    "virtual": (virtual, ELSEWHERE),
    "external link": (lambda file: file.update(a=h5py.ExternalLink("other.h5", "a")), "a soft or external link"),
    "soft link": (lambda file: file.update(a=h5py.SoftLink("/b")), "a soft or external link"),
    "compressed": (lambda file: file.create_dataset("a", (1000,), "f4", compression="gzip"), ELSEWHERE),
    "in chunks": (lambda file: file.create_dataset("a", (2**40,), "f4", chunks=True), ELSEWHERE),
    "not stored": (lambda file: file.create_dataset("a", (2**40,), "f4"), "is not stored completely"),
    "no values": (lambda file: file.create_dataset("a", (0, 2**40), "f4"), "has no values"),
    "linked twice": (linked_twice, "is linked twice"),
    "its own parent": (its_own_parent, "is linked twice"),
    "nested": (lambda file: file.create_group("/".join("a" * 100)), "nested too deeply"),
    "complex": (lambda file: file.update(a=np.ones(3, "c8")), UNSUPPORTED),
    "text": (lambda file: file.update(a="text"), UNSUPPORTED),
    "reference": (lambda file: file.create_dataset("a", data=file.ref, dtype=h5py.ref_dtype), UNSUPPORTED),
}


@pytest.mark.parametrize("libver", ["earliest", "latest"])
@pytest.mark.parametrize("kind", HOSTILE)
def test_what_is_refused(kind, libver, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "secret").write_bytes(np.arange(4, dtype="f4").tobytes())
    write, complaint = HOSTILE[kind]
    content = written(write, libver)
    with pytest.raises(ValueError, match=complaint):
        read_hdf5(content)


def test_a_heap_of_strings_without_an_end():
    content = bytearray(written(lambda file: file.create_group("a").attrs.__setitem__("name", "b")))
    free = content.index(b"GCOL") + 40  # what follows the one string of eight bytes
    assert int.from_bytes(content[free + 8 : free + 16], "little") == 4096 - 40
    content[free + 8 : free + 16] = bytes(8)
    with pytest.raises(ValueError, match="its strings are damaged"):
        read_hdf5(bytes(content))
