"""Proves `fit` on JAX and PyTorch: the reference's twelve steps from its batches, and logs of the whole set."""

import json

import keras
import numpy as np
import pytest

from albert_tf import AlbertForPreTraining
from albert_tf.checkpoints.names import rows
from albert_tf.optimizers import AdamW, Lamb, WarmupSchedule
from tests.models.small import CONFIG, make_pretraining_batch

LABELS = ("masked_lm_ids", "masked_lm_weights", "sentence_order_labels")
OUR_NAMES = {"input_mask": "attention_mask", "segment_ids": "token_type_ids"}


@pytest.mark.parametrize(("name", "kind"), [("O1_lamb", Lamb), ("O2_adamw", AdamW)])
def test_twelve_steps_of_the_reference_from_its_batches(name, kind, golden, weights):
    case = golden(name)
    settings = json.loads((case.folder / "settings.json").read_text())
    schedule = WarmupSchedule(
        settings["init_lr"], settings["num_train_steps"], settings["num_warmup_steps"], reference_jump=True
    )
    model = AlbertForPreTraining.from_pretrained(weights / name)
    model.compile(kind(schedule, bias_correction=False, global_clipnorm=1.0))
    batches = {key.removeprefix("batch:"): array for key, array in case.arrays.items() if key.startswith("batch:")}
    losses = []
    for step in range(12):
        batch = {OUR_NAMES.get(key, key): array[step] for key, array in batches.items()}
        labels = {key: batch.pop(key) for key in LABELS}
        losses += model.fit(batch, labels, batch_size=len(labels["masked_lm_ids"]), verbose=0).history["loss"]
        if step + 1 in (2, 12):
            assert_variables(model, case.arrays, step + 1, atol={2: 2e-6, 12: 3e-5}[step + 1])
    np.testing.assert_allclose(losses, case.arrays["total_loss"], atol=1e-5, rtol=0)


def assert_variables(model, arrays, step, atol):
    google_name = {row.path: row.google for row in rows(model.config)}
    for path, variable in model.variables_by_path().items():
        expected = arrays[f"step_{step:02}/var:{google_name[path]}"]
        expected = expected.T if google_name[path].endswith("output_weights") else expected
        found = keras.ops.convert_to_numpy(variable)
        np.testing.assert_allclose(found, expected, atol=atol, rtol=0, err_msg=f"step {step} {path}")


def test_logs_are_of_the_whole_set():
    inputs, labels = make_pretraining_batch(8)
    model = AlbertForPreTraining(CONFIG)
    model.compile(Lamb(0.02))
    outputs = {name: keras.ops.convert_to_numpy(array) for name, array in model(inputs).items()}
    logs = model.evaluate(inputs, labels, batch_size=3, return_dict=True, verbose=0)
    assert set(logs) == {"loss", *model.reported_terms()}
    rights = np.argmax(outputs["masked_lm_logits"], -1) == labels["masked_lm_ids"]
    order = np.argmax(outputs["sentence_order_logits"], -1) == labels["sentence_order_labels"]
    assert logs["masked_lm_accuracy"] == pytest.approx(
        np.average(rights, weights=labels["masked_lm_weights"]), abs=1e-6
    )
    assert logs["sentence_order_accuracy"] == pytest.approx(order.mean(), abs=1e-6)
    log_probabilities = keras.ops.convert_to_numpy(keras.ops.log_softmax(outputs["masked_lm_logits"]))
    losses = -np.take_along_axis(log_probabilities, labels["masked_lm_ids"][..., None], -1)[..., 0]
    expected = np.average(losses, weights=labels["masked_lm_weights"])
    assert logs["masked_lm_loss"] == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("way", [{"scan_layers": True}, {"remat": "block"}], ids=["loop", "recomputed"])
@pytest.mark.parametrize("dropout", [0.0, 0.1])
def test_other_ways_to_call_layers_train_as_separate_calls_do(dropout, way):
    inputs, labels = make_pretraining_batch(4)
    config = CONFIG.replace(
        num_hidden_layers=4, hidden_dropout_prob=dropout, attention_probs_dropout_prob=dropout, initializer_range=0.5
    )
    found = []
    for arguments in ({}, way):
        keras.utils.set_random_seed(3)
        model = AlbertForPreTraining(config)
        model.compile(keras.optimizers.SGD(0.02), **arguments)
        outputs = [model.predict_on_batch(inputs)["masked_lm_logits"]]
        losses = [float(model.train_on_batch(inputs, labels, return_dict=True)["loss"]) for _ in range(2)]
        outputs.append(model.predict_on_batch(inputs)["masked_lm_logits"])
        assert np.max(np.abs(outputs[1] - outputs[0])) > 0.1
        found.append([losses, *outputs, *model.get_weights()])
    for plain, other in zip(*found, strict=True):
        np.testing.assert_allclose(other, plain, atol=1e-4, rtol=0)


def test_epochs_with_dropout_learn_the_batch():
    keras.utils.set_random_seed(3)
    inputs, labels = make_pretraining_batch(8)
    model = AlbertForPreTraining(CONFIG.replace(hidden_dropout_prob=0.1, attention_probs_dropout_prob=0.1))
    model.compile(AdamW(0.01, global_clipnorm=1.0))
    history = model.fit(inputs, labels, batch_size=4, epochs=15, verbose=0).history
    assert history["masked_lm_loss"][-1] < 0.7 * history["masked_lm_loss"][0]
    assert history["loss"][0] == pytest.approx(
        history["masked_lm_loss"][0] + history["sentence_order_loss"][0], rel=0.1
    )
