"""The recipes that ship, shrunk to four updates of a smaller model."""

import pathlib
import re

SMALLER = {
    "vocab_size": 900,
    "embedding_size": 8,
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 16,
}
SHORTER = {"num_train_steps": 4, "num_warmup_steps": 1, "log_every": 2, "evaluate_every": 4, "save_every": 4}


def shrink(recipe: pathlib.Path, folder: pathlib.Path) -> pathlib.Path:
    """Writes the shrunk recipe into a folder under its own name."""
    text = recipe.read_text(encoding="utf-8")
    text = text.replace("[model]", "\n".join(["[model]", *(f"{name} = {value}" for name, value in SMALLER.items())]))
    for name, value in SHORTER.items():
        text = re.sub(f"{name} = .*", f"{name} = {value}", text)
    file = folder / recipe.name
    file.write_text(text, encoding="utf-8")
    return file
