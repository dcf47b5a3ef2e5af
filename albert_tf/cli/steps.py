"""Steps that the commands for a whole road share: `quickstart`, `nsmc` and `ablations`."""

import pathlib
from collections.abc import Mapping
from typing import Any, NamedTuple

import typer

from albert_tf.cli.pretrain import end_if_stopped

MAX_LENGTH = 64  # of the texts to classify, in pieces


class Folders(NamedTuple):
    """Where a road writes."""

    corpus: pathlib.Path
    vocabulary: pathlib.Path
    examples: pathlib.Path
    pretraining: pathlib.Path
    finetuning: pathlib.Path
    saved_models: pathlib.Path

    @classmethod
    def below(cls, output: pathlib.Path) -> "Folders":
        """All in one folder, each under its own name."""
        return cls(*(output / name for name in cls._fields))


def write_examples(folders: Folders, inputs: Mapping[str, pathlib.Path], **options: Any) -> None:
    """Writes pretraining examples, twenty passes over the `train` part of the text and one over `heldout`."""
    from albert_tf.data import PrepareOptions, prepare

    for part, file_or_folder in inputs.items():
        typer.echo(f"writing {part} examples")
        report = prepare(
            PrepareOptions(
                inputs=(file_or_folder,),
                output_dir=folders.examples / part,
                tokenizer=folders.vocabulary,
                # What a small model learns soonest from: many single words to guess, rather than few runs of words.
                masked_lm_prob=0.25,
                ngram=1,
                dupe_factor=20 if part == "train" else 1,
                num_shards=4 if part == "train" else 1,
                **options,
            )
        )
        speed = "already there" if report.reused else f"{report.tokens_per_second:,.0f} tokens/s"
        typer.echo(f"  {report.manifest.statistics.examples:,} examples, {speed}")


def pretrain_model(recipe: pathlib.Path, folders: Folders):
    """Pretrains on the examples; where the run is told to stop, so is the road."""
    from albert_tf.trainer import load_recipe, pretrain

    typer.echo("pretraining")
    data = {name: folders.examples / part for name, part in (("examples", "train"), ("heldout", "heldout"))}
    report = pretrain(load_recipe(recipe, **data, tokenizer=folders.vocabulary), folders.pretraining)
    end_if_stopped(report)
    return report


def finetune_classifiers(folders: Folders, train: pathlib.Path, dev: pathlib.Path, **columns: Any) -> dict[str, Any]:
    """Fine-tunes the pretrained network, and the same network from scratch."""
    reports = {}
    for name, from_scratch in (("pretrained", False), ("from scratch", True)):
        typer.echo(f"fine-tuning, {name}")
        place = folders.finetuning / name.replace(" ", "_")
        model = folders.pretraining / "model"
        reports[name] = finetune_classifier(model, place, train, dev, from_scratch=from_scratch, **columns)
    return reports


def finetune_classifier(
    pretrained: pathlib.Path, output: pathlib.Path, train: pathlib.Path, dev: pathlib.Path, **options: Any
):
    """Fine-tunes a small network on small tables."""
    from albert_tf.trainer import FinetuneOptions, finetune

    checked = FinetuneOptions(
        pretrained=pretrained,
        output=output,
        train=train,
        dev=dev,
        epochs=5,
        learning_rate=1e-3,
        max_length=MAX_LENGTH,
        keep="last",  # the best epoch would be chosen on the very texts that it is measured on
        **options,
    )
    return finetune(checked, show_progress=True)


def print_results(title: str, column: str, rows: Mapping[str, str]) -> None:
    """Prints a table of one value a line."""
    import rich

    from albert_tf.cli.tables import plain_table

    table = plain_table(title, column, "value")
    for label, value in rows.items():
        table.add_row(label, value)
    rich.print(table)
