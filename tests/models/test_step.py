"""Proves that the step of `fit` is the same in every way to run it, what it reports and which variables it changes."""

import warnings

import keras
import numpy as np
import pytest
import tensorflow as tf

from albert_tf import AlbertEncoder, AlbertForMaskedLM, AlbertForPreTraining
from albert_tf.optimizers import AdamW, Lamb
from tests.parameters import first_of

from .small import CONFIG, largest_difference, make_pretraining_batch

ROWS = 8
INPUTS, LABELS = make_pretraining_batch(ROWS)
MASKED_LM_LABELS = {name: LABELS[name] for name in ("masked_lm_ids", "masked_lm_weights")}
DROPOUT = CONFIG.replace(hidden_dropout_prob=0.2, attention_probs_dropout_prob=0.2)


def batches(size=4):
    return tf.data.Dataset.from_tensor_slices((INPUTS, LABELS)).batch(size)


EAGERLY = {"run_eagerly": True}  # quicker than to trace, where the graph is not the point


def make_model(kind=AlbertForPreTraining, config=CONFIG, seed=3, **compile_arguments):
    keras.utils.set_random_seed(seed)
    model = kind(config)
    model.compile(**{"optimizer": keras.optimizers.SGD(0.5, global_clipnorm=0.1), **compile_arguments})
    return model


def fit(model, epochs=2, **arguments):
    return model.fit(batches(), epochs=epochs, shuffle=False, verbose=0, **arguments).history


# === One step, many ways ===


@pytest.mark.exhaustive
@pytest.mark.parametrize("jit_compile", [False, True])  # with XLA, batches of unknown shapes are fetched one by one
def test_equal_seeds_and_several_steps_in_one_call_give_equal_bits(jit_compile):
    one, four = (make_model(config=DROPOUT, steps_per_execution=count, jit_compile=jit_compile) for count in (1, 4))
    # Five batches: a call of four steps, and one that ends with the data.
    data = batches(4).repeat(5).take(5)
    logs = [model.fit(data, epochs=2, shuffle=False, verbose=0).history for model in (one, four)]
    assert logs[0] == logs[1]
    assert largest_difference(one, four) == 0 < largest_difference(one, make_model(config=DROPOUT, seed=4))


@pytest.mark.exhaustive
def test_eager_and_xla():
    plain = make_model(jit_compile=False)
    expected = fit(plain)
    for way in ({"run_eagerly": True}, {"jit_compile": True}):
        other = make_model(**way)
        found = fit(other)
        for name, values in expected.items():
            np.testing.assert_allclose(found[name], values, atol=1e-5, rtol=0, err_msg=f"{way} {name}")
        assert largest_difference(plain, other) < 1e-5
    assert largest_difference(plain, make_model()) > 1e-3


@pytest.mark.exhaustive
def test_programs_under_a_strategy_drop_the_same_as_one_of_the_whole_step():
    one = make_model(config=DROPOUT, jit_compile=True)
    with tf.distribute.MirroredStrategy(["CPU:0"]).scope():
        mirrored = make_model(config=DROPOUT, jit_compile=True)
    expected, logs = fit(one), fit(mirrored)
    for name, values in expected.items():
        np.testing.assert_allclose(logs[name], values, atol=1e-5, rtol=0, err_msg=name)
    assert largest_difference(one, mirrored) < 1e-5


def test_dropout_is_on_in_fit_and_off_in_evaluate():
    model = make_model(config=DROPOUT, optimizer=keras.optimizers.SGD(0.0), **EAGERLY)
    logs = [model.evaluate(batches(), verbose=0, return_dict=True) for _ in range(2)]
    trained = [fit(model, epochs=1)["loss"][0] for _ in range(2)]
    assert logs[0] == logs[1]
    assert trained[0] != trained[1] != logs[0]["loss"]


def test_gradients_are_clipped_by_their_norm_together():
    before, bound = make_model(), 0.01
    model = make_model(optimizer=keras.optimizers.SGD(1.0, global_clipnorm=bound), **EAGERLY)
    model.train_on_batch(INPUTS, LABELS)
    step = np.sqrt(sum(np.sum((a - b) ** 2) for a, b in zip(model.get_weights(), before.get_weights(), strict=True)))
    assert step == pytest.approx(bound, rel=1e-4)


def test_half_precision_steps_with_a_scaled_loss():
    start = make_model()
    plain = make_model(optimizer=keras.optimizers.SGD(0.5), **EAGERLY)
    half = make_model(
        lambda config: AlbertForPreTraining(config, dtype="mixed_float16"),
        optimizer=keras.optimizers.SGD(0.5),
        **EAGERLY,
    )
    assert type(half.optimizer).__name__ == "LossScaleOptimizer"
    for model in (plain, half):
        model.train_on_batch(INPUTS, LABELS)
    assert 0 < largest_difference(plain, half) < 0.02 * largest_difference(plain, start)


# === What is reported ===


@pytest.mark.parametrize("objective", ["next_sentence", "none"])
def test_another_objective_names_its_terms_or_leaves_them_out(objective):
    usual, model = make_model(**EAGERLY), make_model(lambda config: AlbertForPreTraining(config, objective), **EAGERLY)
    labels = {name: array for name, array in LABELS.items() if name != "sentence_order_labels"}
    if objective == "next_sentence":
        labels["next_sentence_labels"] = LABELS["sentence_order_labels"]
    expected = usual.test_on_batch(INPUTS, LABELS, return_dict=True)
    logs = model.test_on_batch(INPUTS, labels, return_dict=True)
    masked_lm = {name: value for name, value in expected.items() if name.startswith("masked_lm")}
    if objective == "next_sentence":
        renamed = {name.replace("sentence_order", "next_sentence"): value for name, value in expected.items()}
        assert logs == pytest.approx(renamed, rel=1e-6)
    else:
        assert logs == pytest.approx({"loss": expected["masked_lm_loss"], **masked_lm}, rel=1e-6)
    model.train_on_batch(INPUTS, labels)
    moved = largest_difference(model.sentence_order, make_model().sentence_order)
    assert (moved > 0) == (objective == "next_sentence")
    assert type(model).from_config(model.get_config()).objective == objective


def test_weights_of_rows_weigh_their_masked_tokens():
    model = make_model(AlbertForMaskedLM, **EAGERLY)
    kept = np.r_[np.ones(4), np.zeros(ROWS - 4)]
    some = (
        {name: array[:4] for name, array in INPUTS.items()},
        {name: array[:4] for name, array in MASKED_LM_LABELS.items()},
    )

    def logs_of(*data, **weights):
        return model.evaluate(*data, batch_size=ROWS, return_dict=True, verbose=0, **weights)

    weighted, unweighted = logs_of(INPUTS, MASKED_LM_LABELS, sample_weight=kept), logs_of(INPUTS, MASKED_LM_LABELS)
    # The sum over the rows that count, divided by the number of masked tokens of all.
    share = MASKED_LM_LABELS["masked_lm_weights"][:4].sum() / MASKED_LM_LABELS["masked_lm_weights"].sum()
    assert weighted["loss"] == pytest.approx(logs_of(*some)["loss"] * share, rel=1e-5)
    assert weighted["masked_lm_accuracy"] == unweighted["masked_lm_accuracy"]


def test_a_batch_without_masked_tokens_has_no_masked_lm_loss():
    model = make_model(AlbertForMaskedLM, **EAGERLY)
    labels = {**MASKED_LM_LABELS, "masked_lm_weights": np.zeros_like(LABELS["masked_lm_weights"])}
    assert model.train_on_batch(INPUTS, labels, return_dict=True)["loss"] == 0
    assert all(np.all(np.isfinite(array)) for array in model.get_weights())


# === Which variables ===


class MaskedLMAlone(AlbertForPreTraining):
    """Has a pooler and an order head that its loss does not reach."""

    def loss_terms(self, y, outputs, sample_weight=None):
        return {"masked_lm_loss": super().loss_terms(y, outputs, sample_weight)["masked_lm_loss"]}


@pytest.mark.parametrize("kind", first_of([Lamb, AdamW]))
def test_what_the_loss_does_not_reach_stays_without_a_warning(kind):
    model = make_model(MaskedLMAlone, optimizer=kind(0.02, weight_decay=0.1), **EAGERLY)
    before = {path: variable.numpy() for path, variable in model.variables_by_path().items()}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fit(model)
    still = {path for path, variable in model.variables_by_path().items() if np.array_equal(variable, before[path])}
    assert still == {path for path in before if path.startswith(("encoder/pooler/", "sentence_order/"))}


def test_a_loss_that_reaches_nothing():
    class Blind(AlbertForPreTraining):
        def loss_terms(self, y, outputs, sample_weight=None):
            terms = super().loss_terms(y, outputs, sample_weight)
            return {name: term._replace(total=tf.stop_gradient(term.total)) for name, term in terms.items()}

    with pytest.raises(ValueError, match="The loss does not depend on any trainable variable"):
        make_model(Blind, **EAGERLY).train_on_batch(INPUTS, LABELS)


def test_an_encoder_has_nothing_to_minimise():
    model = make_model(AlbertEncoder, **EAGERLY)
    with pytest.raises(ValueError, match=r"AlbertEncoder has no loss of its own; call compile"):
        model.train_on_batch({"input_ids": INPUTS["input_ids"]}, LABELS)
