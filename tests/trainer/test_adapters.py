"""Low-rank updates and layers that no longer share: what is trained, what stays, and what is saved."""

import numpy as np
import pytest

from albert_tf import AlbertForMaskedLM, AlbertForSequenceClassification, pipeline
from albert_tf.checkpoints import read
from albert_tf.trainer import finetune
from albert_tf.trainer.evaluation import evaluate_folder
from tests.toy_task import CONFIG
from tests.trainer import mood_runs
from tests.trainer.mood_runs import write_files


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return write_files(tmp_path_factory.mktemp("adapters"))


def options_for(files, output, **changes):
    values = {"train": files / "dev.tsv", "dev": files / "dev.tsv", "epochs": 2, "learning_rate": 1e-2}
    return mood_runs.options_for(files, output, **{**values, **changes})


def test_layers_that_no_longer_share_start_equal(files):
    ids = np.arange(5, 37).reshape(2, 16)
    shared = AlbertForMaskedLM.from_pretrained(files / "pretrained")
    own = AlbertForMaskedLM.from_pretrained(files / "pretrained", share="none")
    assert own.config.num_attention_groups == CONFIG.num_hidden_layers
    np.testing.assert_array_equal(own(ids)["logits"], shared(ids)["logits"])
    own.save_pretrained(files / "own")
    with pytest.raises(ValueError, match="`share` must not make layers share weights that differ"):
        AlbertForMaskedLM.from_pretrained(files / "own", num_hidden_groups=1, share="all")


@pytest.mark.exhaustive
def test_updates_of_each_layer_are_trained_alone_and_saved_in_the_kernels(files, tmp_path):
    report = finetune(options_for(files, tmp_path / "run", share="none", lora_rank=2))
    hidden, layers = CONFIG.hidden_size, CONFIG.num_hidden_layers
    assert report.trained_parameters == layers * 2 * 2 * hidden * 2 + hidden * 2 + 2
    before, after = read(files / "pretrained").arrays, read(tmp_path / "run").arrays
    for path, array in after.items():
        origin = path.replace("_1_0/", "_0_0/")
        if origin in before and not path.endswith(("query/kernel", "value/kernel")):
            np.testing.assert_array_equal(array, before[origin], err_msg=path)
    for path in ("query/kernel", "value/kernel"):
        first, second = (after[f"encoder/attention_{layer}_0/{path}"] for layer in range(2))
        origin = before[f"encoder/attention_0_0/{path}"]
        assert np.linalg.matrix_rank(first - origin, tol=1e-5) == np.linalg.matrix_rank(second - origin, tol=1e-5) == 2
        assert np.max(np.abs(first - second)) > 1e-3, "each layer has its own"
    assert evaluate_folder(tmp_path / "run", files / "dev.tsv")[1].scores == report.scores
    predictor = pipeline(tmp_path / "run")
    assert isinstance(predictor.model.model, AlbertForSequenceClassification)
    assert {prediction.label for prediction in predictor(["sun", "rain"])} <= {"gloomy", "pleasant"}


@pytest.mark.exhaustive
def test_what_is_saved_of_shared_layers_is_what_was_scored(files, tmp_path):
    options = options_for(files, tmp_path / "run", train=files / "train.tsv", lora_rank=4, epochs=6)
    report = finetune(options)
    assert report.scores.accuracy > report.constant_score.value
    assert evaluate_folder(tmp_path / "run", options.dev)[1].scores == report.scores


@pytest.mark.exhaustive
def test_frozen_parts_stay_and_are_not_counted(files, tmp_path):
    report = finetune(options_for(files, tmp_path / "run", epochs=1, freeze=["encoder"]))
    assert report.trained_parameters == CONFIG.hidden_size * 2 + 2
    before, after = read(files / "pretrained").arrays, read(tmp_path / "run").arrays
    for path in before.keys() & after.keys():
        np.testing.assert_array_equal(after[path], before[path], err_msg=path)
    for pattern, message in (("decoder", "must be found in the path.*classifier"), (".*", "must leave variables")):
        with pytest.raises(ValueError, match=message):
            finetune(options_for(files, tmp_path / "other", freeze=[pattern]))
