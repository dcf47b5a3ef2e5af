"""Proves what Lamb and AdamW do beyond the recorded cases: meaning of lists, precision, sparse gradients, configs."""

import json
import warnings

import keras
import numpy as np
import pytest
import tensorflow as tf

from albert_tf.optimizers import AdamW, Lamb, WarmupSchedule

from .update_oracle import Oracle, clip_by_global_norm
from .variables import make_variables

SHAPES = {
    "encoder/block/query/kernel": (6, 4),
    "encoder/block/query/bias": (4,),
    "encoder/block/layer_norm/gamma": (4,),
    "masked_lm_head/output_bias": (9,),
    "embeddings/word_embeddings": (9, 3),
}
WEIGHTS, TABLES = {"encoder/block/query/kernel", "embeddings/word_embeddings"}, {"embeddings/word_embeddings"}
EVERYTHING = set(SHAPES)


def arrays(seed, scale=1.0):
    generator = np.random.default_rng(seed)
    return {name: (scale * generator.standard_normal(shape)).astype("float32") for name, shape in SHAPES.items()}


def run(optimizer, variables, steps=4, scale=1.0):
    for step in range(steps):
        optimizer.apply([tf.constant(g) for g in arrays(step + 1, scale).values()], variables)
    return {name: np.asarray(keras.ops.cast(v, "float32")) for name, v in zip(SHAPES, variables, strict=True)}


def run_oracle(decayed, adapted, steps=4, bias_correction=True, clip=None, decay=0.1):
    oracles = {n: Oracle(x, decay * (n in decayed), n in adapted, bias_correction) for n, x in arrays(0).items()}
    for step in range(steps):
        gradients = list(arrays(step + 1).values())
        gradients = clip_by_global_norm(gradients, clip) if clip else gradients
        for oracle, gradient in zip(oracles.values(), gradients, strict=True):
            oracle.update(gradient, 0.05)
    return {name: oracle.value for name, oracle in oracles.items()}


def assert_close(found, expected, atol=2e-6):
    for name in SHAPES:
        np.testing.assert_allclose(found[name], expected[name], atol=atol, rtol=0, err_msg=name)


@pytest.mark.parametrize(
    ("lists", "decayed", "adapted"),
    [
        ({}, WEIGHTS, WEIGHTS),
        ({"exclude_from_layer_adaptation": None}, WEIGHTS, WEIGHTS),
        ({"exclude_from_layer_adaptation": ()}, WEIGHTS, EVERYTHING),
        ({"exclude_from_layer_adaptation": ["kernel$", "bias", "norm"]}, WEIGHTS, TABLES),
        ({"exclude_from_weight_decay": None}, EVERYTHING, EVERYTHING),
        ({"exclude_from_weight_decay": []}, EVERYTHING, EVERYTHING),
        ({"exclude_from_weight_decay": (), "exclude_from_layer_adaptation": ["^encoder", "bias"]}, EVERYTHING, TABLES),
    ],
)
@pytest.mark.parametrize("bias_correction", [True, False])
def test_lists_decide_by_path(lists, decayed, adapted, bias_correction):
    optimizer = Lamb(0.05, weight_decay=0.1, bias_correction=bias_correction, **lists)
    assert_close(
        run(optimizer, make_variables(arrays(0))), run_oracle(decayed, adapted, bias_correction=bias_correction)
    )


@pytest.mark.parametrize("bias_correction", [True, False])
def test_adamw_against_the_oracle(bias_correction):
    optimizer = AdamW(0.05, weight_decay=0.1, bias_correction=bias_correction)
    expected = run_oracle(WEIGHTS, set(), bias_correction=bias_correction)
    assert_close(run(optimizer, make_variables(arrays(0))), expected)


def test_global_clipnorm_bounds_all_gradients_together():
    optimizer = Lamb(0.05, weight_decay=0.1, global_clipnorm=1.0)
    assert_close(run(optimizer, make_variables(arrays(0))), run_oracle(WEIGHTS, WEIGHTS, clip=1.0))


def test_no_decay_leaves_a_zero_gradient_without_effect():
    variables = make_variables(arrays(0))
    optimizer = Lamb(0.05, weight_decay=0.0)
    assert_close(run(optimizer, variables, scale=0.0), arrays(0), atol=0)


def test_bfloat16_variables_keep_float32_moments_and_are_rounded_once():
    variables = make_variables(arrays(0), dtype="bfloat16")
    start = [np.asarray(keras.ops.cast(v, "float32")) for v in variables]
    optimizer = Lamb(0.05, weight_decay=0.1, global_clipnorm=1.0)
    gradients = [tf.cast(g, "bfloat16") for g in arrays(1).values()]
    optimizer.apply(gradients, variables)
    slots = [*optimizer._momentums, *optimizer._velocities]
    assert {slot.dtype for slot in slots} == {"float32"}
    clipped = clip_by_global_norm([np.asarray(g, "float64") for g in gradients], 1.0)
    for name, value, gradient, variable in zip(SHAPES, start, clipped, variables, strict=True):
        is_weight = name in WEIGHTS
        expected = Oracle(value, 0.1 * is_weight, is_weight, bias_correction=True).update(gradient, 0.05)
        rounded = tf.cast(tf.constant(expected, "float32"), "bfloat16")
        assert variable.dtype == "bfloat16"
        np.testing.assert_array_equal(
            np.asarray(variable.value, "float32"), np.asarray(rounded, "float32"), err_msg=name
        )


def test_an_average_of_bfloat16_variables_is_refused():
    with pytest.raises(ValueError, match="`use_ema` must be False unless variables are float32"):
        Lamb(0.05, use_ema=True).build(make_variables(arrays(0), dtype="bfloat16"))


def test_float64_variables_are_not_rounded():
    name = "encoder/block/query/kernel"
    value, gradient = np.random.default_rng(0).standard_normal((2, 6, 4))
    (kernel,) = make_variables({name: value}, dtype="float64")
    Lamb(0.05, weight_decay=0.1, bias_correction=False).apply([tf.constant(gradient)], [kernel])
    # The learning rate is a float32 variable, which is why the oracle takes it rounded.
    expected = Oracle(value, 0.1, adapt=True, bias_correction=False).update(gradient, float(np.float32(0.05)))
    np.testing.assert_allclose(kernel, expected, rtol=1e-12)


def test_a_sparse_gradient_is_its_dense_sum_also_for_the_norm():
    values = np.random.default_rng(3).standard_normal((4, 3)).astype("float32")
    sparse = tf.IndexedSlices(tf.constant(values), tf.constant([1, 4, 1, 7]), dense_shape=tf.constant([9, 3]))
    dense = np.zeros((9, 3), "float32")
    np.add.at(dense, [1, 4, 1, 7], values)
    results = []
    for gradient in (sparse, tf.constant(dense)):
        (table,) = make_variables({"embeddings/word_embeddings": arrays(0)["embeddings/word_embeddings"]})
        optimizer = Lamb(0.05, weight_decay=0.1, global_clipnorm=0.5)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            for _ in range(2):
                optimizer.apply([gradient], [table])
        results.append(table.numpy())
    np.testing.assert_allclose(*results, atol=1e-7)


@pytest.mark.parametrize("kind", [AdamW, Lamb])
def test_a_config_makes_the_same_optimizer(kind):
    schedule = WarmupSchedule(0.05, num_train_steps=10, num_warmup_steps=2, decay="cosine")
    lists = {"exclude_from_weight_decay": ("bias",), "learning_rate_rules": [("bias", 0.5), (".*", 1)]}
    if kind is Lamb:
        lists |= {"exclude_from_layer_adaptation": (), "keep_trust_ratios": True}
    optimizer = kind(schedule, 0.2, 0.8, 0.99, 1e-5, bias_correction=False, global_clipnorm=2.0, name="mine", **lists)
    stored = json.loads(json.dumps(keras.optimizers.serialize(optimizer)))
    again = keras.optimizers.deserialize(stored)
    assert type(again) is kind
    assert again.get_config() == optimizer.get_config()
    found, expected = (run(one, make_variables(arrays(0))) for one in (again, optimizer))
    assert_close(found, expected, atol=0)


@pytest.mark.parametrize("given", [None, (), ("bias", "norm$")])
def test_none_nothing_and_a_list_stay_apart_in_a_config(given):
    config = json.loads(json.dumps(Lamb(0.1, exclude_from_layer_adaptation=given).get_config()))
    assert config["exclude_from_layer_adaptation"] == (None if given is None else list(given))
    assert Lamb.from_config(config)._adaptation_exclusions == given


@pytest.mark.parametrize("kind", [AdamW, Lamb])
def test_rules_scale_the_learning_rate_by_path(kind):
    rules = [("word_embeddings", 0.5), ("^encoder/.*kernel$", 0.0), (".*", 1.0)]
    found = run(kind(0.05, learning_rate_rules=rules), make_variables(arrays(0)), steps=1)
    for name, expected in run(kind(0.05), make_variables(arrays(0)), steps=1).items():
        factor = {"embeddings/word_embeddings": 0.5, "encoder/block/query/kernel": 0.0}.get(name, 1.0)
        np.testing.assert_allclose(found[name] - arrays(0)[name], factor * (expected - arrays(0)[name]), atol=1e-6)


def test_trust_ratios_are_kept_where_asked_for():
    variables, start = make_variables(arrays(0)), arrays(0)
    optimizer = Lamb(0.05, weight_decay=0.1, keep_trust_ratios=True)
    run(optimizer, variables, steps=1)
    ratios = optimizer.trust_ratios()
    assert set(ratios) == {variable.path for variable, name in zip(variables, SHAPES, strict=True) if name in WEIGHTS}
    plain = Lamb(0.05, weight_decay=0.1)
    others = make_variables(arrays(0))
    after = run(plain, others, steps=1)
    assert plain.trust_ratios() == {}
    for name, variable in zip(SHAPES, variables, strict=True):
        if name in WEIGHTS:
            # The step is learning rate * ratio * update, and so as long as learning rate * |weights|.
            gradient = arrays(1)[name].astype("float64")
            update = gradient / (np.abs(gradient) + 1e-6) + 0.1 * start[name]
            expected = np.linalg.norm(start[name]) / np.linalg.norm(update)
            assert ratios[variable.path] == pytest.approx(expected, rel=1e-5)
            np.testing.assert_array_equal(variable.numpy(), after[name])


@pytest.mark.parametrize("kind", [AdamW, Lamb])
def test_averaged_weights_are_those_of_the_oracle(kind):
    optimizer, variables = kind(0.05, use_ema=True, ema_momentum=0.8), make_variables(arrays(0))
    expected = None
    for step in range(4):
        optimizer.apply([tf.constant(g) for g in arrays(step + 1).values()], variables)
        values = [variable.numpy().astype("float64") for variable in variables]
        expected = values if step == 0 else [0.8 * a + 0.2 * b for a, b in zip(expected, values, strict=True)]
    optimizer.finalize_variable_values(variables)
    for variable, value in zip(variables, expected, strict=True):
        np.testing.assert_allclose(variable, value, atol=1e-6)


def test_averages_hold_the_weights_before_the_first_step():
    optimizer, variables = Lamb(0.05, use_ema=True), make_variables(arrays(0))
    optimizer.build(variables)
    optimizer.iterations.assign(3)  # as after steps that a loss scale skipped
    optimizer.apply([tf.constant(g) for g in arrays(1).values()], variables)
    new = [variable.numpy() for variable in variables]
    optimizer.finalize_variable_values(variables)
    for variable, start, value in zip(variables, arrays(0).values(), new, strict=True):
        np.testing.assert_allclose(variable, 0.99 * start + 0.01 * value, atol=1e-6)


def test_a_checkpoint_continues_to_the_bit(tmp_path):
    variables, other = make_variables(arrays(0)), make_variables(arrays(5))
    first, second = Lamb(0.05), Lamb(0.05)
    run(first, variables, steps=2)
    second.build(other)
    names = {str(i): v.value for i, v in enumerate(variables)}
    path = tf.train.Checkpoint(optimizer=first, **names).save(str(tmp_path / "state"))
    restored = {str(i): v.value for i, v in enumerate(other)}
    tf.train.Checkpoint(optimizer=second, **restored).restore(path).assert_consumed()
    assert int(second.iterations) == 2
    assert_close(run(second, other), run(first, variables), atol=0)


def test_accumulated_gradients_make_one_step_of_their_mean():
    accumulated = Lamb(0.05, weight_decay=0.1, gradient_accumulation_steps=2)
    variables, expected = make_variables(arrays(0)), make_variables(arrays(0))
    run(accumulated, variables, steps=2)
    mean = [tf.constant((a + b) / 2) for a, b in zip(arrays(1).values(), arrays(2).values(), strict=True)]
    Lamb(0.05, weight_decay=0.1).apply(mean, expected)
    for name, variable, other in zip(SHAPES, variables, expected, strict=True):
        np.testing.assert_allclose(variable, other, atol=1e-6, err_msg=name)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"learning_rate": -1.0}, r"`learning_rate` must be a number in \[0, inf\)"),
        ({"learning_rate": float("nan")}, "`learning_rate` must be a number .* Received: learning_rate=nan"),
        ({"weight_decay": -0.1}, r"`weight_decay` must be a number in \[0, inf\)"),
        ({"beta_1": 1.0}, r"`beta_1` must be a number in \[0, 1\)"),
        ({"beta_2": True}, "`beta_2` must be a number"),
        ({"epsilon": "small"}, "`epsilon` must be a number"),
        ({"exclude_from_weight_decay": "bias"}, "must be a list of regular expressions"),
        ({"exclude_from_layer_adaptation": ["("]}, "must be regular expressions"),
        ({"learning_rate_rules": ["bias"]}, "`learning_rate_rules` must be pairs of .* Received: 'bias'"),
        ({"learning_rate_rules": [("bias", -1)]}, "`learning_rate_rules` must be pairs of"),
        ({"learning_rate_rules": [("(", 1)]}, "`learning_rate_rules` must be regular expressions"),
    ],
)
def test_a_wrong_argument_is_one_sentence(arguments, sentence):
    with pytest.raises(ValueError, match=sentence):
        Lamb(**{"learning_rate": 0.1, **arguments})


@pytest.mark.parametrize(
    ("rules", "sentence"),
    [
        ([("bias", 0.5)], "`learning_rate_rules` must cover every variable"),
        ([("pooler", 0.5), (".*", 1)], "in `learning_rate_rules` must apply .* no variables for 'pooler'"),
    ],
)
def test_rules_that_do_not_fit_the_variables(rules, sentence):
    with pytest.raises(ValueError, match=sentence):
        Lamb(0.1, learning_rate_rules=rules).build(make_variables(arrays(0)))


def test_exclusions_cannot_be_changed_by_the_leaf_name_method():
    with pytest.raises(ValueError, match="pass regular expressions to the constructor"):
        Lamb(0.1).exclude_from_weight_decay(var_names=["bias"])
