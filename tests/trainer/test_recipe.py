"""Recipes: what is wrong with one is said in one sentence, and all that ship are right."""

import copy
import math

import pytest

from albert_tf.trainer import load_recipe, parse_recipe
from tests.small_pipeline import REPOSITORY

RECIPES = sorted((REPOSITORY / "training/recipes").glob("*.toml"))
SMALL = {"quickstart", "nsmc", "nsmc_corpus", "novels"}
SCALING = {"rule": "sqrt", "reference_learning_rate": 0.00176, "reference_batch_size": 4096}
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
        (renamed("training", "batch_size", "bach_size"), "'training.bach_size'.*did you mean 'batch_size'"),
        (changed("model", "hiden_size", 8), "'model.hiden_size' in the recipe; did you mean 'hidden_size'"),
        (changed("model", "wait", 8), "'model.wait' in the recipe; remove it"),
        ({**GOOD, "optimiser": {}}, "'optimiser'.*did you mean 'optimizer'"),
        (changed("model", "preset", "base_v3"), "`preset` must be one of tiny.* in the recipe; did you mean 'base_v"),
        ({**GOOD, "model": {"hidden_size": 64}}, "must have `preset`, or `weights`, or all sizes. Missing"),
        (changed("model", "hidden_size", 130), "multiple of `num_attention_heads`"),
        (changed("optimizer", "learning_rate", -1), "`optimizer.learning_rate` is invalid.*Received: -1"),
        (changed("optimizer", "learning_rate", math.nan), "`optimizer.learning_rate` is invalid.*finite"),
        (changed("optimizer", "learning_rate_rules", [["bias", math.nan]]), "learning_rate_rules.*finite"),
        (changed("training", "batch_size", "32"), "`training.batch_size` is invalid.*Received: '32'"),
        (changed("training", "num_train_steps", 10**23), "`training.num_train_steps` is invalid.*less than"),
        (changed("data", "texts", ["corpus.txt"]), "'data.texts'.*remove it"),
        (changed("optimizer", "num_warmup_steps", 10**6), "must end within the run.*to step 1000000, num_train_steps="),
        (changed("training", "log_every", 33), "multiple of `log_every`"),
        ({key: value for key, value in GOOD.items() if key != "training"}, "`training` is missing"),
        (changed("training", "gradient_accumulation_steps", 3), "`gradient_accumulation_steps` must divide"),
        (changed("training", "remat", "blocks"), '`remat` must be "none", "block" or a number'),
        ({**GOOD, "optimizer": {}}, "Either `optimizer.learning_rate` or .* Received: neither"),
        (changed("optimizer", "learning_rate_scaling", SCALING), "Either `optimizer.learning_rate` or .* both"),
        (
            {**GOOD, "optimizer": {"learning_rate_scaling": {**SCALING, "reference_bach_size": 1}}},
            "'optimizer.learning_rate_scaling.reference_bach_size'.*did you mean 'reference_batch_size'",
        ),
        (changed("optimizer", "learning_rate_rules", [["bias", -1.0]]), "learning_rate_rules.* greater than or equal"),
        ({**GOOD, "optimizer": {**GOOD["optimizer"], "name": "adamw", "log_trust_ratios": True}}, "unless .* is .lamb"),
    ],
)
def test_a_wrong_value_is_named_with_its_cure(values, message):
    with pytest.raises(ValueError, match=message) as caught:
        parse_recipe(values)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("rule", "expected"), [("sqrt", 0.00176 * (512 / 4096) ** 0.5), ("linear", 0.00176 / 8)])
def test_a_rule_gives_the_rate_for_a_batch(rule, expected):
    optimizer = parse_recipe({**GOOD, "optimizer": {"learning_rate_scaling": {**SCALING, "rule": rule}}}).optimizer
    assert optimizer.peak(512) == pytest.approx(expected, rel=1e-9)
    assert optimizer.peak(4096) == 0.00176
    built = optimizer.build(100, 512)
    assert built.learning_rate.numpy() == pytest.approx(expected, rel=1e-5)


def test_the_published_rate_with_a_small_batch_is_warned_of():
    optimizer = parse_recipe(changed("optimizer", "learning_rate", 0.00176)).optimizer
    with pytest.warns(UserWarning, match=r"published for batches of 4096.*batch_size=512.*Use 0.000622"):
        optimizer.warn_if_unscaled(512)
    optimizer.warn_if_unscaled(4096)  # a warning would be an error
    parse_recipe(changed("optimizer", "learning_rate", 0.0006)).optimizer.warn_if_unscaled(512)


def test_everything_about_the_optimizer_reaches_it():
    given = {"decay": "linear", "start_warmup_step": 3, "num_warmup_steps": 2, "ema_momentum": 0.9}
    given |= {"learning_rate_rules": [["bias", 2.0], [".*", 1.0]], "log_trust_ratios": True}
    config = parse_recipe({**GOOD, "optimizer": {**GOOD["optimizer"], **given}}).optimizer.build(50, 8).get_config()
    schedule = config["learning_rate"]["config"]
    assert (schedule["decay"], schedule["start_warmup_step"], schedule["num_train_steps"]) == ("linear", 3, 50)
    assert (config["use_ema"], config["ema_momentum"], config["keep_trust_ratios"]) == (True, 0.9, True)
    assert config["learning_rate_rules"] == [["bias", 2.0], [".*", 1.0]]


@pytest.mark.parametrize(("content", "message"), [("[model\n", "not valid TOML"), ("a = " + "[" * 10**5, "nested")])
def test_a_file_that_is_not_toml_is_named(tmp_path, content, message):
    file = tmp_path / "broken.toml"
    file.write_text(content, encoding="utf-8")
    with pytest.raises(ValueError, match=rf"broken\.toml .*{message}"):
        load_recipe(file)


def test_settings_override_the_recipe():
    file = REPOSITORY / "training/recipes/base_v2.toml"
    recipe = load_recipe(file, ["training.seed=3", "optimizer.decay=linear", "model.num_hidden_layers=6"])
    assert (recipe.training.seed, recipe.optimizer.decay, recipe.config.num_hidden_layers) == (3, "linear", 6)
    assert recipe.training.batch_size == load_recipe(file).training.batch_size
    with pytest.raises(ValueError, match=r"Unknown key 'training.bach_size' in .*did you mean 'batch_size'"):
        load_recipe(file, ["training.bach_size=4"])


@pytest.mark.parametrize("file", RECIPES, ids=lambda file: file.stem)
def test_published_recipes_are_of_the_published_size(file):
    recipe = load_recipe(file)
    if file.stem not in SMALL:
        size, version = file.stem.split("_")
        assert recipe.model == {"preset": f"{size}_{version}"}
        assert recipe.config.hidden_dropout_prob == (0.1 if version == "v1" and size != "xxlarge" else 0.0)
        assert recipe.training.batch_size == 4096


def test_all_published_runs_have_a_recipe():
    names = {f"{size}_{version}" for size in ("base", "large", "xlarge", "xxlarge") for version in ("v1", "v2")}
    assert {file.stem for file in RECIPES} == names | SMALL


def test_the_folder_to_train_on_is_replaced_whatever_its_kind(tmp_path):
    path = tmp_path / "recipe.toml"
    path.write_text(
        '[model]\npreset = "tiny"\n[data]\nexamples = "examples"\nheldout = "heldout"\n'
        "[optimizer]\nlearning_rate = 0.1\n"
        "[training]\nnum_train_steps = 100\nbatch_size = 8\nevaluate_every = 100\nsave_every = 100\n"
    )
    data = load_recipe(path, examples=None, documents=tmp_path / "documents").data
    assert (data.examples, data.documents, data.source) == (None, tmp_path / "documents", tmp_path / "documents")
    assert str(data.heldout) == "heldout"
    assert str(load_recipe(path, documents=None).data.source) == "examples"
