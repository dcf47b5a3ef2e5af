"""What recipes say about updates reaches the run; a bad loss stops it with its reason; averages are resumed."""

import json
import math

import keras
import numpy as np
import pytest
import safetensors.numpy
import tensorflow as tf

from albert_tf import AlbertForPreTraining
from albert_tf.optimizers import Lamb
from albert_tf.trainer import parse_recipe, pretrain
from albert_tf.trainer.callbacks import GradientLog, MetricsLog, StopAtBadLoss
from albert_tf.trainer.checkpoint_files import latest_valid_checkpoint
from albert_tf.trainer.recipe import TrainingRecipe
from albert_tf.trainer.run_folder import read_metrics
from albert_tf.trainer.run_state import TrainingState
from tests.models.small import CONFIG, make_pretraining_batch
from tests.small_pipeline import small_recipe

DROPOUT = CONFIG.replace(hidden_dropout_prob=0.1, attention_probs_dropout_prob=0.1)
BATCHES = tf.data.Dataset.from_tensor_slices(make_pretraining_batch(24)).batch(4, drop_remainder=True)


def make_model(optimizer=None, config=CONFIG, **compile_arguments):
    keras.utils.set_random_seed(3)
    model = AlbertForPreTraining(config)
    model.compile(optimizer or Lamb(0.02), run_eagerly=True, **compile_arguments)  # quicker than to trace
    return model


@pytest.fixture(scope="module")
def everything(pipeline, tmp_path_factory):
    recipe = small_recipe(pipeline, num_train_steps=20, jit_compile=False, dtype_policy="mixed_float16")
    recipe["training"] |= {"gradient_accumulation_steps": 4, "remat": "block", "evaluate_every": 20}
    recipe["optimizer"] |= {"ema_momentum": 0.9, "log_trust_ratios": True, "decay": "linear", "start_warmup_step": 2}
    recipe["optimizer"]["learning_rate_rules"] = [["word_embeddings", 0.0], [".*", 1.0]]
    recipe["model"]["hidden_size"] = 16
    output = tmp_path_factory.mktemp("everything") / "run"
    report = pretrain(parse_recipe(recipe), output, show_progress=False)
    assert keras.config.dtype_policy().name == "float32"  # the run's own is none of other models' business
    return recipe, report


def weights(report):
    return safetensors.numpy.load_file(report.model_folder / "model.safetensors")


@pytest.mark.exhaustive
def test_intervals_tell_of_gradients(everything):
    entries = read_metrics(everything[1].metrics_file)
    assert [entry["step"] for entry in entries] == [10, 20]
    for entry in entries:
        assert entry["gradient_norm"] > 0
        assert entry["loss_scale"] >= 2**10
        ratios = {name: value for name, value in entry.items() if name.startswith("trust_ratio/")}
        assert "trust_ratio/encoder/attention_0_0/query/kernel" in ratios
        assert all(ratio > 0 for ratio in ratios.values())
    assert math.isfinite(everything[1].results["loss"])


@pytest.mark.exhaustive
def test_the_model_is_the_average_and_a_finished_run_gives_it_again(everything):
    recipe, report = everything
    checkpoint = tf.train.load_checkpoint(str(report.model_folder.parent / "checkpoints/step-20/state"))
    arrays = [
        checkpoint.get_tensor(name) for name in checkpoint.get_variable_to_shape_map() if name.startswith("model/")
    ]
    saved = weights(report)["albert.embeddings.position_embeddings.weight"]
    # The checkpoint goes on from the weights themselves.
    like = [array for array in arrays if array.shape == saved.shape]
    assert like
    assert not any(np.array_equal(array, saved) for array in like)
    again = pretrain(parse_recipe(recipe), report.model_folder.parent, show_progress=False)
    for name, array in weights(again).items():
        np.testing.assert_array_equal(array, weights(report)[name], err_msg=name)
    assert again.results == report.results


@pytest.mark.exhaustive
def test_behind_a_scaled_loss_the_optimizer_is_known(everything):
    recipe, report = everything
    changed = {**recipe, "optimizer": {**recipe["optimizer"], "name": "adamw", "log_trust_ratios": False}}
    with (
        pytest.warns(UserWarning, match="has changed"),
        pytest.raises(ValueError, match="saved with the optimizer Lamb, but the recipe has AdamW"),
    ):
        pretrain(parse_recipe(changed), report.model_folder.parent, show_progress=False, allow_changed=True)


@pytest.mark.exhaustive
def test_averages_and_the_scale_of_the_loss_are_resumed(tmp_path):
    training = TrainingRecipe(num_train_steps=100, batch_size=4)

    def start(folder):
        inner = Lamb(0.02, use_ema=True, ema_momentum=0.8)
        model = make_model(keras.optimizers.LossScaleOptimizer(inner, initial_scale=3e38), DROPOUT)
        return model, TrainingState(folder, model, training, {})

    class Save(keras.callbacks.Callback):
        def on_epoch_end(self, epoch, logs=None):
            stopped_state.save()
            stopped_state.writer.wait()

    whole, _ = start(tmp_path / "whole")
    whole.fit(BATCHES, shuffle=False, verbose=0)
    stopped, stopped_state = start(tmp_path / "run")
    stopped.fit(BATCHES.take(3), shuffle=False, verbose=0, callbacks=[Save()])
    resumed, state = start(tmp_path / "run")
    state.restore(latest_valid_checkpoint(tmp_path / "run"))
    assert state.step == 3  # skipped steps count
    resumed.fit(BATCHES.skip(3), shuffle=False, verbose=0)
    for a, b in zip(whole.get_weights(), resumed.get_weights(), strict=True):
        np.testing.assert_array_equal(a, b)
    scale = float(resumed.optimizer.dynamic_scale.numpy())
    assert scale == float(whole.optimizer.dynamic_scale.numpy())
    assert scale < 3e38


def poisoned(step, value):
    """Batches of which one has a label weight that no arithmetic survives."""

    def poison(index, batch):
        inputs, labels = batch
        labels["masked_lm_weights"] *= tf.where(index == step - 1, value, 1.0)
        return inputs, labels

    return BATCHES.enumerate().map(poison)


@pytest.mark.exhaustive
@pytest.mark.parametrize("steps_per_execution", [1, 6])
def test_a_loss_that_is_not_finite_is_named_with_step_rate_and_gradients(steps_per_execution):
    model = make_model(steps_per_execution=steps_per_execution)
    with pytest.raises(ValueError, match="The loss is not finite") as caught:
        model.fit(poisoned(3, math.nan), shuffle=False, verbose=0, callbacks=[StopAtBadLoss()])
    sentence = str(caught.value)
    assert "The loss is not finite: nan at step 3 with learning rate 0.02, 2" in sentence
    assert "the largest gradients of the last finite step: " in sentence
    assert sentence.count("/") >= 10  # paths
    assert "nan" not in sentence.split("last finite step: ")[1]
    assert "\n" not in sentence


def test_the_largest_gradients_come_first():
    model = make_model()
    inputs, labels = next(iter(BATCHES))
    with tf.GradientTape() as tape:
        terms = model.loss_terms(labels, model(inputs, training=True))
        loss = sum(term.mean() for term in terms.values())
    norms = {
        v.path: float(tf.norm(g))
        for v, g in zip(model.trainable_variables, tape.gradient(loss, model.trainable_variables))
    }
    model.train_on_batch(inputs, labels)
    report = model.step_monitor.snapshot()
    assert report.norms == pytest.approx(norms, rel=1e-4)
    assert model.step_monitor.gradient_norm == pytest.approx(np.linalg.norm(list(norms.values())), rel=1e-4)
    callback = StopAtBadLoss(stop_above_best=0.1)
    callback.set_model(model)
    callback.on_train_begin()
    callback.on_epoch_end(0, {"loss": 2.0})
    callback.on_epoch_end(1, {"loss": 2.05})
    with pytest.raises(ValueError, match=r"loss has risen to 2.200, .* the best, 2.000, at step 1 with") as caught:
        callback.on_epoch_end(2, {"loss": 2.2})
    largest = sorted(norms, key=norms.__getitem__, reverse=True)[:10]
    assert [str(caught.value).find(path) for path in largest] == sorted(
        str(caught.value).find(path) for path in largest
    )
    assert all(path in str(caught.value) for path in largest)


def test_an_explosion_after_a_resume_is_measured_by_the_losses_before(tmp_path):
    file = tmp_path / "metrics.jsonl"
    file.write_text(json.dumps({"step": 0, "loss": 0.5}) + "\n")
    callbacks = [GradientLog(), MetricsLog(file), StopAtBadLoss(3.0, file)]
    with pytest.raises(ValueError, match=r"stop_above_best = 3 above the best, 0\.500"):
        make_model().fit(BATCHES.take(1), shuffle=False, verbose=0, callbacks=callbacks)
    assert read_metrics(file)[-1]["loss"] > 3.5
