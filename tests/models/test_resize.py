"""Proves that rows for added tokens begin like the others and change nothing else."""

import keras
import numpy as np
import pytest

from albert_tf import models
from albert_tf.checkpoints.vocabulary import with_rows

from .small import CONFIG, make_inputs

NEW = CONFIG.vocab_size + 6
KINDS = ("AlbertEncoder", "AlbertForPreTraining", "AlbertForMaskedLM", "AlbertForQuestionAnswering")


def random_model(kind):
    keras.utils.set_random_seed(3)
    model, rng = getattr(models, kind)(CONFIG), np.random.default_rng(4)
    for variable in model.weights:
        variable.assign(rng.normal(0.5, 0.1, variable.shape))
    return model


@pytest.mark.parametrize("kind", KINDS)
def test_outputs_stay_and_new_ids_have_some(kind, tmp_path):
    model, inputs = random_model(kind), make_inputs()
    model.save_pretrained(tmp_path)
    loaded = type(model).from_pretrained(tmp_path, vocab_size=NEW)
    assert list(loaded.variables_by_path()) == list(model.variables_by_path())
    found = loaded(inputs)
    for name, array in model(inputs).items():
        np.testing.assert_allclose(found[name][..., : array.shape[-1]], array, atol=1e-6, err_msg=name)
    new_ids = {**inputs, "input_ids": np.full_like(inputs["input_ids"], NEW - 1)}
    assert all(np.isfinite(array).all() for array in loaded(new_ids).values())


def test_new_rows_are_like_the_others_and_seeded():
    table = np.random.default_rng(0).normal([1, -2], [0.5, 3], (20_000, 2)).astype("float32")
    grown = with_rows(table, 40_000)
    np.testing.assert_array_equal(grown[:20_000], table)
    np.testing.assert_allclose(grown[20_000:].mean(axis=0), [1, -2], atol=0.1)
    np.testing.assert_allclose(grown[20_000:].std(axis=0), [0.5, 3], rtol=0.02)
    np.testing.assert_array_equal(grown, with_rows(table, 40_000))


@pytest.mark.parametrize("size", [CONFIG.vocab_size - 1, 0, 60.0, "60", True, None])
def test_a_size_that_loses_rows_is_refused(size, tmp_path):
    random_model("AlbertForMaskedLM").save_pretrained(tmp_path)
    with pytest.raises(ValueError, match="vocab_size"):
        models.AlbertForMaskedLM.from_pretrained(tmp_path, vocab_size=size)
