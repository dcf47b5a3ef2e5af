"""`albert-tf nsmc`: Korean film reviews, from raw text to a model that tells their sentiment."""

import pathlib
import time
from typing import Annotated, Any, NamedTuple

import typer

from albert_tf.cli.pretrain import end_if_stopped

NAME = "nsmc"
MAX_LENGTH = 64  # a review in pieces; one in thirty is longer
EXAMPLE_LENGTH = 32  # most reviews fit; the fewer the places, the sooner a small model learns what neighbours tell


class _Folders(NamedTuple):
    """Where the command writes."""

    corpus: pathlib.Path
    vocabulary: pathlib.Path
    examples: pathlib.Path
    pretraining: pathlib.Path
    finetuning: pathlib.Path


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
    import os

    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    begun = time.monotonic()
    folders = _Folders(*(output / name for name in _Folders._fields))
    make_examples(data, recipe, folders, segmenter)
    pretrained = pretrain_model(recipe, folders)
    classifiers = finetune_classifiers(data, folders)
    show_results(data, pretrained, classifiers, time.monotonic() - begun)
    show_predictions(folders)


def make_examples(data: pathlib.Path, recipe: pathlib.Path, folders: _Folders, segmenter: str | None) -> None:
    """Trains the vocabulary and writes pretraining examples, a review in each."""
    from albert_tf.cli.reviews import write_reviews
    from albert_tf.data import PrepareOptions, prepare
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
    for part, passes in (("train", 20), ("heldout", 1)):
        typer.echo(f"writing {part} examples")
        report = prepare(
            PrepareOptions(
                inputs=(folders.corpus / f"{part}.txt",),
                output_dir=folders.examples / part,
                tokenizer=folders.vocabulary,
                objective=Objective.NONE,
                max_seq_length=EXAMPLE_LENGTH,
                masked_lm_prob=0.25,
                ngram=1,
                dupe_factor=passes,
                num_shards=4 if part == "train" else 1,
            )
        )
        typer.echo(f"  {report.manifest.statistics.examples:,} examples, {report.tokens_per_second:,.0f} tokens/s")


def pretrain_model(recipe: pathlib.Path, folders: _Folders):
    """Pretrains on masked pieces."""
    from albert_tf.trainer import load_recipe, pretrain

    typer.echo("pretraining")
    data = {name: folders.examples / part for name, part in (("examples", "train"), ("heldout", "heldout"))}
    report = pretrain(load_recipe(recipe, **data, tokenizer=folders.vocabulary), folders.pretraining)
    end_if_stopped(report)
    return report


def finetune_classifiers(data: pathlib.Path, folders: _Folders) -> dict[str, Any]:
    """Fine-tunes the pretrained network, and the same network from scratch, on sentiment."""
    from albert_tf.cli.reviews import LABEL_COLUMN, TEST, TEXT_COLUMN, TRAIN, read_labelled
    from albert_tf.trainer import FinetuneOptions, finetune

    reports = {}
    for name, from_scratch in (("pretrained", False), ("from scratch", True)):
        typer.echo(f"fine-tuning, {name}")
        options = FinetuneOptions(
            pretrained=folders.pretraining / "model",
            train=read_labelled(data / TRAIN).source,
            dev=read_labelled(data / TEST).source,
            output=folders.finetuning / name.replace(" ", "_"),
            text_column=TEXT_COLUMN,
            label_column=LABEL_COLUMN,
            from_scratch=from_scratch,
            epochs=5,
            learning_rate=1e-3,
            max_length=MAX_LENGTH,
            keep="last",  # the best epoch would be chosen on the very reviews that it is measured on
        )
        reports[name] = finetune(options, show_progress=True)
    return reports


def show_results(data: pathlib.Path, pretrained, classifiers: dict[str, Any], seconds: float) -> None:
    """Prints what came out."""
    import rich

    from albert_tf.cli.reviews import score_baseline
    from albert_tf.cli.tables import plain_table

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
    table = plain_table(f"nsmc, {tuned.train_examples:,} labelled reviews", "", "value")
    for label, value in rows.items():
        table.add_row(label, value)
    rich.print(table)
    if baseline is None:
        typer.echo("The line of TF-IDF needs scikit-learn: pip install albert_tf[korean]")


def show_predictions(folders: _Folders) -> None:
    """Prints what the model says of two reviews of our own."""
    from albert_tf.export import classify, load_folder

    texts = ["배우들 연기도 좋고 시간 가는 줄 몰랐어요. 강추!", "돈이 아깝다. 보다가 잠들었다."]
    for text, prediction in zip(texts, classify(load_folder(folders.finetuning / "pretrained"), texts)):
        typer.echo(f"{text}  {prediction.label} {prediction.score:.2f}")
