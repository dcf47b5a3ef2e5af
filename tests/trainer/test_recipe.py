"""Recipes: what is wrong with one is said in one sentence, and all that ship are right."""

import copy

import pytest

from albert_tf.trainer import load_recipe, parse_recipe
from tests.small_road import REPOSITORY

RECIPES = sorted((REPOSITORY / "training/recipes").glob("*.toml"))
GOOD = {
    "model": {"preset": "tiny"},
    "data": {"examples": "examples"},
    "optimizer": {"learning_rate": 1e-3},
    "training": {"num_train_steps": 100, "batch_size": 8, "evaluate_every": 100, "save_every": 100},
}


def changed(section: str, key: str, value) -> dict:
    recipe = copy.deepcopy(GOOD)
    recipe[section][key] = value
    return recipe


def renamed(section: str, old: str, new: str) -> dict:
    recipe = changed(section, new, GOOD[section][old])
    del recipe[section][old]
    return recipe


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (changed("optimizer", "learning_rat", 1), "'optimizer.learning_rat'.*did you mean 'learning_rate'"),
        (changed("training", "batchsize", 8), "'training.batchsize'.*did you mean 'batch_size'"),
        (renamed("training", "batch_size", "bach_size"), "'training.bach_size'.*did you mean 'batch_size'"),
        (changed("model", "hiden_size", 8), "'hiden_size'.*did you mean 'hidden_size'"),
        ({**GOOD, "optimiser": {}}, "'optimiser'.*did you mean 'optimizer'"),
        (changed("model", "preset", "base_v3"), "did you mean 'base_v"),
        (changed("model", "hidden_size", 130), "multiple of `num_attention_heads`"),
        (changed("optimizer", "learning_rate", -1), "`optimizer.learning_rate` must be valid.*Received: -1"),
        (changed("training", "log_every", 33), "multiple of `log_every`"),
        ({key: value for key, value in GOOD.items() if key != "training"}, "`training` must be given"),
    ],
)
def test_a_wrong_value_is_named_with_its_cure(values, message):
    with pytest.raises(ValueError, match=message) as caught:
        parse_recipe(values)
    assert "\n" not in str(caught.value)


def test_a_file_that_is_not_toml_is_named(tmp_path):
    file = tmp_path / "broken.toml"
    file.write_text("[model\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"broken\.toml"):
        load_recipe(file)


def test_data_on_the_command_line_replaces_the_recipes(tmp_path):
    recipe = load_recipe(REPOSITORY / "training/recipes/base_v2.toml", examples=tmp_path / "mine", heldout=None)
    assert recipe.data.examples == tmp_path / "mine"
    assert recipe.data.heldout is None


@pytest.mark.parametrize("file", RECIPES, ids=lambda file: file.stem)
def test_published_recipes_are_of_the_published_size(file):
    recipe = load_recipe(file)
    if file.stem != "quickstart":
        size, version = file.stem.split("_")
        assert recipe.model == {"preset": f"{size}_{version}"}
        assert recipe.config.hidden_dropout_prob == (0.1 if version == "v1" and size != "xxlarge" else 0.0)
        assert recipe.training.batch_size == 4096


def test_all_published_runs_have_a_recipe():
    names = {f"{size}_{version}" for size in ("base", "large", "xlarge", "xxlarge") for version in ("v1", "v2")}
    assert {file.stem for file in RECIPES} == names | {"quickstart"}
