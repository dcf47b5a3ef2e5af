"""A run that begins with text: what its recipe says of preparing is done in the run's own folder, once."""

import pathlib
from typing import TYPE_CHECKING

from albert_tf.data import PrepareOptions, prepare
from albert_tf.trainer.run_folder import claim_folder
from albert_tf.trainer.validation import checked

if TYPE_CHECKING:
    from albert_tf.trainer.recipe import Recipe

DATA_FOLDER = "data"


def prepare_texts(recipe: "Recipe", output: pathlib.Path, allow_changed: bool = False) -> "Recipe":
    """Tokenises the texts that a recipe names, to make examples of on the fly, and writes held-out examples.

    Args:
        recipe: Recipe; one that names no texts is returned as it is.
        output: folder of the run; its subfolder `data` is written, or found as the same call left it.
        allow_changed: bool. Whether the rest of the recipe may differ from that of the folder.

    Returns:
        The recipe with folders in place of texts.

    Raises:
        ValueError: where the options or the texts cannot be, or the folder has been made of others.
    """
    data = recipe.data
    if data.texts is None:
        return recipe
    if recipe.training.strategy == "multi_worker":
        raise ValueError(
            '`[data]` must name a folder where many machines train. Received: texts with strategy="multi_worker"; '
            "write one with `albert-tf prepare --format documents`."
        )
    folder = output / DATA_FOLDER
    documents, heldout = folder / "documents", folder / "heldout" if data.heldout_texts else data.heldout
    common = {**data.prepare, "tokenizer": data.tokenizer, "objective": data.objective}
    parts = [{**common, "inputs": data.texts, "output_dir": documents, "format": "documents"}]
    if data.heldout_texts:
        once = {"dupe_factor": 1, "num_shards": 1}
        parts.append({**common, "inputs": data.heldout_texts, "output_dir": heldout, **once})
    options = [checked(PrepareOptions, part, "[data.prepare]") for part in parts]  # before anything is written
    changes = {"texts": None, "heldout_texts": None, "prepare": {}, "documents": documents, "heldout": heldout}
    prepared = recipe.model_copy(update={"data": data.model_copy(update=changes)})
    claim_folder(output, prepared.model_dump(mode="json"), allow_changed)
    for one in options:
        prepare(one)
    return prepared
