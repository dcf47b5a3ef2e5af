"""Reads the HDF5 files that Keras writes, and nothing outside them.

A file can point elsewhere: by soft and external links, by external storage, and by virtual datasets. Only hard links
and contiguous datasets of numbers are read, which are together no larger than the file.
"""

import io
import re
import struct
from collections.abc import Iterator

import h5py
import numpy as np

_MAX_DEPTH = 64
# h5py raises all of these for damaged files.
_DAMAGE = (OSError, RuntimeError, LookupError, TypeError, ValueError, OverflowError, MemoryError, struct.error)


def read_hdf5(content: bytes, skip: str = "") -> dict[str, np.ndarray]:
    """Reads a file's arrays by path, such as `layers/dense/vars/0`.

    Args:
        content: the file.
        skip: name of a top-level group to skip.

    Raises:
        ValueError: the file is damaged or has unsupported content.
    """
    arrays, bytes_left = {}, len(content)
    try:
        _check_heaps(content)
        with h5py.File(io.BytesIO(content), "r") as file:
            for path, node in _walk(file, "", skip, set()):
                if isinstance(node, h5py.Dataset):
                    bytes_left -= node.nbytes
                    arrays[path] = _array(path, node, bytes_left)
    except _DAMAGE as error:
        raise ValueError(" ".join(str(error).split())[:200]) from None
    return arrays


def _check_heaps(content: bytes) -> None:
    """Raises ValueError for a heap, of strings or virtual datasets, in which HDF5 would never get to the end."""
    for heap in re.finditer(b"GCOL\1", content):
        position = heap.start() + 16
        end = position - 16 + struct.unpack_from("<Q", content, position - 8)[0]
        while position + 16 <= min(end, len(content)):
            index, size = struct.unpack_from("<H6xQ", content, position)
            step = 16 + (size + 7) // 8 * 8 if index else size
            if not 0 < step <= end - position:
                raise ValueError("its strings are damaged")
            position += step


def _walk(group: h5py.Group, parent: str, skip: str, seen: set[int]) -> Iterator[tuple[str, h5py.HLObject]]:
    """Yields the path and object of everything below a group."""
    if parent.count("/") > _MAX_DEPTH:
        raise ValueError("its groups are nested too deeply")
    for name in map(str, group):
        path = f"{parent}/{name}" if parent else name
        if path == skip:
            continue
        if not isinstance(group.get(name, getlink=True), h5py.HardLink):
            raise ValueError(f"{path} is a soft or external link")
        node = group[name]
        address = h5py.h5o.get_info(node.id).addr  # pyright: ignore[reportAttributeAccessIssue]
        if address in seen:
            raise ValueError(f"{path} is linked twice")
        seen.add(address)
        yield path, node
        if isinstance(node, h5py.Group):
            yield from _walk(node, path, skip, seen)


def _array(path: str, dataset: h5py.Dataset, bytes_left: int) -> np.ndarray:
    if not dataset.size:  # whatever its other sizes are, which cost no bytes
        raise ValueError(f"{path} has no values")
    if dataset.external:
        raise ValueError(f"{path} is stored in another file")
    if dataset.id.get_create_plist().get_layout() != h5py.h5d.CONTIGUOUS:
        raise ValueError(f"{path} is not stored contiguously in this file")
    if dataset.dtype.kind not in "fiu":
        raise ValueError(f"{path} has an unsupported type")
    # Otherwise values that are not stored would be zeros, and need any amount of memory.
    if dataset.id.get_storage_size() != dataset.nbytes or bytes_left < 0:
        raise ValueError(f"{path} is not stored completely")
    return dataset[()]
