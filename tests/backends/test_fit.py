"""Proves `fit` on JAX and PyTorch: other ways to call layers, and epochs with dropout."""

import keras
import numpy as np
import pytest

from albert_tf import AlbertForPreTraining
from albert_tf.optimizers import AdamW
from tests.models.small import CONFIG, make_pretraining_batch


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
