"""Proves attention in one operation of the backend equal to the plain form, which is what gives attention scores."""

import re
from collections import Counter

import keras
import numpy as np
import pytest
from keras import ops

from albert_tf import AlbertEncoder, AlbertForPreTraining, AlbertForSequenceClassification
from albert_tf.layers import mask_to_bias
from albert_tf.layers.kernels import Plain, for_layers
from tests.models.small import CONFIG, make_masked_inputs, make_pretraining_batch

LENGTH = 13


@pytest.mark.parametrize(("dtype", "distance"), [("float32", 2e-6), ("mixed_bfloat16", 0.04)])
@pytest.mark.parametrize("kind", ["ragged", "packed", "full", "block_local"])
def test_outputs_are_those_of_the_plain_form(kind, dtype, distance):
    inputs = make_masked_inputs(kind, LENGTH)
    changes = {"attention": "block_local", "block_size": 3} if kind == "block_local" else {}
    encoder = AlbertEncoder(CONFIG.replace(initializer_range=0.2, **changes), dtype=dtype)
    fused = encoder(inputs)["sequence_output"]
    encoder.inference_kernels = Plain()
    plain = encoder(inputs)["sequence_output"]
    fused, plain = (ops.convert_to_numpy(ops.cast(array, "float32")) for array in (fused, plain))
    assert np.abs(plain).max() > 1
    is_text = inputs.get("attention_mask", np.ones((4, LENGTH))) > 0
    np.testing.assert_allclose(fused[is_text], plain[is_text], atol=distance, rtol=0)
    assert np.isfinite(fused).all()
    if kind != "block_local":  # where tokens of a row without any attend to what fills up blocks, too
        # Tokens that may attend to none have -10000 added to all logits in the plain form, which rounds them.
        np.testing.assert_allclose(fused, plain, atol=max(distance, 1e-3), rtol=0)


@pytest.mark.parametrize(("dtype", "distance"), [("float32", 1e-6), ("mixed_bfloat16", 2e-3)])
def test_gradients_are_those_of_the_plain_form(dtype, distance):
    inputs, labels = make_pretraining_batch(4)
    inputs["attention_mask"][1, 3:] = 0
    model = AlbertForPreTraining(CONFIG.replace(initializer_range=0.1), dtype=dtype)
    before, steps = model.get_weights(), []
    for kernels in (for_layers(), Plain()):
        model.set_weights(before)
        model.compile(keras.optimizers.SGD(1.0))
        model.encoder.training_kernels = kernels
        model.train_on_batch(inputs, labels)
        steps.append([after - start for after, start in zip(model.get_weights(), before, strict=True)])
    assert max(np.abs(step).max() for step in steps[0]) > 0.01
    for fused, plain in zip(*steps, strict=True):
        np.testing.assert_allclose(fused, plain, atol=distance, rtol=0)


@pytest.mark.parametrize(
    ("changes", "arguments", "is_fused"),
    [
        ({}, {}, True),
        ({}, {"training": True}, True),
        ({"attention_probs_dropout_prob": 0.1}, {}, True),
        ({"attention_probs_dropout_prob": 0.1}, {"training": True}, False),
        ({}, {"return_attention_scores": True}, False),
        ({"attention": "block_local", "block_size": 3}, {}, False),
    ],
)
def test_where_probabilities_are_not_computed(changes, arguments, is_fused):
    block = AlbertEncoder(CONFIG.replace(**changes)).attention_blocks[0][0]
    hidden = np.random.default_rng(0).normal(size=(2, 6, CONFIG.hidden_size)).astype("float32")
    mask = np.ones((2, 6), "int32")
    arguments = {"return_attention_scores": False, **arguments}
    for given in (None, for_layers().mask(mask)):
        assert (block(hidden, given, **arguments).probabilities is None) == is_fused
    # Any other bias than that of a mask is added to the logits.
    assert block(hidden, mask_to_bias(mask), **arguments).probabilities is not None


@pytest.mark.skipif(keras.backend.backend() != "jax", reason="of what JAX compiles for GPUs")
@pytest.mark.parametrize("compiled", [{}, {"remat": "block"}, {"scan_layers": True}], ids=["calls", "remat", "loop"])
@pytest.mark.parametrize(
    ("length", "has_mask", "training", "kernels"),
    [
        (16, True, False, {"ScaleBiasSoftmax": 3}),
        (17, True, False, {"ScaleBiasSoftmax": 3}),
        (16, False, False, {"Softmax": 3}),
        (16, True, True, {"ScaleBiasSoftmax": 3, "ScaleBiasSoftmaxBackward": 3}),
        (16, False, True, {"Softmax": 3, "SoftmaxBackward": 3}),
        (17, True, True, {}),  # cuDNN has no gradient of odd lengths
        (17, False, True, {}),
    ],
)
def test_programs_for_gpus_call_cudnn(length, has_mask, training, kernels, compiled, monkeypatch, caplog):
    import jax
    from jax._src.cudnn import fused_attention_stablehlo as cudnn

    # JAX asks the processor at hand, which here is not the one that the program is for.
    monkeypatch.setattr(cudnn, "check_cudnn_version", lambda: 91000)
    monkeypatch.setattr(cudnn, "check_compute_capability", lambda capability: True)
    monkeypatch.setattr(cudnn, "is_cuda_compute_capability_equal", lambda capability: False)
    config = CONFIG.replace(num_hidden_layers=3, hidden_size=32, num_attention_heads=2, classifier_dropout_prob=0.0)
    model = AlbertForSequenceClassification(config, num_labels=2, dtype="mixed_bfloat16")
    model.compile("sgd", **compiled)
    inputs = {"input_ids": np.ones((2, length), "int32")}
    if has_mask:
        inputs["attention_mask"] = np.ones((2, length), "int32")
    variables = [v.value for v in model.trainable_variables], [v.value for v in model.non_trainable_variables]

    def loss(trainable, rest):
        return ops.sum(model.stateless_call(trainable, rest, inputs, training=training)[0]["logits"])

    function = jax.jit(jax.grad(loss) if training else loss)
    program = function.trace(*variables).lower(lowering_platforms=("cuda",)).as_text()
    found = Counter(re.findall(r"__cudnn\$fmha(\w+)", program))
    assert not caplog.records
    assert set(found) == set(kernels)
    if not compiled:
        assert found == kernels
