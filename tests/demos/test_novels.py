"""The demos on novels run to their tables: quickstart, ablations of one small model, and new words."""

import functools
import json

import pytest
from ablations import ablations as run_ablations
from ablations import make_recipe
from new_words import new_words
from quickstart import quickstart
from steps import Folders, run_demo

from albert_tf import AlbertTokenizer
from albert_tf.data import pretraining_dataset
from albert_tf.files.json import read_toml
from albert_tf.models import AlbertForPreTraining
from albert_tf.trainer import parse_recipe
from tests.cli.terminal import mistake, output_of
from tests.small_pipeline import REPOSITORY

from .small_recipes import shrink

NOVELS = REPOSITORY / "training/sample_data/novels"
RECIPES = REPOSITORY / "training/recipes"
ONCE = {"shuffle": False, "repeat": False, "drop_remainder": False}
PROGRAMS = {demo: functools.partial(run_demo, demo) for demo in (quickstart, run_ablations, new_words)}


@pytest.fixture(scope="module")
def novels(tmp_path_factory):
    """The beginnings of some chapters of two novels."""
    folder = tmp_path_factory.mktemp("novels")
    for file in sorted(NOVELS.glob("*.txt"))[:2]:
        chapters = file.read_text(encoding="utf-8").split("\n\n")[:15]
        chapters = ["\n".join(chapter.split("\n")[:25]) for chapter in chapters]
        (folder / file.name).write_text("\n\n".join(chapters) + "\n", encoding="utf-8")
    return folder


@pytest.mark.exhaustive
def test_the_quickstart(novels, tmp_path):
    recipe = shrink(RECIPES / "quickstart.toml", tmp_path)
    printed = output_of(
        *("--output", tmp_path / "out", "--data", novels, "--recipe", recipe), program=PROGRAMS[quickstart]
    )
    for line in (
        "masked-LM loss, nats",
        "author of a passage",
        "same network without pretraining",
        "sentence order  ",
        "serve both",
    ):
        assert line in printed
    assert (tmp_path / "out/pretraining/report.html").is_file()
    metrics = json.loads((tmp_path / "out/finetuning/pretrained/metrics.json").read_text())
    assert f"{metrics['score_by_evaluation'][-1]:.3f}" in printed
    (row,) = (line for line in printed.split("\n") if "exported and Keras model" in line)
    assert float(row.split()[-2]) < 1e-5


@pytest.mark.exhaustive
def test_new_words(novels, tmp_path):
    recipe, out = shrink(RECIPES / "quickstart.toml", tmp_path), tmp_path / "out"
    book = sorted(novels.glob("*.txt"))[1].stem
    command = ("--output", out, "--data", novels, "--recipe", recipe, "--book", book, "--steps", 2)
    printed = output_of(*command, program=PROGRAMS[new_words])
    rows = {line.split("│")[1].strip(): line.split("│")[2:-1] for line in printed.split("\n") if line.count("│") == 4}
    ways = ("as pieces", "as added tokens")
    assert list(rows) == [f"{way}, {when}" for when in ("before", "after 2 updates") for way in ways]
    losses, lengths = zip(*((float(loss), float(length)) for loss, length in rows.values()))
    assert lengths[0] == lengths[2] > lengths[1] == lengths[3]
    assert min(losses[0], losses[2]) > max(losses[1], losses[3]) > 0  # of several pieces, and of one
    names = (out / "corpus/tokens.txt").read_text(encoding="utf-8").split()
    assert list(AlbertTokenizer.from_pretrained(out / "finetuning/added/model").added_tokens) == names


@pytest.fixture(scope="module")
def ablations(novels, tmp_path_factory):
    """What the command printed for two variants, and its folder."""
    folder = tmp_path_factory.mktemp("ablations")
    shrink(RECIPES / "ablations/base.toml", folder)
    lines = ["['first']", "['no sharing'.model]", "share = 'none'", "['no sharing'.data]", "objective = 'none'"]
    (folder / "variants.toml").write_text("\n".join(lines), encoding="utf-8")
    command = ("--output", folder / "out", "--data", novels, "--recipes", folder)
    return output_of(*command, program=PROGRAMS[run_ablations]), folder, command


@pytest.mark.exhaustive
def test_ablations_print_a_row_for_each_variant(ablations):
    printed, folder, _ = ablations
    rows = {line.split("│")[1].strip(): line.split("│")[2:-1] for line in printed.split("\n") if line.count("│") > 5}
    assert list(rows) == ["first", "no sharing"]
    for name, (parameters, milliseconds, loss, *accuracies) in rows.items():
        place = folder / "out/pretraining" / name.replace(" ", "_")
        model = AlbertForPreTraining.from_pretrained(place / "model")
        assert int(parameters.replace(",", "")) == model.config.num_parameters()
        results = json.loads((place / "results.json").read_text())
        same_examples = pretraining_dataset(folder / "out/examples/sentence_order/heldout", 64, **ONCE)
        model = AlbertForPreTraining.from_pretrained(place / "model", objective="sentence_order")
        model.compile()
        scores = model.evaluate(same_examples, return_dict=True, verbose=0)
        assert float(loss) == pytest.approx(scores["masked_lm_loss"], abs=1e-3)
        assert float(milliseconds) > 0
        assert all(0 <= float(accuracy) <= 1 for accuracy in accuracies)
        if name == "first":
            assert float(loss) == pytest.approx(results["masked_lm_loss"], abs=1e-3)
            assert float(accuracies[0]) == pytest.approx(results["sentence_order_accuracy"], abs=1e-3)
    assert int(rows["no sharing"][0].replace(",", "")) > int(rows["first"][0].replace(",", ""))


@pytest.mark.exhaustive
def test_ablations_train_nothing_twice(ablations):
    _, folder, command = ablations
    files = sorted((folder / "out").glob("*ing/*/model/model.*")) + sorted(
        (folder / "out").glob("*ing/*/metrics.jsonl")
    )
    before = {file: file.read_bytes() for file in files}
    assert len(before) >= 4
    printed = output_of(*command, program=PROGRAMS[run_ablations])
    assert printed.count("examples, existing files") == 5  # of two objectives, and held-out ones of next sentence
    assert "tokens/s" not in printed
    assert {file: file.read_bytes() for file in files} == before


def test_the_variants_that_ship_are_of_the_paper():
    base, changes = (read_toml(RECIPES / f"ablations/{name}.toml") for name in ("base", "variants"))
    base["data"] |= {"examples": "examples"}
    recipes = [
        parse_recipe({**base, **{section: {**base[section], **own} for section, own in change.items()}})
        for change in changes.values()
    ]
    assert {recipe.config.share for recipe in recipes} == {"all", "attention", "ffn", "none"}
    assert {recipe.config.embedding_size for recipe in recipes} == {32, 64, 128}
    assert {recipe.data.objective for recipe in recipes} == {"sentence_order", "next_sentence", "none"}
    assert len({recipe.training.model_dump_json() for recipe in recipes}) == 1  # the same budget


@pytest.mark.parametrize("data", [{}, {"data": {"heldout": "elsewhere"}}])
def test_the_objective_has_the_default_of_a_recipe(data, tmp_path):
    base = read_toml(RECIPES / "ablations/base.toml")
    del base["data"]
    recipe = make_recipe({**base, **data}, {}, Folders.below(tmp_path))
    assert recipe.data.objective == "sentence_order"
    assert recipe.data.examples == tmp_path / "examples/sentence_order/train"


def test_a_folder_without_novels_and_one_that_is_not_utf_8_are_named(tmp_path):
    command = ("--output", tmp_path / "out", "--data", tmp_path)
    assert "has no novels" in mistake(*command, program=PROGRAMS[run_ablations])
    (tmp_path / "Author_Title_1900.txt").write_bytes("Caf\u00e9.\n".encode("latin-1"))
    for program in PROGRAMS.values():
        sentence = mistake(*command, program=program)
        assert "Author_Title_1900.txt is not UTF-8: byte 0xe9 at byte offset 3" in sentence
