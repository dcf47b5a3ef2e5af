"""Proves that `albert-tf finetune` trains what its options say, prints its scores, and explains mistakes."""

import json
import re

import pytest

from tests.conftest import ROOT
from tests.toy_task import write_mood_table, write_pretrained
from tests.trainer.mood_runs import options_for

from .terminal import mistake, output_of, run


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("finetune")
    write_pretrained(folder / "pretrained")
    write_mood_table(folder / "train.tsv", 40, seed=1)
    write_mood_table(folder / "dev.tsv", 20, seed=2)
    return folder


def arguments(files, *more):
    tables = ("--train", files / "train.tsv", "--dev", files / "dev.tsv", "--output", files / "out")
    return ("finetune", files / "pretrained", *tables, "--epochs", 2, "--learning-rate", 0.001, *more)


def test_what_to_give_for_what_is_missing(files):
    command = ("finetune", files / "pretrained", "--train", files / "train.tsv", "--output", files / "out")
    assert "`--dev` is missing; give examples to evaluate on, such as a tenth of the rows" in mistake(*command)
    printed = output_of("finetune", "--help")
    assert printed.count("[required]") == 3


def test_layers_are_frozen_and_labels_weighed_by_name(files, tmp_path):
    tables = ("--train", files / "train.tsv", "--dev", files / "dev.tsv", "--output", tmp_path / "run")
    command = ("finetune", files / "pretrained", *tables, "--epochs", 1, "--max-length", 16)
    weights = ("--set", "class_weights.gloomy=2", "--set", "class_weights.pleasant=0.5")
    output_of(*command, "--set", 'freeze=["encoder"]', *weights)
    recipe = json.loads((tmp_path / "run" / "recipe.json").read_text())
    assert (recipe["freeze"], recipe["class_weights"]) == (["encoder"], {"gloomy": 2.0, "pleasant": 0.5})
    (tmp_path / "recipe.toml").write_text('class_weights = {gloomy = "2"}')
    message = mistake(*command, "--recipe", tmp_path / "recipe.toml")
    assert message.startswith("albert-tf: `class_weights.gloomy` is invalid (Input should be a valid number)")


MNLI_COLUMNS = (
    *("index", "promptID", "pairID", "genre", "sentence1_binary_parse", "sentence2_binary_parse", "sentence1_parse"),
    *("sentence2_parse", "sentence1", "sentence2", "label1", "gold_label"),
)
DIAGNOSTIC_COLUMNS = (
    *("Lexical Semantics", "Predicate-Argument Structure", "Logic", "Knowledge", "Domain"),
    *("Premise", "Hypothesis", "Label"),
)


def write_glue(path, columns, rows):
    lines = ["\t".join(columns), *("\t".join(row.get(column, "-") for column in columns) for row in rows)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@pytest.mark.exhaustive
def test_mnli_and_its_diagnostic_set_in_the_layout_of_glue(files, tmp_path):
    labels = ("neutral", "entailment", "contradiction")
    rows = [
        {"sentence1": f"text {n}", "sentence2": f'{labels[n % 3]} "{n}', "gold_label": labels[n % 3]} for n in range(24)
    ]
    train = write_glue(tmp_path / "train.tsv", MNLI_COLUMNS, rows)
    dev = write_glue(tmp_path / "dev_matched.tsv", MNLI_COLUMNS, rows[:12])
    recipe = ROOT / "training/recipes/glue/mnli.toml"
    changes = ("--max-length", 32, "--batch-size", 8, "--epochs", 1, "--output", tmp_path / "run")
    output_of("finetune", files / "pretrained", "--recipe", recipe, "--train", train, "--dev", dev, *changes)
    other = write_glue(tmp_path / "dev_mismatched.tsv", MNLI_COLUMNS, rows[12:])
    assert "12 examples" in output_of("evaluate", tmp_path / "run", "--data", other)
    named = [
        {"Premise": row["sentence1"], "Hypothesis": row["sentence2"], "Label": row["gold_label"]} for row in rows[:9]
    ]
    full = write_glue(tmp_path / "diagnostic-full.tsv", DIAGNOSTIC_COLUMNS, named)
    columns = ("--text-column", "Premise", "--pair-column", "Hypothesis", "--label-column", "Label")
    printed = output_of("evaluate", tmp_path / "run", "--data", full, *columns)
    assert "9 examples" in printed
    assert "matthews" in printed
    unlabelled = write_glue(tmp_path / "diagnostic.tsv", ("index", "sentence1", "sentence2"), rows)
    columns = ("--text-column", "sentence1", "--pair-column", "sentence2")
    output_of("predict", tmp_path / "run", "--data", unlabelled, *columns, "--output", tmp_path / "AX.tsv")
    header, *lines = [line.split("\t") for line in (tmp_path / "AX.tsv").read_text(encoding="utf-8").splitlines()]
    assert header[:2] == ["index", "prediction"]  # what `cut -f 1,2` keeps for GLUE's server
    assert [index for index, *_ in lines] == [str(n) for n in range(24)]
    assert {prediction for _, prediction, *_ in lines} <= set(labels)


def test_a_run_prints_its_scores_and_is_made_once(files):
    code, printed, err = run(*arguments(files, "--batch-size", 8))
    assert code == 0, err
    assert "loss" in err
    report = json.loads((files / "out" / "metrics.json").read_text())
    assert report["steps"] == 2 * 5
    assert f"{report['scores']['accuracy']:.4f}" in printed
    assert f"{report['constant_score']['value']:.4f}" in printed
    recipe = json.loads((files / "out" / "recipe.json").read_text())
    assert (recipe["batch_size"], recipe["learning_rate"], recipe["from_scratch"]) == (8, 0.001, False)
    assert "already finished" in output_of(*arguments(files, "--batch-size", 8))
    assert "batch_size (there 8, here 16)" in mistake(*arguments(files, "--batch-size", 16))


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (("--text-column", "txt"), "did you mean 'text'"),
        (("--set", "optimizer=sgd"), "`optimizer` is invalid"),
        (("--epochs", 0), "`epochs` is invalid"),
        (("--train", "missing.tsv"), "missing.tsv"),
        (("--set", "keep=first"), "`keep` is invalid"),
        (("--set", "pateince=2"), "Unknown key 'pateince' in the options; did you mean 'patience'?"),
        (("--set", "patience"), "`--set` must be KEY=VALUE, such as seed=3. Received: 'patience'"),
        (("--set", "freeze=encoder"), """write a list as '["a", "b"]'"""),
        (("--set", "positive_label=1"), """Received: 1 in the options; write a text that is like another value in"""),
        (("--set", "labels=[a, b]"), "must have a value of TOML"),
    ],
)
def test_mistakes(files, more, message):
    assert message in mistake(*arguments(files, *more))


def test_an_option_that_is_a_setting_is_named():
    code, _, err = run("finetune", "model", "--class-weights", "balanced")
    assert code == 2
    assert "No such option: --class-weights; settings that have no option are set by --set class_weights=VALUE." in err


def test_a_model_is_missing(files):
    message = mistake("finetune", "--train", files / "train.tsv")
    assert "A model's folder or name must be given" in message
    assert "--pretrained" not in message  # there is no such option


def test_ragged_rows_of_several_shards_are_left_out(files, tmp_path):
    for name in ("train-0.tsv", "train-1.tsv", "dev.tsv"):
        (tmp_path / name).write_text("text\tlabel\na\tgloomy\nb\tgloomy\textra\n")
    with pytest.warns(UserWarning, match="1 rows were left out"):
        options = options_for(files, tmp_path / "run", train=tmp_path, ragged_rows="drop")
    assert options.train.read_text() == 2 * '{"text": "a", "label": "gloomy"}\n'


@pytest.mark.exhaustive
def test_a_folder_of_splits_and_renamed_columns(files, tmp_path):
    data = tmp_path / "data"
    data.mkdir()
    for split in ("train", "validation"):
        lines = (files / "train.tsv").read_text(encoding="utf-8").replace("\t", ";").replace("text;label", "satz;label")
        (data / f"{split}.csv").write_text(lines, encoding="utf-16")
    pretrained = arguments(files)[1]
    options = ("--set", "rename_columns.satz=text", "--max-length", 32, "--epochs", 1, "--output", tmp_path / "run")
    code, _, err = run("finetune", pretrained, "--train", data, "--dev", data, *options)
    assert code == 0, err
    assert re.search(r"train: \d+ texts, separated by ';', in utf-16\ndev: \d+ texts, separated", err)
    evaluate = ("evaluate", tmp_path / "run", "--data", data, "--set")
    assert "`rename_columns` is invalid" in mistake(*evaluate, "rename_columns=text")
    assert "Unknown key 'epochs' in --set; it must be one of header, rename_columns" in mistake(*evaluate, "epochs=3")


@pytest.mark.exhaustive
def test_columns_of_labels_are_those_of_evaluations_too(files, tmp_path):
    decisions = {"a film": (1, 0, 0), "cheap": (0, 1, 0), "a cheap film": (1, 1, 0), "nothing": (0, 0, 0)}
    lines = [",".join(map(str, (text, *row))) for text, row in decisions.items()] * 3
    table, topics = tmp_path / "topics.csv", ("--set", 'label_columns=["film", "price", "war"]')
    table.write_text("\n".join(["text,film,price,war", *lines]), encoding="utf-8")
    train = ("finetune", files / "pretrained", "--train", table, "--dev", table, "--output", tmp_path / "run", *topics)
    output_of(*train, "--problem", "multi_label", "--epochs", 1, "--max-length", 16)
    config = json.loads((tmp_path / "run/config.json").read_text(encoding="utf-8"))
    assert list(config["id2label"].values()) == ["film", "price", "war"]
    evaluate = ("evaluate", tmp_path / "run", "--json", "--set", "threshold=0.4", "--data")
    expected = json.loads(output_of(*evaluate, table))
    assert expected["examples"] == 12
    names = ("film", "price", "war")
    cells = ["|".join(name for name, one in zip(names, row) if one) for row in decisions.values()]
    (tmp_path / "cells.tsv").write_text(
        "\n".join(["text\ttopics", *[*map("\t".join, zip(decisions, cells))] * 3]).replace("|", ","), encoding="utf-8"
    )
    assert (
        json.loads(output_of(*evaluate, tmp_path / "cells.tsv", "--label-column", "topics"))["scores"]
        == (expected["scores"])
    )
    reordered = output_of(*evaluate, table, "--set", 'label_columns=["war", "film", "price"]')
    assert json.loads(reordered)["scores"] == expected["scores"]
    message = mistake(*evaluate, table, "--set", 'label_columns=["film", "war"]')
    assert "must name a column for each label of the model: film, price, war. Received: film, war" in message
    output_of("predict", tmp_path / "run", "--data", table, "--output", tmp_path / "labels.csv")
    header = (tmp_path / "labels.csv").read_text(encoding="utf-8").splitlines()[0]
    assert header.endswith(",probability of war,line,text")
