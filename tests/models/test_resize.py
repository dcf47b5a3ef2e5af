"""Proves that rows for added tokens are those of `from_pretrained`, begin like the others, and change nothing else."""

import keras
import numpy as np
import pytest

from albert_tf import models
from albert_tf.checkpoints.vocabulary import with_rows
from tests.parameters import first_of

from .small import CONFIG, make_inputs, make_pretraining_batch

NEW = CONFIG.vocab_size + 6
KINDS = ("AlbertEncoder", "AlbertForPreTraining", "AlbertForMaskedLM", "AlbertForQuestionAnswering")


def random_model(kind):
    keras.utils.set_random_seed(3)
    model, rng = getattr(models, kind)(CONFIG), np.random.default_rng(4)
    for variable in model.weights:
        variable.assign(rng.normal(0.5, 0.1, variable.shape))
    return model


@pytest.mark.parametrize("kind", first_of(KINDS, count=2))
def test_outputs_stay_and_loading_gives_the_same(kind, tmp_path):
    model, inputs = random_model(kind), make_inputs()
    ways = (model, lambda inputs: model.predict(inputs, verbose=0))
    before, paths = [way(inputs) for way in ways], list(model.variables_by_path())
    model.save_pretrained(tmp_path)
    model.resize_token_embeddings(NEW)
    assert list(model.variables_by_path()) == paths
    assert {layer.config.vocab_size for layer in model._flatten_layers() if hasattr(layer, "config")} == {NEW}
    for way, outputs in zip(ways, before, strict=True):
        found = way(inputs)
        for name, array in outputs.items():
            kept, array = map(keras.ops.convert_to_numpy, (found[name][..., : array.shape[-1]], array))
            np.testing.assert_allclose(kept, array, atol=1e-6, err_msg=name)
    loaded = type(model).from_pretrained(tmp_path, vocab_size=NEW)
    new_ids = {**inputs, "input_ids": np.full_like(inputs["input_ids"], NEW - 1)}
    for name, array in model(new_ids).items():
        found, array = map(keras.ops.convert_to_numpy, (loaded(new_ids)[name], array))
        np.testing.assert_array_equal(found, array, err_msg=name)
        assert np.isfinite(array).all()


def test_new_rows_are_like_the_others_and_seeded():
    table = np.random.default_rng(0).normal([1, -2], [0.5, 3], (20_000, 2)).astype("float32")
    grown = with_rows(table, 40_000)
    np.testing.assert_array_equal(grown[:20_000], table)
    np.testing.assert_allclose(grown[20_000:].mean(axis=0), [1, -2], atol=0.1)
    np.testing.assert_allclose(grown[20_000:].std(axis=0), [0.5, 3], rtol=0.02)
    np.testing.assert_array_equal(grown, with_rows(table, 40_000))
    bias = random_model("AlbertForMaskedLM")
    bias.resize_token_embeddings(NEW)
    assert 0.4 < bias.masked_lm.output_bias.numpy()[CONFIG.vocab_size :].mean() < 0.6


@pytest.mark.parametrize("form", ["model.keras", "model.weights.h5"])
def test_keras_files_and_training(form, tmp_path):
    model, (inputs, labels) = random_model("AlbertForPreTraining"), make_pretraining_batch()
    model.resize_token_embeddings(NEW)
    inputs["input_ids"][:, 2] = labels["masked_lm_ids"][:, 0] = NEW - 1
    row = model.encoder.embeddings.word_embeddings.numpy()[NEW - 1]
    model.compile("sgd", run_eagerly=True)
    model.fit(inputs, labels, verbose=0)
    assert (model.encoder.embeddings.word_embeddings.numpy()[NEW - 1] != row).all()
    if form == "model.keras":
        model.save(tmp_path / form)
        restored = keras.saving.load_model(tmp_path / form)
    else:
        model.save_weights(tmp_path / form)
        restored = models.AlbertForPreTraining(CONFIG.replace(vocab_size=NEW))
        restored.load_weights(tmp_path / form)
    for one, other in zip(model.get_weights(), restored.get_weights(), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("size", [CONFIG.vocab_size - 1, 0, 60.0, "60", True, None])
def test_a_size_that_loses_rows_is_refused(size, tmp_path):
    model = random_model("AlbertForMaskedLM")
    model.save_pretrained(tmp_path)
    with pytest.raises(ValueError, match=rf"at least {CONFIG.vocab_size}.*Received: .*pass len\(tokenizer\)"):
        model.resize_token_embeddings(size)
    with pytest.raises(ValueError, match="vocab_size"):
        models.AlbertForMaskedLM.from_pretrained(tmp_path, vocab_size=size)


def test_a_compiled_model_is_refused():
    model = random_model("AlbertForMaskedLM")
    model.compile("adam")
    with pytest.raises(ValueError, match=r"before the model is compiled.*from_pretrained\(folder, vocab_size"):
        model.resize_token_embeddings(NEW)
