"""`albert-tf convert`: converts a checkpoint of any format to Google's or Hugging Face's."""

import shutil
from pathlib import Path
from typing import Annotated, Literal

import typer

from albert_tf.cli.paths import check_new_folder, checkpoint_folder, new_folder
from albert_tf.files.json import has_file
from albert_tf.files.urls import location
from albert_tf.inference.progress import progress_line

NAME = "convert"


def run(
    source: Annotated[
        Path, typer.Argument(help="Folder, file or prefix of a checkpoint of any format, or OWNER/NAME.")
    ],
    folder: Annotated[Path, typer.Argument(help="Empty folder to write to; created if necessary.")],
    to: Annotated[Literal["google", "huggingface"], typer.Option(help="Format to write.")],
) -> None:
    """Converts a checkpoint to another format, with its vocabulary.

    Example: albert-tf convert albert_base_v2 converted --to huggingface
    """
    check_new_folder(folder)
    source = checkpoint_folder(source)
    with progress_line("convert"), new_folder(folder) as written:
        # These import TensorFlow, so only after the arguments were checked.
        from albert_tf import checkpoints
        from albert_tf.cli.checkpoint_checks import check_weights
        from albert_tf.tasks.settings import RECIPE_FILE, REPORT_FILE
        from albert_tf.tasks.table import SETTINGS_FILE

        checkpoint = checkpoints.read(source)
        check_weights(checkpoint)
        checkpoints.write(checkpoint, written, to)
        for record in filter(has_file, (source / name for name in (RECIPE_FILE, REPORT_FILE, SETTINGS_FILE))):
            shutil.copy(record, written)  # how `finetune` read texts, and its threshold
        vocabulary = _write_vocabulary(source, written, to)
    typer.echo(f"{len(checkpoint.arrays)} tensors in {location(folder)}, {vocabulary}")
    names = list(checkpoint.settings.get("id2label", {}).values())
    if to == "google" and names != [f"LABEL_{index}" for index in range(len(names))]:  # which stand for no names
        labels = ", ".join(map(str, names))
        typer.echo(
            f"Google's format has no names of labels: {labels} are lost; note them in this order, or convert to "
            "huggingface to keep them.",
            err=True,
        )


def _write_vocabulary(source: Path, folder: Path, to: str) -> str:
    """Writes the vocabulary, if there is one; returns a message."""
    from albert_tf.tokenization import AlbertTokenizer
    from albert_tf.tokenization.added_tokens_files import has_records
    from albert_tf.tokenization.files import CONFIG_FILE, MODEL_FILE, TOKENIZERS_FILE, vocabulary_of

    file = vocabulary_of(source)
    if file is None:
        return "no vocabulary found beside the source"
    if to == "huggingface":
        AlbertTokenizer.from_pretrained(file).save_pretrained(folder)
    elif file.name == TOKENIZERS_FILE or has_records(file):  # Google's code does not know added tokens
        AlbertTokenizer.from_pretrained(file).save_pretrained(folder)
        (folder / TOKENIZERS_FILE).unlink(missing_ok=True)
        if (folder / MODEL_FILE).is_file():
            (folder / MODEL_FILE).replace(folder / "30k-clean.model")
    else:
        shutil.copy(file, folder / ("vocab.txt" if file.suffix == ".txt" else "30k-clean.model"))
        # For loading the folder with albert_tf; Google's code ignores it.
        if has_file(options := file.with_name(CONFIG_FILE)):
            shutil.copy(options, folder)
    return f"vocabulary from {file}"
