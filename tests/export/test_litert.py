"""Proves that LiteRT files give the Keras models' outputs, hold shared weights once, and shrink with int8."""

import keras
import numpy as np
import pytest
from ai_edge_litert.interpreter import Interpreter

from albert_tf import models
from albert_tf.export.litert import write_litert
from tests.toy_task import CONFIG

INPUTS = {
    "input_ids": np.random.default_rng(0).integers(5, 30000, (2, 16)).astype(np.int32),
    "attention_mask": (np.arange(16) < [[16], [9]]).astype(np.int32),
    "token_type_ids": np.tile(np.repeat([0, 1], 8), (2, 1)).astype(np.int32),
}


@pytest.mark.exhaustive
@pytest.mark.parametrize(("int8", "tolerance"), [(False, 1e-5), (True, 0.1)])
def test_outputs_are_the_models(tmp_path, int8, tolerance):
    keras.utils.set_random_seed(7)
    model = models.AlbertForSequenceClassification(CONFIG.replace(num_hidden_layers=6), num_labels=3)
    size = write_litert(model, tmp_path / "model.tflite", length=16, batch_size=2, int8=int8)
    assert size == (tmp_path / "model.tflite").stat().st_size < (1.5 if int8 else 4.4) * model.count_params()
    run = Interpreter(str(tmp_path / "model.tflite")).get_signature_runner()
    np.testing.assert_allclose(run(**INPUTS)["logits"], model(INPUTS, training=False)["logits"], rtol=0, atol=tolerance)


def test_other_inputs_are_refused(tmp_path):
    with pytest.raises(ValueError, match=r"`model` must take ids of shape \[B, L\]\. Received"):
        write_litert(models.AlbertForMultipleChoice(CONFIG), tmp_path / "model.tflite")
