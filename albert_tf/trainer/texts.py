"""A run that begins with text: what its recipe says of preparing is done in the run's own folder, once."""

import pathlib
from typing import TYPE_CHECKING

from albert_tf.data import PrepareOptions, prepare
from albert_tf.trainer.batches import check_length
from albert_tf.trainer.run_folder import DATA_FOLDER
from albert_tf.trainer.validation import checked

if TYPE_CHECKING:
    from albert_tf.trainer.recipe import Recipe

_DOCUMENTS, _HELD_OUT = "documents", "heldout"


def with_folders(recipe: "Recipe", output: pathlib.Path) -> "Recipe":
    """The recipe with folders of the run in place of the texts that it names, if it names any."""
    data = recipe.data
    if data.texts is None:
        return recipe
    changes = {"texts": None, "heldout_texts": None, "prepare": None, "documents": output / DATA_FOLDER / _DOCUMENTS}
    if data.heldout_texts is not None:
        changes["heldout"] = output / DATA_FOLDER / _HELD_OUT
    return recipe.model_copy(update={"data": data.model_copy(update=changes)})


def prepare_texts(recipe: "Recipe", output: pathlib.Path) -> None:
    """Tokenises the texts that a recipe names, to make examples of on the fly, and writes held-out examples.

    Args:
        recipe: Recipe; for one that names no texts there is nothing to do.
        output: folder of the run; its subfolder `data` is written, or found as the same call left it.

    Raises:
        ValueError: where the options or the texts cannot be, or the subfolder has been made of others.
    """
    data = recipe.data
    if data.texts is None:
        return
    if recipe.training.strategy == "multi_worker":
        raise ValueError(
            '`[data]` must name a folder where many machines train. Received: texts with strategy="multi_worker"; '
            "write one with `albert-tf prepare --format documents`."
        )
    folder = output / DATA_FOLDER
    common = {**(data.prepare or {}), "tokenizer": data.tokenizer, "objective": data.objective}
    parts = [{**common, "inputs": data.texts, "output_dir": folder / _DOCUMENTS, "format": "documents"}]
    if data.heldout_texts is not None:
        once = {"dupe_factor": 1, "num_shards": 1}
        parts.append({**common, "inputs": data.heldout_texts, "output_dir": folder / _HELD_OUT, **once})
    options = [checked(PrepareOptions, part, "[data.prepare]") for part in parts]  # before anything is written
    check_length(options[0].max_seq_length, recipe.config)
    for one in options:
        prepare(one)
