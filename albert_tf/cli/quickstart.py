"""`albert-tf quickstart`: the whole road on a few novels, from raw text to a served model."""

import pathlib
import time
from typing import Annotated, Any

import typer

from albert_tf.cli.steps import Folders, finetune_classifiers, pretrain_model, print_results, write_examples

NAME = "quickstart"
PLOT = "losses.png"


def run(
    output: Annotated[pathlib.Path, typer.Option(help="Folder for everything.")] = pathlib.Path("runs/quickstart"),
    data: Annotated[pathlib.Path, typer.Option(help="Folder of novels.")] = pathlib.Path("training/sample_data/novels"),
    recipe: Annotated[pathlib.Path, typer.Option(help="Recipe of the pretraining.")] = pathlib.Path(
        "training/recipes/quickstart.toml"
    ),
) -> None:
    """Trains a vocabulary, pretrains, fine-tunes, exports and predicts, on novels that ship with the project.

    Example: albert-tf quickstart --output runs/quickstart
    """
    from albert_tf.cli.novels import write_texts

    begun = time.monotonic()
    folders = Folders.below(output)
    write_texts(data, folders.corpus)
    make_examples(recipe, folders)
    pretrained = pretrain_model(recipe, folders)
    plot(pretrained, folders)
    passages = (folders.corpus / f"passages_{part}.tsv" for part in ("train", "dev"))
    classifiers = finetune_classifiers(folders, *passages, label_column="author")
    exported = export_classifier(folders)
    show_results(pretrained, classifiers, exported, folders, time.monotonic() - begun)
    show_predictions(exported, folders)


def make_examples(recipe: pathlib.Path, folders: Folders) -> None:
    """Trains the vocabulary and writes pretraining examples."""
    from albert_tf.cli.novels import learn_vocabulary
    from albert_tf.trainer import load_recipe

    texts = learn_vocabulary(folders, load_recipe(recipe).config.vocab_size)
    write_examples(folders, texts, split_sentences=True, max_seq_length=64)


def plot(pretrained, folders: Folders) -> None:
    """Draws the losses."""
    from albert_tf.trainer import plot_losses

    plot_losses(pretrained.metrics_file, folders.pretraining / PLOT, pretrained.results["unigram_entropy"])


def export_classifier(folders: Folders):
    """Writes the fine-tuned model as a SavedModel, raw text in, named scores out."""
    from albert_tf.export import export_saved_model

    typer.echo("exporting")
    return export_saved_model(folders.finetuning / "pretrained", folders.saved_models, name="authors")


def show_results(pretrained, classifiers: dict[str, Any], exported, folders: Folders, seconds: float) -> None:
    """Prints what came out."""
    held_out, tuned, scratch = pretrained.results, classifiers["pretrained"], classifiers["from scratch"]
    rows = {
        "masked-LM loss, nats": f"{held_out['masked_lm_loss']:.3f}",
        "  entropy of the same tokens one by one": f"{held_out['unigram_entropy']:.3f}",
        "masked-LM accuracy": f"{held_out['masked_lm_accuracy']:.3f}",
        "sentence-order accuracy (chance .5)": f"{held_out['sentence_order_accuracy']:.3f}",
        "author of a passage, accuracy": f"{tuned.scores.accuracy:.3f}",
        "  same network without pretraining": f"{scratch.scores.accuracy:.3f}",
        "  always the commonest author": f"{tuned.majority_share:.3f}",
        "exported model against Keras, largest difference": f"{exported.largest_difference:.1e}",
        "seconds in all": f"{seconds:.0f}",
    }
    print_results("quickstart", "on held-out chapters", rows)
    typer.echo(f"losses: {folders.pretraining / PLOT}")


def show_predictions(exported, folders: Folders) -> None:
    """Prints one prediction of each kind."""
    from albert_tf.export import classify, fill_mask, load_folder, sentence_order

    pretrained, classifier = load_folder(folders.pretraining / "model"), load_folder(folders.finetuning / "pretrained")
    masked = "He put his hand in his [MASK] and drew out a letter."
    guess = fill_mask(pretrained, [masked])[0]
    shares = ", ".join(f"{piece} {share:.2f}" for piece, share in zip(guess.pieces, guess.probabilities))
    typer.echo(f"masked word     {masked}\n                {shares}")
    first, second = "The old man opened the door and looked out.", "There was nobody there, and he shut it again."
    share = sentence_order(pretrained, [first], [second])[0]
    typer.echo(f"sentence order  {first} | {second}\n                in this order with probability {share:.2f}")
    passage = '"My dear Watson," said he, "the hound was upon the moor before you came."'
    label = classify(classifier, [passage])[0]
    typer.echo(f"author          {passage}\n                {label.label} {label.score:.2f}")
    typer.echo(f"serve it        python saved_models/predict.py {exported.folder.parent} {passage!r}")
