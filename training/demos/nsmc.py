"""Korean demo (`make nsmc`): from raw film reviews to a sentiment classifier."""

import pathlib
import time
from typing import Annotated, Any

import typer
from reviews import LABEL_COLUMN, TEST, TEXT_COLUMN, TRAIN, find_labelled, read_labelled, write_reviews
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

from albert_tf import pipeline, trainer
from albert_tf.data import Objective

EXAMPLE_LENGTH = 32  # most reviews fit, and a small model learns faster with short examples


def nsmc(
    output: Annotated[pathlib.Path, typer.Option(help="Folder to write.")] = pathlib.Path("runs/nsmc"),
    data: Annotated[
        pathlib.Path, typer.Option(help="Folder with ratings_train.txt, ratings_test.txt and optionally reviews.txt.")
    ] = REPOSITORY / "training/sample_data/nsmc",
    recipe: Annotated[pathlib.Path, typer.Option(help="Pretraining recipe.")] = (
        REPOSITORY / "training/recipes/nsmc.toml"
    ),
    segmenter: Annotated[str | None, typer.Option(help="kiwi: split at Korean morphemes (albert-tf[korean]).")] = None,
) -> None:
    """Trains a Korean vocabulary, pretrains, fine-tunes for sentiment, and compares with simpler methods."""
    start = time.monotonic()
    folders = Folders.below(output)

    texts = write_reviews(data, folders.corpus)
    # Lower than the default, because the rarest characters mostly occur once.
    options = {"keep_accents": True, "character_coverage": 0.9995, "segmenter": segmenter}
    train_vocabulary(texts, folders, trainer.load_recipe(recipe).config.vocab_size, **options)
    write_examples(folders, texts, objective=Objective.NONE, max_seq_length=EXAMPLE_LENGTH)

    pretrained = pretrain_model(recipe, folders)
    tables = (find_labelled(data, name) for name in (TRAIN, TEST))
    classifiers = finetune_classifiers(folders, *tables, text_column=TEXT_COLUMN, label_column=LABEL_COLUMN)

    show_results(pretrained, classifiers, tfidf_accuracy(data), time.monotonic() - start)
    show_predictions(folders)


def tfidf_accuracy(data: pathlib.Path) -> float | None:
    """Accuracy of logistic regression on n-grams of characters; None without scikit-learn."""
    try:
        from sklearn.feature_extraction.text import TfidfVectorizer
        from sklearn.linear_model import LogisticRegression
        from sklearn.pipeline import make_pipeline
    except ImportError:
        return None
    train, test = (read_labelled(data, name) for name in (TRAIN, TEST))
    ngrams = TfidfVectorizer(analyzer="char_wb", ngram_range=(1, 4), sublinear_tf=True)
    linear = make_pipeline(ngrams, LogisticRegression(C=10, max_iter=1000)).fit(train.texts, train.labels)
    return float(linear.score(test.texts, test.labels))


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
        "  most frequent label": f"{tuned.constant_score.value:.4f}",
        "seconds of this call": f"{seconds:.0f}",
    }
    print_results(f"nsmc, {tuned.train_examples:,} labelled reviews", "", rows)
    if baseline is None:
        typer.echo("The TF-IDF baseline needs scikit-learn: pip install 'albert-tf[korean]'")


def show_predictions(folders: Folders) -> None:
    """Prints the predictions for two new reviews."""
    texts = ["배우들 연기도 좋고 시간 가는 줄 몰랐어요. 강추!", "돈이 아깝다. 보다가 잠들었다."]
    for text, prediction in zip(texts, pipeline(folders.finetuning / "pretrained")(texts)):
        typer.echo(f"{text}  {prediction.label} {prediction.score:.2f}")
    typer.echo("(1: positive, 0: negative; followed by the probability)")
    typer.echo(f"use it:\n  .venv/bin/albert-tf predict {folders.finetuning / 'pretrained'} '{texts[0]}'")


if __name__ == "__main__":
    run_demo(nsmc)
