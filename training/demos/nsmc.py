"""Korean demo (`make nsmc`): from raw film reviews to a model of their sentiment."""

import pathlib
import time
from typing import Annotated, Any

import typer
from reviews import (
    LABEL_COLUMN,
    TEST,
    TEXT_COLUMN,
    TRAIN,
    find_labelled,
    score_baseline,
    write_reviews,
)
from steps import (
    REPOSITORY,
    Folders,
    finetune_classifiers,
    pretrain_model,
    print_results,
    run_demo,
    train_vocabulary,
    write_examples,
)

from albert_tf import export, trainer
from albert_tf.data import Objective

EXAMPLE_LENGTH = 32  # most reviews fit; with fewer positions a small model learns sooner what neighbours tell


def nsmc(
    output: Annotated[pathlib.Path, typer.Option(help="Folder for everything.")] = pathlib.Path("runs/nsmc"),
    data: Annotated[
        pathlib.Path, typer.Option(help="Folder with ratings_train.txt, ratings_test.txt and perhaps reviews.txt.")
    ] = REPOSITORY / "training/sample_data/nsmc",
    recipe: Annotated[pathlib.Path, typer.Option(help="Recipe of the pretraining.")] = (
        REPOSITORY / "training/recipes/nsmc.toml"
    ),
    segmenter: Annotated[str | None, typer.Option(help="kiwi: split at Korean morphemes (albert_tf[korean]).")] = None,
) -> None:
    """Trains a Korean vocabulary, pretrains and fine-tunes on sentiment, and compares with simpler methods."""
    begun = time.monotonic()
    folders = Folders.below(output)

    texts = write_reviews(data, folders.corpus)
    # The rarest characters are mostly seen once and teach nothing.
    options = {"keep_accents": True, "character_coverage": 0.9995, "segmenter": segmenter}
    train_vocabulary(texts, folders, trainer.load_recipe(recipe).config.vocab_size, **options)
    write_examples(folders, texts, objective=Objective.NONE, max_seq_length=EXAMPLE_LENGTH)

    pretrained = pretrain_model(recipe, folders)
    tables = (find_labelled(data, name) for name in (TRAIN, TEST))
    classifiers = finetune_classifiers(folders, *tables, text_column=TEXT_COLUMN, label_column=LABEL_COLUMN)

    show_results(pretrained, classifiers, score_baseline(data), time.monotonic() - begun)
    show_predictions(folders)


def show_results(pretrained: Any, classifiers: dict[str, Any], baseline: float | None, seconds: float) -> None:
    """Prints the scores."""
    held_out, tuned, scratch = pretrained.results, classifiers["pretrained"], classifiers["from scratch"]
    rows = {
        "masked-LM loss on held-out reviews, nats": f"{held_out['masked_lm_loss']:.3f}",
        "  entropy of single tokens": f"{held_out['unigram_entropy']:.3f}",
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
    """Prints what the model says about two reviews of our own."""
    texts = ["배우들 연기도 좋고 시간 가는 줄 몰랐어요. 강추!", "돈이 아깝다. 보다가 잠들었다."]
    model = export.load_folder(folders.finetuning / "pretrained")
    for text, prediction in zip(texts, export.classify(model, texts)):
        typer.echo(f"{text}  {prediction.label} {prediction.score:.2f}")


if __name__ == "__main__":
    run_demo(nsmc)
