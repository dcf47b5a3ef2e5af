"""A loop over the layers computes what separate calls compute, with a graph that does not grow with depth."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests.parameters import first_of

from .small import CONFIG
from .test_remat import DROPOUT, INPUTS, LABELS, UNSHARED, assert_same_gradients, gradients_of_a_step, make_model

DEEP = DROPOUT.replace(num_hidden_layers=4, inner_group_num=2)


@pytest.mark.parametrize("config", first_of([DROPOUT, DEEP]), ids=["one block", "two inner blocks"])
def test_outputs_and_gradients_are_the_same_with_dropout_on(config):
    plain, scanned = (make_model("none", config, scan_layers=scan) for scan in (False, True))
    outputs = [model(INPUTS, training=False)["masked_lm_logits"] for model in (plain, scanned)]
    np.testing.assert_allclose(*outputs, atol=1e-6, rtol=0)
    assert_same_gradients(plain, scanned)


def graph_size(num_hidden_layers: int, scan_layers: bool) -> int:
    """Nodes of the graph of a training step, functions included."""
    model = make_model("none", DROPOUT.replace(num_hidden_layers=num_hidden_layers), scan_layers=scan_layers)
    function = tf.function(lambda: gradients_of_a_step(model), autograph=False)
    graph = function.get_concrete_function().graph.as_graph_def()
    return len(graph.node) + sum(len(function.node_def) for function in graph.library.function)


@pytest.mark.exhaustive
def test_the_graph_does_not_grow_with_depth():
    assert graph_size(6, scan_layers=True) == graph_size(3, scan_layers=True)
    assert graph_size(6, scan_layers=False) > 1.4 * graph_size(3, scan_layers=False)


@pytest.mark.exhaustive
def test_fit_is_the_same():
    found = []
    for way in ({"run_eagerly": True}, {"scan_layers": True}, {"scan_layers": True, "jit_compile": True}):
        model = make_model("none", CONFIG, **way)
        data = tf.data.Dataset.from_tensors((INPUTS, LABELS)).repeat(3)
        found.append((model.fit(data, shuffle=False, verbose=0).history["loss"], model.get_weights()))
    (losses, weights), *scanned = found
    for scanned_losses, scanned_weights in scanned:
        np.testing.assert_allclose(scanned_losses, losses, atol=1e-5, rtol=0)
        for a, b in zip(weights, scanned_weights, strict=True):
            np.testing.assert_allclose(b, a, atol=1e-5, rtol=0)


def test_hidden_states_are_those_of_each_layer():
    encoder = make_model("none", DROPOUT, scan_layers=True).encoder
    outputs = encoder({"input_ids": INPUTS["input_ids"]}, output_hidden_states=True)
    assert len(outputs["hidden_states"]) == 4
    last = encoder({"input_ids": INPUTS["input_ids"]})["sequence_output"]
    np.testing.assert_allclose(last, outputs["hidden_states"][-1], atol=1e-6, rtol=0)


def test_a_compiled_model_keeps_it(tmp_path):
    make_model("none", CONFIG, scan_layers=True).save(tmp_path / "model.keras")
    assert keras.models.load_model(tmp_path / "model.keras").encoder.scan_layers


@pytest.mark.parametrize(("remat", "config"), [("block", DROPOUT), ("none", UNSHARED)], ids=["remat", "unshared"])
def test_what_cannot_be_a_loop_is_refused(remat, config):
    with pytest.raises(ValueError, match="`scan_layers` must be False unless all layers share"):
        make_model(remat, config, scan_layers=True)
