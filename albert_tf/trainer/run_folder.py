"""The folder of a run: one recipe each, so that a run can be taken up again by the same command and by no other."""

import json
import pathlib
import warnings
from collections.abc import Mapping
from typing import Any

from albert_tf.atomic_files import atomic_write

RECIPE_FILE = "recipe.json"
DATA_FOLDER = "data"  # what a run that begins with text makes of it


def claim_folder(folder: pathlib.Path, recipe: Mapping[str, Any]) -> None:
    """Makes the folder and writes its recipe there, or checks that the one there is the same; raises as the check."""
    check_folder(folder, recipe)
    write_recipe(folder, recipe)


def check_folder(folder: pathlib.Path, recipe: Mapping[str, Any], allow_changed: bool | None = None) -> None:
    """Checks that a folder is free for a recipe, or its own; writes nothing.

    Args:
        folder: it may not exist.
        recipe: values that JSON can hold.
        allow_changed: whether to go on, with a warning, where the recipe there is another; None where nobody may ask
            for that.

    Raises:
        ValueError: where the folder belongs to another recipe, saying what differs, or holds something else.
    """
    file = folder / RECIPE_FILE
    wanted = json.loads(json.dumps(recipe))
    if file.is_file():
        found = differences(json.loads(file.read_text(encoding="utf-8")), wanted)
        if found and not allow_changed:
            cure = "remove this one" if allow_changed is None else "go on with the changes by `--allow-changed`"
            raise ValueError(
                f"The output folder must belong to this recipe. Received: {folder}, which differs in "
                f"{'; '.join(found[:5])}; give another folder, or {cure}."
            )
        if found:
            warnings.warn(f"The recipe of {folder} changes: {'; '.join(found)}.", stacklevel=2)
        return
    if folder.exists() and (not folder.is_dir() or _others(folder)):
        raise ValueError(f"The output folder must be new or empty. Received: {folder}, which holds other things.")


def write_recipe(folder: pathlib.Path, recipe: Mapping[str, Any]) -> None:
    """Writes what the folder is for, unless that stands there; the folder is made if it does not exist."""
    folder.mkdir(parents=True, exist_ok=True)
    file, content = folder / RECIPE_FILE, (json.dumps(recipe, indent=2, sort_keys=True) + "\n").encode()
    if not (file.is_file() and file.read_bytes() == content):
        atomic_write(file, content)


def _others(folder: pathlib.Path) -> bool:
    """Whether a folder holds anything but prepared texts and a recipe whose writing was cut short."""
    names = (path.name for path in folder.iterdir())
    return any(name != DATA_FOLDER and not name.startswith(f".{RECIPE_FILE}.") for name in names)


def differences(there: Any, here: Any, where: str = "") -> list[str]:
    """Where two nested records differ, each in a few words."""
    if isinstance(there, dict) and isinstance(here, dict):
        keys = sorted({*there, *here})
        found = [differences(there.get(key), here.get(key), f"{where}.{key}" if where else key) for key in keys]
        return [difference for some in found for difference in some]
    return [] if there == here else [f"{where} (there {there!r}, here {here!r})"]
