"""A run may start from the weights of any checkpoint, whole or with a head started fresh by name."""

import shutil

import numpy as np
import pytest

from albert_tf import AlbertForMaskedLM, AlbertForPreTraining
from albert_tf.checkpoints import save_google
from albert_tf.trainer import parse_recipe, pretrain
from tests.small_pipeline import small_recipe

TRAINING = {"num_train_steps": 10, "log_every": 5, "save_every": 5, "evaluate_every": 10}


@pytest.fixture(scope="module")
def trained(pipeline, tmp_path_factory):
    """A model that has learnt a little."""
    recipe = parse_recipe(small_recipe(pipeline, **TRAINING))
    return pretrain(recipe, tmp_path_factory.mktemp("trained") / "run", show_progress=False)


def going_on(pipeline, weights, learning_rate=1e-12, **model):
    """A recipe that starts from weights; its rate is too low to move them."""
    values = small_recipe(pipeline, **TRAINING)
    values["model"] = {"weights": str(weights), **model}
    values["optimizer"]["learning_rate"] = learning_rate
    return parse_recipe(values)


@pytest.mark.exhaustive
def test_a_run_starts_from_weights_of_any_origin(pipeline, trained, tmp_path):
    model = AlbertForPreTraining.from_pretrained(trained.model_folder)
    save_google(model, tmp_path / "google/model.ckpt-best")
    report = pretrain(going_on(pipeline, tmp_path / "google"), tmp_path / "run", show_progress=False)
    for name, value in trained.results.items():
        assert report.results[name] == pytest.approx(value, abs=1e-5), name
    learning = pretrain(going_on(pipeline, trained.model_folder, 0.01), tmp_path / "learning", show_progress=False)
    assert learning.results["masked_lm_loss"] < trained.results["masked_lm_loss"]


@pytest.mark.exhaustive
def test_a_stopped_run_goes_on_from_its_checkpoint_not_from_the_weights(pipeline, trained, tmp_path):
    recipe = going_on(pipeline, trained.model_folder, 0.01)
    whole = pretrain(recipe, tmp_path / "whole", show_progress=False)
    stopped = shutil.copytree(tmp_path / "whole", tmp_path / "stopped")
    shutil.rmtree(stopped / "checkpoints/step-10")
    again = pretrain(recipe, stopped, show_progress=False)
    first, second = (report.model_folder / "model.safetensors" for report in (whole, again))
    assert first.read_bytes() == second.read_bytes()


@pytest.mark.exhaustive
def test_a_head_that_is_not_there_starts_fresh_only_when_asked(pipeline, trained, tmp_path):
    config = AlbertForPreTraining.from_pretrained(trained.model_folder).config
    model = AlbertForMaskedLM(config)
    model.save_pretrained(tmp_path / "masked_lm")
    with pytest.raises(ValueError, match="has no sentence_order: pass new_head"):
        pretrain(going_on(pipeline, tmp_path / "masked_lm"), tmp_path / "run", show_progress=False)
    assert not (tmp_path / "run").exists()
    report = pretrain(going_on(pipeline, tmp_path / "masked_lm", new_head=True), tmp_path / "run", show_progress=False)
    begun = AlbertForMaskedLM.from_pretrained(report.model_folder)
    for path, variable in model.variables_by_path().items():
        np.testing.assert_allclose(begun.variables_by_path()[path], variable, atol=1e-6, err_msg=path)


@pytest.mark.exhaustive
def test_a_run_on_longer_rows_starts_from_repeated_positions(pipeline, trained, tmp_path):
    longer = {"max_position_embeddings": 512, "attention": "block_local", "block_size": 128}
    recipe = going_on(pipeline, trained.model_folder, **longer)
    with pytest.warns(UserWarning, match="different outputs for inputs of more than 256"):
        report = pretrain(recipe, tmp_path / "run", show_progress=False)
    for name, value in trained.results.items():  # the rows of these data are short
        assert report.results[name] == pytest.approx(value, abs=1e-5), name


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ({"preset": "tiny"}, "either `preset` or `weights`"),
        ({"new_head": "yes"}, "true or false"),
        ({"weights": "nowhere"}, "nowhere"),
        ({"hidden_size": 64}, "query/kernel .* for "),
    ],
)
def test_a_start_that_cannot_be_is_refused(pipeline, tmp_path, model, message):
    AlbertForPreTraining(parse_recipe(small_recipe(pipeline)).config).save_pretrained(tmp_path / "start")
    with pytest.raises(ValueError, match=message):
        pretrain(going_on(pipeline, **{"weights": tmp_path / "start", **model}), tmp_path / "run", show_progress=False)
