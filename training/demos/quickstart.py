"""Quickstart (`make quickstart`): all steps from seven novels to an exported model."""

import importlib.util
import pathlib
import shlex
import time
from typing import Annotated, Any

import typer
from novels import write_texts
from steps import (
    REPOSITORY,
    Folders,
    finetune_classifiers,
    pretrain_model,
    print_beside,
    print_results,
    run_demo,
    step,
    train_vocabulary,
    write_examples,
)

from albert_tf import export, pipeline, report, trainer


def quickstart(
    output: Annotated[pathlib.Path, typer.Option(help="Folder to write.")] = pathlib.Path("runs/quickstart"),
    data: Annotated[pathlib.Path, typer.Option(help="Folder of novels.")] = REPOSITORY / "training/sample_data/novels",
    recipe: Annotated[pathlib.Path, typer.Option(help="Pretraining recipe.")] = (
        REPOSITORY / "training/recipes/quickstart.toml"
    ),
) -> None:
    """Trains a vocabulary, pretrains, fine-tunes, exports and predicts, on novels in the repository."""
    start = time.monotonic()
    if importlib.util.find_spec("matplotlib") is None:
        raise ValueError("The demo plots its losses with matplotlib, which is not installed; pip install matplotlib.")
    folders = Folders.below(output)

    texts = write_texts(data, folders.corpus)
    train_vocabulary(texts, folders, trainer.load_recipe(recipe).config.vocab_size)
    write_examples(folders, texts, split_sentences=True, max_seq_length=64)

    pretrained = pretrain_model(recipe, folders)
    page = report.write_report(folders.pretraining).file

    passages = (folders.corpus / f"passages_{part}.tsv" for part in ("train", "dev"))
    classifiers = finetune_classifiers(folders, *passages, label_column="author")
    with step("exporting"):
        exported = export.export_saved_model(folders.finetuning / "pretrained", folders.saved_models, name="authors")
        export.export_saved_model(folders.pretraining / "model", folders.saved_models, name="novels", attention=True)

    show_results(pretrained, classifiers, exported, time.monotonic() - start)
    typer.echo(f"curves and examples: {page}")
    show_predictions(exported, folders)


def show_results(pretrained: Any, classifiers: dict[str, Any], exported: Any, seconds: float) -> None:
    """Prints the scores."""
    held_out, tuned, scratch = pretrained.results, classifiers["pretrained"], classifiers["from scratch"]
    rows = {
        "masked-LM loss, nats": f"{held_out['masked_lm_loss']:.3f}",
        "  entropy of single tokens": f"{held_out['unigram_entropy']:.3f}",
        "masked-LM accuracy": f"{held_out['masked_lm_accuracy']:.3f}",
        "sentence-order accuracy (chance .5)": f"{held_out['sentence_order_accuracy']:.3f}",
        "author of a passage, accuracy": f"{tuned.scores.accuracy:.3f}",
        "  same network without pretraining": f"{scratch.scores.accuracy:.3f}",
        "  most frequent author": f"{tuned.constant_score.value:.3f}",
        "exported and Keras model differ by": f"{exported.largest_difference:.1e}",
        "seconds of this call": f"{seconds:.0f}",
    }
    print_results("quickstart", "on held-out chapters", rows)


def show_predictions(exported: Any, folders: Folders) -> None:
    """Prints one prediction for each task."""
    pretrained = pipeline(folders.pretraining / "model")
    masked = "He put his hand in his [MASK] and drew out a letter."
    (prediction,) = pretrained(masked)
    pieces = ", ".join(f"{piece} {value:.2f}" for piece, value in zip(prediction.pieces, prediction.probabilities))
    print_beside("masked word", masked, pieces)
    first, second = "The old man opened the door and looked out.", "There was nobody there, and he shut it again."
    probability = pretrained(first, second)
    print_beside("sentence order", f"{first} | {second}", f"in this order with probability {probability:.2f}")
    passage = '"My dear Watson," said he, "the hound was upon the moor before you came."'
    label = pipeline(folders.finetuning / "pretrained")(passage)
    print_beside("author", passage, f"{label.label} {label.score:.2f}")
    typer.echo(f"use it:\n  .venv/bin/albert-tf predict {exported.folder.parent} \\\n  {shlex.quote(passage)}")
    typer.echo(f"serve both, then open http://127.0.0.1:8501/:\n  .venv/bin/albert-tf serve {folders.saved_models}")
    typer.echo(
        "train the pretrained model on tables of your own, with columns text and label:\n"
        f"  .venv/bin/albert-tf finetune {folders.pretraining / 'model'} \\\n"
        "  --train train.csv --dev dev.csv --output runs/mine"
    )


if __name__ == "__main__":
    run_demo(quickstart)
