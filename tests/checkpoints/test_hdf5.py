"""Proves that HDF5 files are read as the HDF5 library reads them, and that no file leads the reader elsewhere."""

import io
import time
import tracemalloc

import h5py
import numpy as np
import pytest

from albert_tf import AlbertEncoder, checkpoints
from albert_tf.checkpoints.formats.hdf5 import read_hdf5

from .test_keras_archive import CONFIG

TYPES = ("f2", "f4", "f8", "i1", "i4", "i8", "u1", "u4")


def written(write, libver="earliest") -> bytes:
    content = io.BytesIO()
    with h5py.File(content, "w", libver=libver) as file:
        write(file)
    return content.getvalue()


def read_by_the_library(content):
    arrays, names = {}, {}

    def visit(path, node):
        if isinstance(node, h5py.Dataset):
            arrays[path] = node[()]
        elif "name" in node.attrs:
            names[path] = node.attrs["name"]

    with h5py.File(io.BytesIO(content), "r") as file:
        file.visititems(visit)
    return arrays, names


# Eight links are the most that newer files keep in a group's header; 300 fill several blocks of its heap.
@pytest.mark.parametrize("count", [0, 1, 8, 9, 300])
@pytest.mark.parametrize("libver", ["earliest", "v110", "latest"])
def test_as_the_library_reads(libver, count):
    random = np.random.default_rng(0)

    def write(file):
        for number in range(count):
            group = file.create_group(f"layers/a_layer_with_a_long_name_{number}/vars")
            group.attrs["name"] = f"näme {number}"
            group["0"] = random.integers(0, 100, (number % 3, 2)).astype(TYPES[number % len(TYPES)])
            group["1"] = np.float32(number)
        file["optimizer/vars/0"] = np.zeros(2)

    content = written(write, libver)
    arrays, names = read_by_the_library(content)
    del arrays["optimizer/vars/0"]
    found = read_hdf5(content, skip="optimizer")
    assert found.names == names
    assert set(found.arrays) == set(arrays)
    for path, array in arrays.items():
        np.testing.assert_array_equal(found.arrays[path], array, strict=True)


# === Files that lead elsewhere or hold something else ===

OUTSIDE = "stored in another file"
ELSEWHERE = "not stored contiguously in this file"


def external(file):
    file.create_dataset("a", (4,), "f4", external=[("secret", 0, 16)])


def virtual(file):
    layout = h5py.VirtualLayout((4,), "f4")
    layout[:] = h5py.VirtualSource("other.h5", "a", (4,))
    file.create_virtual_dataset("a", layout)


def compressed(file):
    file.create_dataset("a", (1000,), "f4", compression="gzip")


def linked_twice(file):
    file["a"] = np.zeros(3, "f4")
    file["b"] = file["a"]


def its_own_parent(file):
    file.create_group("a")
    file["a/b"] = file["/"]


def nested(file):
    file.create_group("/".join("a" * 100))


HOSTILE = {
    "external storage": (external, OUTSIDE),
    "virtual": (virtual, ELSEWHERE),
    "external link": (
        lambda file: file.__setitem__("a", h5py.ExternalLink("other.h5", "a")),
        "a soft or external link",
    ),
    "soft link": (lambda file: file.__setitem__("a", h5py.SoftLink("/b")), "a soft or external link"),
    "compressed": (compressed, "is compressed"),
    "in chunks": (lambda file: file.create_dataset("a", (2**40,), "f4", chunks=True), ELSEWHERE),
    "not stored": (lambda file: file.create_dataset("a", (2**40,), "f4"), "is not stored completely"),
    "linked twice": (linked_twice, "is linked twice"),
    "its own parent": (its_own_parent, "is linked twice"),
    "nested": (nested, "nested too deeply"),
    "complex": (lambda file: file.__setitem__("a", np.ones(3, "c8")), "has an unsupported type"),
    "text": (lambda file: file.__setitem__("a", "text"), "has an unsupported type"),
    "reference": (
        lambda file: file.create_dataset("a", data=file.ref, dtype=h5py.ref_dtype),
        "has an unsupported type",
    ),
    "big-endian": (lambda file: file.__setitem__("a", np.ones(3, ">f4")), "has an unsupported type"),
    "name is a number": (lambda file: file.create_group("a").attrs.__setitem__("name", 5), "is not a string"),
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


def test_no_other_file_becomes_weights(tmp_path):
    model = AlbertEncoder(CONFIG)
    model.save_pretrained(tmp_path)
    (tmp_path / "model.safetensors").unlink()
    model.save_weights(tmp_path / "model.weights.h5")
    secret = tmp_path / "secret"
    secret.write_bytes(np.arange(16, dtype="f4").tobytes())
    with h5py.File(tmp_path / "model.weights.h5", "a") as file:
        shapes = {}
        file.visititems(lambda path, node: shapes.update({path: getattr(node, "shape", None)}))
        path = next(path for path, shape in shapes.items() if shape == (16,))
        del file[path]
        file.create_dataset(path, (16,), "f4", external=[(str(secret), 0, 64)])
    with pytest.raises(ValueError, match=r"model\.weights\.h5.* is compressed or stored in another file"):
        checkpoints.read(tmp_path / "model.weights.h5")


def test_tables_that_overlap_take_no_time():
    # A header whose continuations all cover the same bytes: read one by one they would be a million million bytes.
    content = bytearray(written(lambda file: file.__setitem__("a", np.zeros(10**5, "u1"))))
    start = content.index(b"OHDR") if b"OHDR" in content else int.from_bytes(content[64:72], "little") + 16
    end = len(content)
    message = (16).to_bytes(2, "little") + (16).to_bytes(2, "little") + bytes(4)
    blocks = message + start.to_bytes(8, "little") + (end - start).to_bytes(8, "little")
    content[start:end] = (blocks * ((end - start) // len(blocks) + 1))[: end - start]
    tracemalloc.start()
    began = time.process_time()
    with pytest.raises(ValueError, match="its tables are damaged"):
        read_hdf5(bytes(content))
    assert time.process_time() - began < 5
    assert tracemalloc.get_traced_memory()[1] < 50 * len(content)
    tracemalloc.stop()
