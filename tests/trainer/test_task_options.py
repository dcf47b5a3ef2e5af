"""Options of fine-tuning: the recipes that ship, and values that are refused before anything is read."""

import pytest

from albert_tf.files.json import read_toml
from albert_tf.files.validation import checked
from albert_tf.tasks.learned import learned_task
from albert_tf.trainer import FinetuneOptions
from tests.conftest import ROOT

RECIPES = sorted((ROOT / "training/recipes").glob("*/*.toml"))
FINETUNING = [file for file in RECIPES if file.parent.name in ("glue", "korean")]
PATHS = {"pretrained": "model", "train": "train.tsv", "dev": "dev.tsv", "output": "out"}
# Table 14 of the paper: learning rate, batch size, warm-up and training steps.
PAPER = {
    "cola": (1e-5, 16, 320, 5336),
    "sst2": (1e-5, 32, 1256, 20935),
    "mrpc": (2e-5, 32, 200, 800),
    "stsb": (2e-5, 16, 214, 3598),
    "qqp": (5e-5, 128, 1000, 14000),
    "mnli": (3e-5, 128, 1000, 10000),
    "qnli": (1e-5, 32, 1986, 33112),
    "rte": (3e-5, 32, 200, 800),
    "wnli": (2e-5, 16, 250, 2000),
}


@pytest.mark.parametrize("file", FINETUNING, ids=lambda file: file.stem)
def test_recipes_that_ship_are_valid(file):
    options = checked(FinetuneOptions, {**read_toml(file), **PATHS}, str(file))
    assert learned_task(options.task)(None, options.settings).main_score in (
        "accuracy",
        "f1",
        "f1_macro",
        "matthews",
        "pearson",
        "spearman",
    )


def test_glue_has_the_numbers_of_the_paper():
    assert {file.stem for file in FINETUNING if file.parent.name == "glue"} == set(PAPER)
    for name, (rate, batch_size, warmup, steps) in PAPER.items():
        options = checked(FinetuneOptions, {**read_toml(ROOT / f"training/recipes/glue/{name}.toml"), **PATHS})
        assert (options.learning_rate, options.batch_size) == (rate, batch_size)
        assert options.warmup_proportion == pytest.approx(warmup / steps, abs=1e-4)
        assert options.dropout == (0.1 if name in ("qqp", "rte", "wnli") else 0.0)
        assert options.head_dropout == 0.1


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"remat": -1}, "`remat` must be"),
        ({"batch_size": 10, "gradient_accumulation_steps": 4}, "must divide `batch_size`"),
        ({"task": "tagging"}, "`task` must be one of .*Received: tagging"),
        *(({"learning_rate": rate}, "`learning_rate` is invalid") for rate in (float("nan"), float("inf"), -1.0)),
        ({"epoch": 3}, "Unknown key 'epoch'.*did you mean 'epochs'"),
        ({"main_score": "f1", "task": "multiple_choice"}, "`main_score` must be left out for the task"),
        ({"train": None}, "a path, a URL, a DataFrame, .*Received: NoneType"),
        ({"doc_stride": 64}, "`doc_stride` must be left out without `windows`"),
        ({"doc_stride": 64, "task": "multiple_choice"}, "`doc_stride` must be left out for the task"),
        ({"windows": "mean", "task": "sentence_embedding"}, "`windows` must be left out for the task"),
        ({"windows": "mean", "pair_column": "second"}, "`windows` must be left out for pairs of texts"),
        ({"windows": "sum"}, "`windows` is invalid"),
        ({"objective": "ranking"}, "`objective` must be left out for the task"),
        ({"text_column": "question", "task": "question_answering"}, "`text_column` must be left out for the task"),
        ({"labels": ["a", "b"], "task": "multiple_choice"}, "`labels` must be left out for the task"),
        (
            {"class_weights": "balanced", "problem": "regression"},
            "`class_weights` must be left out unless texts have one",
        ),
        ({"threshold": 0.4}, "`threshold` must be left out unless problem='multi_label'"),
        *(
            (
                {"threshold": value, "problem": "multi_label"},
                "`threshold` must be a number from 0 to 1, such numbers by",
            )
            for value in (1.5, "high", {"law": -1})
        ),
        ({"positive_label": "yes", "problem": "regression"}, "`positive_label` must be left out unless texts have one"),
        ({"positive_label": "yes", "task": "token_classification"}, "`positive_label` must be left out for the task"),
        (
            {"gradient_accumulation_steps": 2, "task": "sentence_embedding", "objective": "ranking"},
            "`gradient_accumulation_steps` must be 1 with objective='ranking'.*remat='block'",
        ),
        ({"label_separator": ";"}, "`label_separator` must be left out unless problem='multi_label'"),
        ({"label_columns": ["a"]}, "`label_columns` must be left out unless problem='multi_label'"),
        (
            {"label_columns": ["a"], "label_column": "b", "problem": "multi_label"},
            "`label_columns` must name different columns, instead of `label_column`",
        ),
        ({"label_columns": ["a", "a"], "problem": "multi_label"}, "`label_columns` must name different columns"),
        ({"label_columns": ["a"], "task": "sentence_embedding"}, "`label_columns` must be left out for the task"),
        ({"from_scratch": True, "lora_rank": 4}, "`lora_rank` must be None with `from_scratch`"),
        ({"head_dropout": 0.1, "task": "question_answering"}, "`head_dropout` must be None for the task"),
        ({"labels": ["a", "b"], "problem": "regression"}, "`labels` must be left out where a number is predicted"),
        ({"negative_column": "other", "task": "sentence_embedding"}, "`negative_column` must be None with objective="),
        ({"learning_rate_rules": [["encoder", -1.0]]}, "`learning_rate_rules.*` is invalid.*greater than or equal"),
    ],
)
def test_wrong_values_are_refused(values, message):
    with pytest.raises(ValueError, match=message):
        checked(FinetuneOptions, {**PATHS, **values})


def test_a_problem_has_scores_of_its_own():
    options = FinetuneOptions(**PATHS, problem="multi_label", main_score="accuracy")
    with pytest.raises(ValueError, match="`main_score` must be one of f1_micro, f1_macro, exact_match for multi_label"):
        _ = learned_task(options.task)(None, options.settings).main_score
