"""Proves numbers of parameters and paths of variables by building the models, the largest without their memory."""

import json
import math
import pathlib

import numpy as np
import pytest

from albert_tf import AlbertConfig, AlbertEncoder, AlbertForPreTraining
from albert_tf.config import PRESETS
from albert_tf.optimizers.rules import ALBERT_EXCLUSIONS, is_excluded

from .small import CONFIG, make_inputs

BLOCK_KERNELS = ("query", "key", "value", "output")


def count(model):
    return sum(math.prod(variable.shape) for variable in model.variables_by_path().values())


@pytest.fixture(scope="module")
def built(run_python):
    """Counts by preset from models built without values."""
    return json.loads(run_python(pathlib.Path(__file__).with_name("count_parameters.py")).stdout.splitlines()[-1])


@pytest.mark.exhaustive
@pytest.mark.parametrize("preset", PRESETS)
def test_presets_have_the_numbers_of_the_formula(preset, built):
    config = AlbertConfig.from_preset(preset)
    expected = {part: config.num_parameters(part) for part in ("encoder", "pretraining")}
    assert built["counts"][preset] == expected  # which are published: tests/test_config.py


@pytest.mark.parametrize("share", ["all", "attention", "ffn", "none"])
def test_sharing(share):
    config = CONFIG.replace(share=share)
    model = AlbertForPreTraining(config)
    assert count(model) == config.num_parameters("pretraining")
    names = {path.split("/")[1] for path in model.variables_by_path()}
    own = {
        kind: sorted(name for name in names if name.startswith(f"{kind}_") and name[-1].isdigit())
        for kind in ("attention", "ffn")
    }
    layers = range(config.num_hidden_layers)
    for kind, names in own.items():
        shared = share in ("all", kind)
        assert names == [f"{kind}_{group}_0" for group in ([0] if shared else layers)]


@pytest.mark.parametrize("share", ["attention", "ffn", "none"])
def test_unshared_layers_with_equal_weights_compute_what_the_shared_one_does(share):
    shared, unshared = AlbertEncoder(CONFIG), AlbertEncoder(CONFIG.replace(share=share))
    values = shared.variables_by_path()
    for path, variable in unshared.variables_by_path().items():
        parts = path.split("/")
        if parts[1].startswith(("attention_", "ffn_")):
            parts[1] = parts[1].split("_")[0] + "_0_0"
        variable.assign(values["/".join(parts)])
    inputs = make_inputs()
    np.testing.assert_array_equal(unshared(inputs)["sequence_output"], shared(inputs)["sequence_output"])
    # And a layer in the middle has weights of its own.
    kind = "attention" if share == "ffn" else "ffn"
    middle = unshared.variables_by_path()[f"encoder/{kind}_1_0/output/bias"]
    middle.assign(np.arange(16))
    assert np.max(np.abs(unshared(inputs)["sequence_output"] - shared(inputs)["sequence_output"])) > 1e-3


def test_groups_and_inner_groups():
    config = CONFIG.replace(num_hidden_layers=5, num_hidden_groups=2, inner_group_num=3)
    model = AlbertEncoder(config)
    assert count(model) == config.num_parameters("encoder")
    outputs = model(make_inputs(), output_hidden_states=True)
    assert len(outputs["hidden_states"]) == 1 + 5 * 3
    blocks = {path.split("/")[1] for path in model.variables_by_path()} - {"embeddings", "projection", "pooler"}
    assert blocks == {f"{kind}_{g}_{i}" for kind in ("attention", "ffn") for g in (0, 1) for i in (0, 1, 2)}


def test_equal_widths_have_no_projection():
    config = CONFIG.replace(embedding_size=16)
    model = AlbertForPreTraining(config)
    assert count(model) == config.num_parameters("pretraining")
    assert not [path for path in model.variables_by_path() if "projection" in path]
    assert model(make_inputs())["masked_lm_logits"].shape == (5, 11, 50)


@pytest.mark.exhaustive
def test_what_is_decayed_of_a_base_encoder(built):
    """13 of 32 variables of the pretraining model, as in the reference: every kernel and table, nothing else."""
    paths = built["paths"]
    assert len(paths) == 32
    decayed = {path for path in paths if not is_excluded(path, ALBERT_EXCLUSIONS)}
    assert decayed == {
        *(f"encoder/embeddings/{name}_embeddings" for name in ("word", "token_type", "position")),
        "encoder/projection/kernel",
        *(f"encoder/attention_0_0/{name}/kernel" for name in BLOCK_KERNELS),
        "encoder/ffn_0_0/intermediate/kernel",
        "encoder/ffn_0_0/output/kernel",
        "encoder/pooler/kernel",
        "masked_lm/transform/kernel",
        "sentence_order/kernel",
    }
    assert len(decayed) == 13
