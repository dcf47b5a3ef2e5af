"""Steps of all demos, with settings for a small model and corpus."""

import contextlib
import pathlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import typer

from albert_tf import data, tokenization, trainer
from albert_tf.cli.session import user_errors
from albert_tf.cli.tables import print_table
from albert_tf.inference.progress import progress_line

REPOSITORY = pathlib.Path(__file__).parents[2]
MAX_LENGTH = 64  # tokens, for classification


class Folders(NamedTuple):
    """The output folders of a demo."""

    corpus: pathlib.Path
    vocabulary: pathlib.Path
    examples: pathlib.Path
    pretraining: pathlib.Path
    finetuning: pathlib.Path
    saved_models: pathlib.Path

    @classmethod
    def below(cls, output: pathlib.Path) -> "Folders":
        """Subfolders of `output`."""
        return cls(*(output / name for name in cls._fields))


def run_demo(demo: Callable) -> None:
    """Runs a function as a command, whose arguments become options."""
    with user_errors():
        app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)
        app.command()(demo)
        app()


@contextlib.contextmanager
def step(title: str) -> Iterator[None]:
    """Prints the title of a step and, on a terminal, the elapsed time while it runs."""
    typer.echo(title)
    with progress_line(""):
        yield


def train_vocabulary(
    texts: Mapping[str, list[pathlib.Path]], folders: Folders, vocab_size: int, **options: Any
) -> None:
    """Trains a vocabulary on the `train` files and evaluates it on the `heldout` files."""
    with step("training a vocabulary"):
        train, heldout = texts["train"], texts["heldout"]
        tokenization.train_sentencepiece(train, folders.vocabulary, vocab_size, heldout_files=heldout, **options)


def write_examples(folders: Folders, texts: Mapping[str, list[pathlib.Path]], **options: Any) -> None:
    """Writes pretraining examples with twenty passes over the `train` files and one over the `heldout` files."""
    for part, files in texts.items():
        with step(f"writing {part} examples"):
            report = data.prepare(
                data.PrepareOptions(
                    inputs=tuple(files),
                    output_dir=folders.examples / part,
                    tokenizer=folders.vocabulary,
                    # A small model learns faster from many masked single words than from fewer n-grams.
                    masked_lm_prob=0.25,
                    ngram=1,
                    dupe_factor=20 if part == "train" else 1,
                    num_shards=4 if part == "train" else 1,
                    **options,
                )
            )
        typer.echo(f"  {report.manifest.statistics.examples:,} examples{', existing files' * report.reused}")


def pretrain_model(recipe: pathlib.Path, folders: Folders) -> Any:
    """Pretrains on the examples."""
    with step("pretraining"):
        trainer.pretrain  # noqa: B018 (imports TensorFlow)
    examples = {name: folders.examples / part for name, part in (("examples", "train"), ("heldout", "heldout"))}
    loaded = trainer.load_recipe(recipe, **examples)
    return trainer.pretrain(loaded, folders.pretraining)


def finetune_classifiers(folders: Folders, train: pathlib.Path, dev: pathlib.Path, **columns: Any) -> dict[str, Any]:
    """Fine-tunes the pretrained model, and the same model from random weights."""
    reports = {}
    for name, from_scratch in (("pretrained", False), ("from scratch", True)):
        typer.echo(f"fine-tuning, {name}")
        output = folders.finetuning / name.replace(" ", "_")
        model = folders.pretraining / "model"
        reports[name] = finetune_classifier(model, output, train, dev, from_scratch=from_scratch, **columns)
    return reports


def finetune_classifier(
    pretrained: pathlib.Path, output: pathlib.Path, train: pathlib.Path, dev: pathlib.Path, **options: Any
) -> Any:
    """Fine-tunes a small model on small tables."""
    checked = trainer.FinetuneOptions(
        pretrained=pretrained,
        output=output,
        train=train,
        dev=dev,
        epochs=5,
        learning_rate=1e-3,
        max_length=MAX_LENGTH,
        keep="last",  # choosing the best epoch on the reported texts would bias the score
        **options,
    )
    return trainer.finetune(checked, show_progress=True)


def print_results(title: str, column: str, rows: Mapping[str, str]) -> None:
    """Prints a table with one value per row."""
    print_table(title, (column, "value"), rows.items())


def print_beside(name: str, *texts: str) -> None:
    """Prints a name and texts beside it."""
    for number, text in enumerate(texts):
        typer.echo(f"{'' if number else name:16}{text}")
