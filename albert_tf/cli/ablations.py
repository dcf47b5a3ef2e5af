"""`albert-tf ablations`: what ALBERT is made of, tried in small: the same budget for every variant, and one table."""

import pathlib
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from albert_tf.cli.pretrain import end_if_stopped
from albert_tf.cli.steps import Folders, finetune_classifier, write_examples

if TYPE_CHECKING:
    from albert_tf.trainer import Recipe

NAME = "ablations"
PAIR_TASKS = ("sentence_order", "next_sentence")
ROUNDS, STEPS_OF_A_ROUND = 5, 10


def run(
    output: Annotated[pathlib.Path, typer.Option(help="Folder for everything.")] = pathlib.Path("runs/ablations"),
    data: Annotated[pathlib.Path, typer.Option(help="Folder of novels.")] = pathlib.Path("training/sample_data/novels"),
    recipes: Annotated[
        pathlib.Path, typer.Option(help="Folder with base.toml, a recipe, and variants.toml, changes to it by name.")
    ] = pathlib.Path("training/recipes/ablations"),
) -> None:
    """Pretrains and fine-tunes variants of one small model and prints a row for each.

    The same command goes on where it was stopped. Measured on held-out chapters: the masked-LM loss on the examples of
    sentence order, the same ones for every variant; both tasks of pairs, whichever of them a variant was trained on;
    and whose passages these are.

    Example: albert-tf ablations --output runs/ablations
    """
    from albert_tf.cli.novels import write_texts

    base, changes = read_variants(recipes)
    folders = Folders.below(output)
    write_texts(data, folders.corpus)
    make_examples(base, changes, folders)
    variants = {name: make_recipe(base, change, folders) for name, change in changes.items()}
    rows = {name: train_variant(name, recipe, folders) for name, recipe in variants.items()}
    show(variants, rows, measure_steps(variants))


def read_variants(recipes: pathlib.Path) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """Returns the values of the base recipe, and what each variant changes."""
    from albert_tf.trainer.recipe import read_toml

    return read_toml(recipes / "base.toml"), read_toml(recipes / "variants.toml")


def make_examples(base: Mapping[str, Any], changes: Mapping[str, Any], folders: Folders) -> None:
    """Trains the vocabulary and writes examples for every objective: to train on where a variant does, and held-out."""
    from albert_tf.cli.novels import learn_vocabulary

    texts = learn_vocabulary(folders, make_recipe(base, {}, folders).config.vocab_size)
    trained_on = {make_recipe(base, change, folders).data.objective for change in changes.values()}
    for objective in sorted(trained_on.union(PAIR_TASKS)):
        parts = texts if objective in trained_on else {"heldout": texts["heldout"]}
        place = folders._replace(examples=folders.examples / objective)
        write_examples(place, parts, objective=objective, split_sentences=True, max_seq_length=64)


def make_recipe(base: Mapping[str, Any], change: Mapping[str, Mapping[str, Any]], folders: Folders) -> "Recipe":
    """The base recipe with a variant's changes, on the examples of its objective."""
    from albert_tf.trainer import parse_recipe
    from albert_tf.trainer.recipe import DataRecipe

    values = {
        section: {**base.get(section, {}), **change.get(section, {})} for section in {**base, **change, "data": {}}
    }
    objective = values["data"].setdefault("objective", DataRecipe.model_fields["objective"].default)
    examples = folders.examples / str(objective)
    values["data"] |= {"examples": examples / "train", "heldout": examples / "heldout", "tokenizer": folders.vocabulary}
    return parse_recipe(values)


def train_variant(name: str, recipe: "Recipe", folders: Folders) -> dict[str, float]:
    """Pretrains, evaluates on both tasks of pairs, and fine-tunes one variant; returns its scores."""
    from albert_tf.trainer import pretrain

    typer.echo(f"pretraining, {name}")
    place = "_".join(name.replace(",", "").replace("=", "").split())
    report = pretrain(recipe, folders.pretraining / place)
    end_if_stopped(report)
    results = {task: evaluate_pairs(report.model_folder, recipe, task, folders) for task in PAIR_TASKS}
    scores = {task: results[task][f"{task}_accuracy"] for task in PAIR_TASKS}
    # Examples of other objectives have other lengths and pairs, and so another loss for the same model.
    scores["masked_lm_loss"] = results["sentence_order"]["masked_lm_loss"]
    passages = (folders.corpus / f"passages_{part}.tsv" for part in ("train", "dev"))
    typer.echo(f"fine-tuning, {name}")
    tuned = finetune_classifier(report.model_folder, folders.finetuning / place, *passages, label_column="author")
    return {**scores, "author": tuned.score_by_epoch[-1]}


def evaluate_pairs(model_folder: pathlib.Path, recipe: "Recipe", task: str, folders: Folders) -> dict[str, float]:
    """Losses and accuracies of a model on the held-out examples of a task, be it the one that it has learnt or not."""
    from albert_tf.data import pretraining_dataset
    from albert_tf.models import AlbertForPreTraining

    model = AlbertForPreTraining.from_pretrained(model_folder, objective=task)
    model.compile()
    heldout = pretraining_dataset(
        folders.examples / task / "heldout",
        recipe.training.batch_size,
        shuffle=False,
        repeat=False,
        drop_remainder=False,
        objective=task,
    )
    return model.evaluate(heldout, return_dict=True, verbose=0)


def measure_steps(variants: Mapping[str, "Recipe"]) -> dict[str, float]:
    """Seconds of an update of each variant, the median over rounds in which all take turns."""
    import statistics

    from albert_tf.data import pretraining_dataset
    from albert_tf.models import AlbertForPreTraining

    typer.echo("measuring the time of an update")
    steps, seconds = {}, {name: [] for name in variants}
    for name, recipe in variants.items():
        objective, training = recipe.data.objective, recipe.training
        model = AlbertForPreTraining(recipe.config, objective=objective)
        model.compile(optimizer=recipe.optimizer.build(training.num_train_steps, training.batch_size))
        data = pretraining_dataset(recipe.data.source, training.batch_size, objective=objective).take(STEPS_OF_A_ROUND)
        steps[name] = (model, data.cache())
        model.fit(steps[name][1], shuffle=False, verbose=0)  # traced, and the examples read
    for _ in range(ROUNDS):
        for name, (model, data) in steps.items():
            begun = time.perf_counter()
            model.fit(data, shuffle=False, verbose=0)
            seconds[name].append((time.perf_counter() - begun) / STEPS_OF_A_ROUND)
    return {name: statistics.median(times) for name, times in seconds.items()}


def show(variants: Mapping[str, "Recipe"], rows: Mapping[str, dict[str, float]], seconds: dict[str, float]) -> None:
    """Prints the table."""
    import rich

    from albert_tf.cli.tables import plain_table

    columns = ("parameters", "ms/step", "masked-LM loss", "sentence order", "next sentence", "author")
    table = plain_table("ablations, on held-out chapters", "variant", *columns)
    for name, recipe in variants.items():
        scores = rows[name]
        table.add_row(
            name,
            f"{recipe.config.num_parameters():,}",
            f"{1000 * seconds[name]:.0f}",
            f"{scores['masked_lm_loss']:.3f}",
            *(f"{scores[column]:.3f}" for column in (*PAIR_TASKS, "author")),
        )
    rich.print(table)
