"""Ablations (`make ablations`): trains variants of a small ALBERT with the same budget and compares them."""

import pathlib
import statistics
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer
from novels import write_texts
from steps import REPOSITORY, Folders, finetune_classifier, run_demo, train_vocabulary, write_examples

from albert_tf import data, trainer
from albert_tf.cli.tables import print_table
from albert_tf.files.json import read_toml

if TYPE_CHECKING:
    from albert_tf.trainer import Recipe

PAIR_TASKS = ("sentence_order", "next_sentence")
ROUNDS, STEPS_PER_ROUND = 5, 10


def ablations(
    output: Annotated[pathlib.Path, typer.Option(help="Folder to write.")] = pathlib.Path("runs/ablations"),
    novels: Annotated[pathlib.Path, typer.Option("--data", help="Folder of novels.")] = (
        REPOSITORY / "training/sample_data/novels"
    ),
    recipes: Annotated[
        pathlib.Path, typer.Option(help="Folder with base.toml, a recipe, and variants.toml, its changes by name.")
    ] = REPOSITORY / "training/recipes/ablations",
) -> None:
    """Pretrains and fine-tunes variants of a small model and prints a table of scores on held-out chapters.

    The scores are the masked-LM loss, on the sentence-order examples for all variants; the accuracies of both pair
    tasks, regardless of the training objective; and the accuracy in recognising the author of a passage. The same
    command resumes after an interruption.
    """
    folders = Folders.below(output)
    base, changes = read_toml(recipes / "base.toml"), read_toml(recipes / "variants.toml")
    make_examples(write_texts(novels, folders.corpus), base, changes, folders)
    variants = {name: make_recipe(base, change, folders) for name, change in changes.items()}
    scores = {name: train_variant(name, recipe, folders) for name, recipe in variants.items()}
    show(variants, scores, measure_steps(variants))


def make_examples(
    texts: Mapping[str, list[pathlib.Path]], base: Mapping[str, Any], changes: Mapping[str, Any], folders: Folders
) -> None:
    """Trains the vocabulary; writes held-out examples of both pair tasks and training examples of each objective."""
    train_vocabulary(texts, folders, make_recipe(base, {}, folders).config.vocab_size)
    trained_on = {make_recipe(base, change, folders).data.objective for change in changes.values()}
    for objective in sorted(trained_on.union(PAIR_TASKS)):
        parts = texts if objective in trained_on else {"heldout": texts["heldout"]}
        subfolders = folders._replace(examples=folders.examples / objective)
        write_examples(subfolders, parts, objective=objective, split_sentences=True, max_seq_length=64)


def make_recipe(base: Mapping[str, Any], change: Mapping[str, Mapping[str, Any]], folders: Folders) -> "Recipe":
    """The base recipe with the changes of a variant, and examples of its objective."""
    from albert_tf.trainer.recipe import DataRecipe

    values = {
        section: {**base.get(section, {}), **change.get(section, {})} for section in {**base, **change, "data": {}}
    }
    objective = values["data"].setdefault("objective", DataRecipe.model_fields["objective"].default)
    examples = folders.examples / str(objective)
    values["data"] |= {"examples": examples / "train", "heldout": examples / "heldout"}
    return trainer.parse_recipe(values)


def train_variant(name: str, recipe: "Recipe", folders: Folders) -> dict[str, float]:
    """Pretrains, evaluates on both pair tasks, and fine-tunes one variant; returns its scores."""
    typer.echo(f"pretraining, {name}")
    folder_name = "_".join(name.replace(",", "").replace("=", "").split())
    report = trainer.pretrain(recipe, folders.pretraining / folder_name)
    results = {task: evaluate_pairs(report.model_folder, recipe, task, folders) for task in PAIR_TASKS}
    scores = {task: results[task][f"{task}_accuracy"] for task in PAIR_TASKS}
    # Examples of different objectives differ in lengths and pairs, so their losses are not comparable.
    scores["masked_lm_loss"] = results["sentence_order"]["masked_lm_loss"]
    passages = (folders.corpus / f"passages_{part}.tsv" for part in ("train", "dev"))
    typer.echo(f"fine-tuning, {name}")
    tuned = finetune_classifier(report.model_folder, folders.finetuning / folder_name, *passages, label_column="author")
    return {**scores, "author": tuned.score_by_evaluation[-1]}


def evaluate_pairs(model_folder: pathlib.Path, recipe: "Recipe", task: str, folders: Folders) -> dict[str, float]:
    """Losses and accuracies of a model on the held-out examples of a task."""
    from albert_tf.models import AlbertForPreTraining

    model = AlbertForPreTraining.from_pretrained(model_folder, objective=task)
    model.compile()
    heldout = data.pretraining_dataset(
        folders.examples / task / "heldout",
        recipe.training.batch_size,
        shuffle=False,
        repeat=False,
        drop_remainder=False,
        objective=task,
    )
    return model.evaluate(heldout, return_dict=True, verbose=0)


def measure_steps(variants: Mapping[str, "Recipe"]) -> dict[str, float]:
    """Seconds per update of each variant: medians over rounds in which variants alternate."""
    from albert_tf.models import AlbertForPreTraining

    typer.echo("measuring the time of an update")
    steps, seconds = {}, {name: [] for name in variants}
    for name, recipe in variants.items():
        objective, training = recipe.data.objective, recipe.training
        model = AlbertForPreTraining(recipe.config, objective=objective)
        model.compile(optimizer=recipe.optimizer.build(training.num_train_steps, training.batch_size))
        examples = data.pretraining_dataset(recipe.data.source, training.batch_size, objective=objective)
        steps[name] = (model, examples.take(STEPS_PER_ROUND).cache())
        model.fit(steps[name][1], shuffle=False, verbose=0)  # warm-up: tracing, and filling the cache
    for _ in range(ROUNDS):
        for name, (model, examples) in steps.items():
            start = time.perf_counter()
            model.fit(examples, shuffle=False, verbose=0)
            seconds[name].append((time.perf_counter() - start) / STEPS_PER_ROUND)
    return {name: statistics.median(times) for name, times in seconds.items()}


def show(variants: Mapping[str, "Recipe"], scores: Mapping[str, dict[str, float]], seconds: dict[str, float]) -> None:
    """Prints the table."""
    rows = (
        (
            name,
            f"{recipe.config.num_parameters():,}",
            f"{1000 * seconds[name]:.0f}",
            *(f"{scores[name][column]:.3f}" for column in ("masked_lm_loss", *PAIR_TASKS, "author")),
        )
        for name, recipe in variants.items()
    )
    columns = ("variant", "parameters", "ms/step", "masked-LM loss", "sentence order", "next sentence", "author")
    print_table("ablations on held-out chapters", columns, rows)


if __name__ == "__main__":
    run_demo(ablations)
