"""Fine-tuning runs of a tiny model on the moods of texts, for several tests."""

import csv
import pathlib

from albert_tf.trainer import FinetuneOptions
from tests.toy_task import write_mood_table, write_pretrained


def write_files(folder: pathlib.Path) -> pathlib.Path:
    """A pretrained model, and tables of 320, 100 and 40 texts."""
    write_pretrained(folder / "pretrained")
    write_mood_table(folder / "train.tsv", 320, seed=1)
    write_mood_table(folder / "dev.tsv", 100, seed=2)
    write_mood_table(folder / "few.tsv", 40, seed=3)
    return folder


def options_for(files: pathlib.Path, output: pathlib.Path, **changes) -> FinetuneOptions:
    """Options of a short run."""
    values = {
        "pretrained": files / "pretrained",
        "train": files / "few.tsv",
        "dev": files / "few.tsv",
        "output": output,
    }
    return FinetuneOptions(**{**values, "epochs": 1, "batch_size": 16, **changes})


def predictions(folder: pathlib.Path) -> list[dict[str, str]]:
    """The rows of the predictions that a run wrote."""
    with (folder / "dev_predictions.tsv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t"))
