"""Proves that Lamb and AdamW make the steps that the reference and tensorflow-addons made from the same gradients."""

import json
import pathlib

import keras
import numpy as np
import pytest

from albert_tf.optimizers import AdamW, Lamb, WarmupSchedule
from tests.parameters import first_of

from .variables import make_variables

GOLDEN = pathlib.Path(__file__).parents[1] / "golden"
TFA_CASES = sorted(path.name for path in (GOLDEN / "lamb_tfa").iterdir())
KERAS_CASES = sorted(path.name for path in (GOLDEN / "lamb_keras").iterdir())


def reference_optimizer(settings):
    schedule = WarmupSchedule(
        settings["init_lr"],
        num_train_steps=settings["num_train_steps"],
        num_warmup_steps=settings["num_warmup_steps"],
        power=settings["poly_power"],
        reference_jump=True,
    )
    kind = {"lamb": Lamb, "adamw": AdamW}[settings["optimizer"]]
    return kind(schedule, bias_correction=False, global_clipnorm=1.0)


def load(folder):
    with np.load(folder / "io.npz") as arrays:
        return dict(arrays)


def gradients_of(io, step, names):
    return [keras.ops.convert_to_tensor(io[f"step_{step:02}/grad:{name}"]) for name in names]


def global_norm(gradients):
    return np.sqrt(sum(np.sum(np.square(np.asarray(g, "float64"))) for g in gradients))


@pytest.mark.parametrize("case", ["O1_lamb", "O2_adamw"])
def test_twelve_steps_of_the_reference(case):
    io, settings = load(GOLDEN / case), json.loads((GOLDEN / case / "settings.json").read_text())
    names = [key.removeprefix("step_00/var:") for key in io if key.startswith("step_00/var:")]
    assert len(names) == 32
    variables = make_variables({name: io[f"step_00/var:{name}"] for name in names})
    optimizer = reference_optimizer(settings)
    for step in range(1, 13):
        gradients = gradients_of(io, step, names)
        np.testing.assert_allclose(global_norm(gradients), io["global_norm"][step - 1], rtol=2e-6)
        np.testing.assert_allclose(optimizer.learning_rate, io["learning_rate"][step - 1], rtol=1e-6)
        optimizer.apply(gradients, variables)
        if step in (2, 12):
            for name, variable in zip(names, variables, strict=True):
                expected = io[f"step_{step:02}/var:{name}"]
                np.testing.assert_allclose(variable, expected, atol={2: 1e-6, 12: 1e-5}[step], rtol=0, err_msg=name)
    for index, name in enumerate(names):
        np.testing.assert_allclose(optimizer._momentums[index], io[f"step_12/adam_m:{name}"], atol=1e-7, err_msg=name)
        np.testing.assert_allclose(optimizer._velocities[index], io[f"step_12/adam_v:{name}"], atol=1e-8, err_msg=name)


@pytest.mark.parametrize("kind", ["lamb", "adamw"])
def test_every_single_step_of_the_update_rule(kind):
    folder = GOLDEN / "O3_update_rule" / kind
    io, settings = load(folder), json.loads((folder / "settings.json").read_text())
    names = [key.removeprefix("step_00/var:") for key in io if key.startswith("step_00/var:")]
    variables = make_variables({name: io[f"step_00/var:{name}"] for name in names})
    optimizer = reference_optimizer(settings)
    for step in range(1, settings["steps"] + 1):
        optimizer.apply(gradients_of(io, step, names), variables)
        for index, (name, variable) in enumerate(zip(names, variables, strict=True)):
            at = f"step_{step:02}"
            np.testing.assert_allclose(variable, io[f"{at}/var:{name}"], atol=1e-6, rtol=0, err_msg=f"{at} {name}")
            np.testing.assert_allclose(optimizer._momentums[index], io[f"{at}/adam_m:{name}"], atol=1e-7, err_msg=name)
            np.testing.assert_allclose(optimizer._velocities[index], io[f"{at}/adam_v:{name}"], atol=1e-7, err_msg=name)


@pytest.mark.parametrize("case", first_of(TFA_CASES))
def test_tensorflow_addons(case):
    io, config = load(GOLDEN / "lamb_tfa" / case), json.loads((GOLDEN / "lamb_tfa" / case / "config.json").read_text())
    keys = {item["name"]: item["key"] for item in config["variables"]}
    variables = make_variables({name: io[f"init__{key}"] for name, key in keys.items()})
    given = config["given"]
    optimizer = Lamb(
        0.02,
        weight_decay=config["weight_decay"],
        exclude_from_weight_decay=given["exclude_from_weight_decay"],
        # tensorflow-addons reads an empty list as None; here these are two things.
        exclude_from_layer_adaptation=given["exclude_from_layer_adaptation"] or None,
    )
    for step in range(config["steps"]):
        optimizer.learning_rate = float(io["learning_rate"][step])
        optimizer.apply([keras.ops.convert_to_tensor(io[f"grad__{key}"][step]) for key in keys.values()], variables)
        for variable, key in zip(variables, keys.values(), strict=True):
            expected = io[f"var__{key}"][step]
            atol = 2e-5 * np.max(np.abs(expected))
            np.testing.assert_allclose(variable, expected, atol=atol, rtol=0, err_msg=f"step {step} {key}")
    effective = config["effective"]
    decayed = {name for name, flag in zip(keys, optimizer._is_decayed, strict=True) if not flag}
    adapted = {name for name, flag in zip(keys, optimizer._is_adapted, strict=True) if not flag}
    assert (decayed, adapted) == (set(effective["not_decayed"]), set(effective["not_adapted"]))


@pytest.mark.parametrize("case", KERAS_CASES)
def test_keras_where_it_is_the_papers(case):
    folder = GOLDEN / "lamb_keras" / case
    io, config = load(folder), json.loads((folder / "config.json").read_text())
    keys = {item["name"]: item["key"] for item in config["variables"]}
    variables = make_variables({name: io[f"init__{key}"] for name, key in keys.items()})
    optimizer = Lamb(
        config["learning_rate"],
        weight_decay=config["weight_decay"],
        epsilon=config["epsilon"],
        exclude_from_layer_adaptation=(),
        global_clipnorm=config.get("global_clipnorm"),
    )
    for step in range(config["steps"]):
        optimizer.apply([keras.ops.convert_to_tensor(io[f"grad__{key}"][step]) for key in keys.values()], variables)
        for variable, key in zip(variables, keys.values(), strict=True):
            expected = io[f"var__{key}"][step]
            atol = 2e-5 * np.max(np.abs(expected))
            np.testing.assert_allclose(variable, expected, atol=atol, rtol=0, err_msg=f"step {step} {key}")
