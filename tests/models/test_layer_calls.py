"""Proves that recomputed activations and loops of layers give the outputs and gradients of separate calls."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from albert_tf import AlbertEncoder, AlbertForPreTraining
from tests.parameters import first_of

from .small import CONFIG, make_inputs, make_pretraining_batch

INPUTS, LABELS = make_pretraining_batch(4)
DROPOUT = CONFIG.replace(num_hidden_layers=3, hidden_dropout_prob=0.1, attention_probs_dropout_prob=0.1)
UNSHARED = DROPOUT.replace(num_hidden_groups=3)
DEEP = DROPOUT.replace(num_hidden_layers=4, inner_group_num=2)


def make_model(config=DROPOUT, **compile_arguments):
    keras.utils.set_random_seed(3)
    model = AlbertForPreTraining(config)
    model.compile(keras.optimizers.SGD(0.5), **compile_arguments)
    return model


def gradients_of_a_step(model) -> list[tf.Tensor]:
    with tf.GradientTape() as tape:
        outputs = model(INPUTS, training=True)
        loss = sum(term.mean() for term in model.loss_terms(LABELS, outputs).values())
    return [tf.convert_to_tensor(gradient) for gradient in tape.gradient(loss, model.trainable_variables)]


def assert_same_gradients(model, other):
    """Of a first and of a second batch: random generators must go on alike."""
    for _ in range(2):
        for variable, a, b in zip(
            model.trainable_variables, gradients_of_a_step(model), gradients_of_a_step(other), strict=True
        ):
            np.testing.assert_allclose(b, a, atol=1e-6, rtol=0, err_msg=variable.path)
    states = [[v.numpy() for v in m.non_trainable_variables if "seed" in v.path] for m in (model, other)]
    assert len(states[0]) > 2
    np.testing.assert_array_equal(*states)


WAYS = [({"remat": "block"}, DROPOUT), ({"remat": 2}, UNSHARED), ({"remat": 100}, DROPOUT)]


@pytest.mark.parametrize(("way", "config"), [*first_of(WAYS), ({"scan_layers": True}, DEEP)], ids=str)
def test_outputs_and_gradients_are_the_same_with_dropout_on(way, config):
    plain, other = make_model(config), make_model(config, **way)
    outputs = [model(INPUTS, training=False)["masked_lm_logits"] for model in (plain, other)]
    np.testing.assert_allclose(*outputs, atol=1e-6, rtol=0)
    assert_same_gradients(plain, other)


def fit(config=CONFIG, **compile_arguments):
    model = make_model(config, **compile_arguments)
    data = tf.data.Dataset.from_tensors((INPUTS, LABELS)).repeat(3)
    return model.fit(data, shuffle=False, verbose=0).history, model.get_weights()


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("way", "options"),
    [
        ({"remat": "block", "jit_compile": False}, {"config": DROPOUT, "gradient_accumulation_steps": 2}),
        ({"scan_layers": True}, {}),
        ({"scan_layers": True, "jit_compile": True}, {}),
    ],
    ids=str,
)
def test_fit_is_the_same(way, options):
    (expected, plain), (logs, weights) = fit(run_eagerly=True, **options), fit(**way, **options)
    assert logs == {name: pytest.approx(values, abs=1e-5) for name, values in expected.items()}
    for found, value in zip(weights, plain, strict=True):
        np.testing.assert_allclose(found, value, atol=1e-5, rtol=0)


@pytest.mark.exhaustive
def test_gradients_are_the_same_under_xla():
    # Generators draw differently there, so it is compared with itself.
    def compiled_gradients(remat):
        keras.utils.set_random_seed(3)
        encoder = AlbertEncoder(DROPOUT.replace(num_hidden_layers=2))
        encoder.compile(loss="mse", remat=remat)

        @tf.function(jit_compile=True)
        def compute():
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(encoder(inputs, training=True)["sequence_output"] ** 3)
            return [tf.convert_to_tensor(g) for g in tape.gradient(loss, encoder.trainable_variables[:-2])]

        inputs = make_inputs()
        return [gradient.numpy() for gradient in compute()]

    plain, again = compiled_gradients("none"), compiled_gradients("block")
    for a, b in zip(plain, again, strict=True):
        np.testing.assert_allclose(b, a, atol=1e-6, rtol=0)
    assert max(np.max(np.abs(gradient)) for gradient in plain) > 1e-3


MEMORY = """
import pathlib
import keras
from albert_tf import AlbertForPreTraining
from tests.models.small import CONFIG, make_pretraining_batch

model = AlbertForPreTraining(CONFIG.replace(hidden_size=512, intermediate_size=4096, num_hidden_layers=12))
model.compile(keras.optimizers.SGD(0.1), remat="block")
inputs, labels = make_pretraining_batch(2)
blocks = model.encoder.attention_blocks[0][0], model.encoder.ffn_blocks[0][0]
size = sum(block.count_params() for block in blocks) * 4 / 2**20

def resident(field):
    lines = pathlib.Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(field)) / 1024

pathlib.Path("/proc/self/clear_refs").write_text("5")  # the peak counts from here
before = resident("VmRSS")
for _ in range(3):
    model.train_on_batch(inputs, labels)
print(resident("VmHWM") - before, size)
"""


@pytest.mark.exhaustive
def test_gradients_of_shared_weights_are_not_kept_for_every_layer(run_python):
    added, size = map(float, run_python("-c", MEMORY).stdout.split())
    assert added < 12 * size  # of 12 layers


def graph_size(num_hidden_layers: int, scan_layers: bool) -> int:
    """Nodes of the graph of a training step, functions included."""
    model = make_model(DROPOUT.replace(num_hidden_layers=num_hidden_layers), scan_layers=scan_layers)
    function = tf.function(lambda: gradients_of_a_step(model), autograph=False)
    graph = function.get_concrete_function().graph.as_graph_def()
    return len(graph.node) + sum(len(function.node_def) for function in graph.library.function)


@pytest.mark.exhaustive
def test_the_graph_does_not_grow_with_depth():
    assert graph_size(6, scan_layers=True) == graph_size(3, scan_layers=True)
    assert graph_size(6, scan_layers=False) > 1.4 * graph_size(3, scan_layers=False)


@pytest.mark.parametrize("way", [{"remat": "block"}, {"scan_layers": True}], ids=str)
def test_hidden_states_are_those_of_each_layer(way):
    encoder = make_model(**way).encoder
    for training in (True, False):
        outputs = encoder(make_inputs(), training=training, output_hidden_states=True, output_attentions=True)
        assert (len(outputs["hidden_states"]), len(outputs["attentions"])) == (4, 3)
    last = encoder(make_inputs())["sequence_output"]
    np.testing.assert_allclose(last, outputs["hidden_states"][-1], atol=1e-6, rtol=0)


def test_a_saved_model_keeps_them(tmp_path):
    for way in ({"remat": 2, "gradient_accumulation_steps": 4}, {"scan_layers": True}):
        model = make_model(**way)
        model.optimizer.build(model.trainable_variables)
        model.save(tmp_path / "model.keras")
        again = keras.saving.load_model(tmp_path / "model.keras")
        assert (again.gradient_accumulation_steps, again.encoder.remat_span) == ((4, 2) if "remat" in way else (1, 0))
        assert again.encoder.scan_layers == ("scan_layers" in way)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        *(({"remat": remat}, '`remat` must be "none", "block" or a number') for remat in ("blocks", 0, True, 1.5)),
        ({"scan_layers": True, "remat": "block"}, "`scan_layers` must be False unless all layers share"),
        ({"scan_layers": True, "config": UNSHARED}, "`scan_layers` must be False unless all layers share"),
    ],
)
def test_what_cannot_be_compiled(arguments, message):
    with pytest.raises(ValueError, match=message):
        make_model(**arguments)
