"""Zip archives of weights, in which everything lies as it is: a small file must not unfold into a large one."""

import zipfile
from collections.abc import Iterable


def refuse_packed(archive: zipfile.ZipFile, names: Iterable[str]) -> None:
    """Raises a ValueError where reading these entries could need more memory than the archive has bytes."""
    entries = [archive.getinfo(name) for name in names]
    # Python sets aside as much as an entry claims to hold, packed and unpacked, before it reads.
    whole = all(
        entry.compress_type == zipfile.ZIP_STORED and entry.compress_size == entry.file_size for entry in entries
    )
    if not whole or sum(entry.file_size for entry in entries) > archive.start_dir:
        raise ValueError("it is compressed")
