"""Output folders."""

import os
from pathlib import Path


def check_new_folder(folder: Path) -> None:
    """Raises ValueError unless `folder` is empty or can be created."""
    if folder.is_dir():
        if any(folder.iterdir()):
            raise ValueError(f"{folder} is not empty; use another folder, or empty this one.")
        parent = folder
    else:
        parent = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    if not parent.is_dir():
        raise ValueError(f"{folder} cannot be created, because {parent} is a file; use another folder.")
    if not os.access(parent, os.W_OK):
        raise ValueError(f"{folder} cannot be written ({parent} is read-only); use another folder.")
