"""Proves that LiteRT files give the Keras models' outputs, hold shared weights once, and shrink with int8."""

import keras
import numpy as np
import pytest
from ai_edge_litert.interpreter import Interpreter

from albert_tf import models
from albert_tf.export import export_litert
from tests.toy_task import CONFIG, tokenizer

INPUTS = {
    "input_ids": np.random.default_rng(0).integers(5, 30000, (1, 16)).astype(np.int32),
    "attention_mask": (np.arange(16) < [[9]]).astype(np.int32),
    "token_type_ids": np.repeat([[0, 1]], 8, axis=1).astype(np.int32),
}


@pytest.mark.exhaustive
@pytest.mark.parametrize(("int8", "tolerance"), [(False, 1e-5), (True, 0.1)])
def test_outputs_are_the_models(tmp_path, int8, tolerance):
    keras.utils.set_random_seed(7)
    model = models.AlbertForSequenceClassification(CONFIG.replace(num_hidden_layers=6), num_labels=3)
    model.save_pretrained(tmp_path / "model")
    tokenizer().save_pretrained(tmp_path / "model")
    report = export_litert(tmp_path / "model", tmp_path, "task", max_length=16, int8=int8)
    file = report.folder / "model.tflite"
    assert report.size == file.stat().st_size < (1.5 if int8 else 4.4) * model.count_params()
    run = Interpreter(str(file)).get_signature_runner()
    np.testing.assert_allclose(run(**INPUTS)["logits"], model(INPUTS, training=False)["logits"], rtol=0, atol=tolerance)


def test_other_inputs_are_refused(tmp_path):
    models.AlbertForMultipleChoice(CONFIG).save_pretrained(tmp_path / "model")
    tokenizer().save_pretrained(tmp_path / "model")
    with pytest.raises(ValueError, match=r"`source` must be a model whose ids are \[B, L\]\. Received"):
        export_litert(tmp_path / "model", tmp_path, "task")
