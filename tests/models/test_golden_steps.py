"""Proves `fit` on every backend: the reference's twelve steps from its batches, and logs of the whole set."""

import json

import keras
import numpy as np
import pytest
from keras import ops

from albert_tf import AlbertForPreTraining
from albert_tf.checkpoints.names import rows
from albert_tf.optimizers import AdamW, Lamb, WarmupSchedule
from tests.parameters import first_of

from .golden import WEIGHTS_OF
from .small import CONFIG, make_pretraining_batch

LABELS = ("masked_lm_ids", "masked_lm_weights", "sentence_order_labels")
OUR_NAMES = {"input_mask": "attention_mask", "segment_ids": "token_type_ids"}


@pytest.mark.parametrize(
    ("name", "kind", "jit_compile"),
    first_of([("O1_lamb", Lamb, False), ("O1_lamb", Lamb, True), ("O2_adamw", AdamW, False)]),
)
def test_twelve_steps_of_the_reference_from_its_batches(name, kind, jit_compile, golden):
    case = golden(name)
    settings = json.loads((case.folder / "settings.json").read_text())
    schedule = WarmupSchedule(
        settings["init_lr"], settings["num_train_steps"], settings["num_warmup_steps"], reference_jump=True
    )
    model = AlbertForPreTraining.from_pretrained(WEIGHTS_OF / name)
    jit_compile = jit_compile if keras.backend.backend() == "tensorflow" else "auto"
    model.compile(kind(schedule, bias_correction=False, global_clipnorm=1.0), jit_compile=jit_compile)
    batches = {key.removeprefix("batch:"): array for key, array in case.arrays.items() if key.startswith("batch:")}
    losses = []
    for step in range(12):
        batch = {OUR_NAMES.get(key, key): array[step] for key, array in batches.items()}
        labels = {key: batch.pop(key) for key in LABELS}
        size = len(labels["masked_lm_ids"])
        losses += model.fit(batch, labels, batch_size=size, shuffle=False, verbose=0).history["loss"]
        if step + 1 in (2, 12):
            assert_variables(model, case.arrays, step + 1, atol={2: 2e-6, 12: 3e-5}[step + 1])
    np.testing.assert_allclose(losses, case.arrays["total_loss"], atol=1e-5, rtol=0)


def assert_variables(model, arrays, step, atol):
    google_name = {row.path: row.google for row in rows(model.config)}
    for path, variable in model.variables_by_path().items():
        expected = arrays[f"step_{step:02}/var:{google_name[path]}"]
        expected = expected.T if google_name[path].endswith("output_weights") else expected
        found = ops.convert_to_numpy(variable)
        np.testing.assert_allclose(found, expected, atol=atol, rtol=0, err_msg=f"step {step} {path}")


def test_logs_are_of_the_whole_set():
    inputs, labels = make_pretraining_batch(8)
    model = AlbertForPreTraining(CONFIG)
    model.compile(Lamb(0.02))
    outputs = {name: ops.convert_to_numpy(array) for name, array in model(inputs).items()}
    logs = model.evaluate(inputs, labels, batch_size=3, return_dict=True, verbose=0)  # the last one counts for two rows
    assert set(logs) == {"loss", *model.reported_terms()}
    rights = np.argmax(outputs["masked_lm_logits"], -1) == labels["masked_lm_ids"]
    order = np.argmax(outputs["sentence_order_logits"], -1) == labels["sentence_order_labels"]
    weights = labels["masked_lm_weights"]
    assert logs["masked_lm_accuracy"] == pytest.approx(np.average(rights, weights=weights), abs=1e-6)
    assert logs["sentence_order_accuracy"] == pytest.approx(order.mean(), abs=1e-6)
    log_probabilities = ops.convert_to_numpy(ops.log_softmax(outputs["masked_lm_logits"]))
    losses = -np.take_along_axis(log_probabilities, labels["masked_lm_ids"][..., None], -1)[..., 0]
    assert logs["masked_lm_loss"] == pytest.approx(np.average(losses, weights=weights), abs=1e-5)
