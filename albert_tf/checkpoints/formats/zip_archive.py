"""Zip archives of weights; compressed ones are rejected, as small files could expand to large ones."""

import zipfile
from collections.abc import Iterable


def reject_compressed(archive: zipfile.ZipFile, names: Iterable[str]) -> None:
    """Raises ValueError if reading these entries could need more memory than the archive has bytes."""
    entries = [archive.getinfo(name) for name in names]
    # Python allocates the compressed and uncompressed sizes that an entry claims, before it reads.
    stored = all(
        entry.compress_type == zipfile.ZIP_STORED and entry.compress_size == entry.file_size for entry in entries
    )
    if not stored or sum(entry.file_size for entry in entries) > archive.start_dir:
        raise ValueError("it is compressed")
