"""`albert-tf nsmc`: Korean film reviews, from raw text to a model that tells their sentiment."""

import pathlib
import time
from typing import Annotated, Any

import typer

from albert_tf.cli.steps import Folders, finetune_classifiers, pretrain_model, print_results, write_examples

NAME = "nsmc"
EXAMPLE_LENGTH = 32  # most reviews fit; the fewer the places, the sooner a small model learns what neighbours tell


def run(
    output: Annotated[pathlib.Path, typer.Option(help="Folder for everything.")] = pathlib.Path("runs/nsmc"),
    data: Annotated[
        pathlib.Path, typer.Option(help="Folder with ratings_train.txt, ratings_test.txt and perhaps reviews.txt.")
    ] = pathlib.Path("training/sample_data/nsmc"),
    recipe: Annotated[pathlib.Path, typer.Option(help="Recipe of the pretraining.")] = pathlib.Path(
        "training/recipes/nsmc.toml"
    ),
    segmenter: Annotated[str | None, typer.Option(help="kiwi: pieces keep to morphemes; albert_tf[korean].")] = None,
) -> None:
    """Trains a Korean vocabulary, pretrains, and fine-tunes on sentiment, beside what does without pretraining.

    Example: albert-tf nsmc --output runs/nsmc
    """
    begun = time.monotonic()
    folders = Folders.below(output)
    make_examples(data, recipe, folders, segmenter)
    pretrained = pretrain_model(recipe, folders)
    classifiers = classify_reviews(data, folders)
    show_results(data, pretrained, classifiers, time.monotonic() - begun)
    show_predictions(folders)


def make_examples(data: pathlib.Path, recipe: pathlib.Path, folders: Folders, segmenter: str | None) -> None:
    """Trains the vocabulary and writes pretraining examples, a review in each."""
    from albert_tf.cli.reviews import write_reviews
    from albert_tf.data.options import Objective
    from albert_tf.tokenization import train_sentencepiece
    from albert_tf.trainer import load_recipe

    write_reviews(data, folders.corpus)
    typer.echo("training a vocabulary")
    vocab_size = load_recipe(recipe).config.vocab_size
    text = folders.corpus / "train.txt"
    # Of the rarest characters, most are seen once and teach nothing.
    options = {"vocab_size": vocab_size, "keep_accents": True, "character_coverage": 0.9995, "segmenter": segmenter}
    train_sentencepiece(text, folders.vocabulary, **options)
    texts = {part: folders.corpus / f"{part}.txt" for part in ("train", "heldout")}
    write_examples(folders, texts, objective=Objective.NONE, max_seq_length=EXAMPLE_LENGTH)


def classify_reviews(data: pathlib.Path, folders: Folders) -> dict[str, Any]:
    """Fine-tunes on sentiment."""
    from albert_tf.cli.reviews import LABEL_COLUMN, TEST, TEXT_COLUMN, TRAIN, find_labelled

    tables = (find_labelled(data, name) for name in (TRAIN, TEST))
    return finetune_classifiers(folders, *tables, text_column=TEXT_COLUMN, label_column=LABEL_COLUMN)


def show_results(data: pathlib.Path, pretrained, classifiers: dict[str, Any], seconds: float) -> None:
    """Prints what came out."""
    from albert_tf.cli.reviews import score_baseline

    held_out, tuned, scratch = pretrained.results, classifiers["pretrained"], classifiers["from scratch"]
    baseline = score_baseline(data)
    rows = {
        "masked-LM loss on held-out reviews, nats": f"{held_out['masked_lm_loss']:.3f}",
        "  entropy of the same tokens one by one": f"{held_out['unigram_entropy']:.3f}",
        "masked-LM accuracy": f"{held_out['masked_lm_accuracy']:.3f}",
        f"sentiment of {tuned.dev_examples:,} reviews, accuracy": f"{tuned.scores.accuracy:.4f}",
        "  same network without pretraining": f"{scratch.scores.accuracy:.4f}",
        "  TF-IDF of characters, logistic regression": "-" if baseline is None else f"{baseline:.4f}",
        "  always the commoner label": f"{tuned.majority_share:.4f}",
        "seconds in all": f"{seconds:.0f}",
    }
    print_results(f"nsmc, {tuned.train_examples:,} labelled reviews", "", rows)
    if baseline is None:
        typer.echo("The line of TF-IDF needs scikit-learn: pip install albert_tf[korean]")


def show_predictions(folders: Folders) -> None:
    """Prints what the model says of two reviews of our own."""
    from albert_tf.export import classify, load_folder

    texts = ["배우들 연기도 좋고 시간 가는 줄 몰랐어요. 강추!", "돈이 아깝다. 보다가 잠들었다."]
    for text, prediction in zip(texts, classify(load_folder(folders.finetuning / "pretrained"), texts)):
        typer.echo(f"{text}  {prediction.label} {prediction.score:.2f}")
