"""The folder of a run: one recipe each, so that a run can be taken up again by the same command and by no other."""

import json
import pathlib
from collections.abc import Mapping
from typing import Any

from albert_tf.checkpoints import write_whole

RECIPE_FILE = "recipe.json"


def claim_folder(folder: pathlib.Path, recipe: Mapping[str, Any]) -> None:
    """Makes the folder and writes its recipe there, or checks that the one there is the same.

    Args:
        folder: made if it does not exist.
        recipe: values that JSON can hold.

    Raises:
        ValueError: where the folder belongs to another recipe, saying what differs, or holds something else.
    """
    file = folder / RECIPE_FILE
    wanted = json.loads(json.dumps(recipe))
    if file.is_file():
        differences = _differences(json.loads(file.read_text(encoding="utf-8")), wanted)
        if differences:
            raise ValueError(
                f"The output folder must belong to this recipe. Received: {folder}, which differs in "
                f"{'; '.join(differences[:5])}; give another folder, or remove this one."
            )
        return
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ValueError(f"The output folder must be new or empty. Received: {folder}, which holds other things.")
    folder.mkdir(parents=True, exist_ok=True)
    write_whole(file, (json.dumps(wanted, indent=2, sort_keys=True) + "\n").encode())


def _differences(old: Any, new: Any, where: str = "") -> list[str]:
    if isinstance(old, dict) and isinstance(new, dict):
        keys = sorted({*old, *new})
        found = [_differences(old.get(key), new.get(key), f"{where}.{key}" if where else key) for key in keys]
        return [difference for some in found for difference in some]
    return [] if old == new else [f"{where} (there {old!r}, here {new!r})"]
