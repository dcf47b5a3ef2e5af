"""Models with block-local attention: loading, saving, training in every way, and what they refuse."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from albert_tf import (
    AlbertEncoder,
    AlbertForMaskedLM,
    AlbertForSequenceClassification,
    AlbertTokenizer,
    Preprocessor,
    checkpoints,
    pipeline,
)
from albert_tf.export import export_saved_model
from albert_tf.export.onnx_folder import export_onnx
from tests.parameters import first_of

from . import test_layer_calls
from .small import CONFIG, make_inputs

LOCAL = {"attention": "block_local", "block_size": 3}
INPUTS = make_inputs(4, length=30)
WARNING = (
    r"would compute different outputs for inputs of more than 6 tokens, because it does not have attention='block_"
)


@pytest.fixture
def folder(tmp_path):
    """A saved model with full attention."""
    keras.utils.set_random_seed(0)
    model = AlbertForMaskedLM(CONFIG.replace(initializer_range=0.5))
    model.save_pretrained(tmp_path / "full")
    return tmp_path / "full"


def test_a_loaded_model_attends_in_blocks_and_says_so_in_its_folder(folder, tmp_path):
    full, local = AlbertForMaskedLM.from_pretrained(folder), AlbertForMaskedLM.from_pretrained(folder, **LOCAL)
    expected = local(INPUTS)["logits"]
    assert np.max(np.abs(expected - full(INPUTS)["logits"])) > 0.1
    with pytest.warns(UserWarning, match=f"^transformers {WARNING}"):
        local.save_pretrained(tmp_path / "local")
    with pytest.warns(UserWarning, match=f"^Google's code {WARNING}"):
        checkpoints.save_google(local, tmp_path / "google" / "model.ckpt-best")
    for name in ("local", "google"):
        again = AlbertForMaskedLM.from_pretrained(tmp_path / name)
        assert again.config == local.config
        np.testing.assert_allclose(again(INPUTS)["logits"], expected, atol=1e-6)


def test_inputs_of_two_blocks_get_the_outputs_of_full_attention(folder):
    full, local = AlbertForMaskedLM.from_pretrained(folder), AlbertForMaskedLM.from_pretrained(folder, **LOCAL)
    inputs = make_inputs(4, length=6)
    np.testing.assert_allclose(local(inputs)["logits"], full(inputs)["logits"], atol=1e-5)


def test_padding_and_the_company_of_longer_rows_change_no_answer(folder):
    # In float64, so that rounding, which other lengths change, is far below a token that reaches another.
    local = AlbertForMaskedLM.from_pretrained(folder, **LOCAL, dtype="float64")
    together = local(INPUTS)["logits"]
    for row, length in enumerate(INPUTS["attention_mask"].sum(axis=1)):
        alone = {name: array[row : row + 1, :length] for name, array in INPUTS.items()}
        np.testing.assert_allclose(local(alone)["logits"][0], together[row, :length], atol=1e-6)


@pytest.mark.exhaustive
def test_fit_with_lengths_of_every_kind():
    model = AlbertForSequenceClassification(CONFIG.replace(**LOCAL, initializer_range=0.2), num_labels=2)
    model.compile(keras.optimizers.Adam(0.01))
    rows = [make_inputs(4, length) for length in (4, 9, 30)]
    data = tf.data.Dataset.from_generator(
        lambda: ((inputs, inputs["input_ids"][:, 1] % 2) for inputs in rows),
        output_signature=(
            {name: tf.TensorSpec((None, None), "int32") for name in INPUTS},
            tf.TensorSpec((None,), "int32"),
        ),
    )
    losses = model.fit(data.repeat(), steps_per_epoch=36, epochs=2, shuffle=False, verbose=0).history["loss"]
    assert losses[1] < 0.5 * losses[0]


@pytest.mark.parametrize("way", first_of([{"remat": "block"}, {"scan_layers": True}]), ids=str)
def test_recomputed_and_in_a_loop_with_dropout_on(way):
    config = test_layer_calls.DROPOUT.replace(attention="block_local", block_size=2)
    plain, other = test_layer_calls.make_model(config), test_layer_calls.make_model(config, **way)
    test_layer_calls.assert_same_gradients(plain, other)


def test_packed_rows_and_attentions_are_refused():
    encoder = AlbertEncoder(CONFIG.replace(**LOCAL))
    ids = INPUTS["input_ids"]
    with pytest.raises(ValueError, match="one per row, not per token, with attention='block_local'"):
        encoder({"input_ids": ids, "example_ids": ids, "position_ids": 0 * ids})
    with pytest.raises(ValueError, match=r"`output_attentions` must be False .* load the model with attention='full'"):
        encoder(INPUTS, output_attentions=True)


# === Position embeddings ===


def test_positions_are_repeated(folder):
    short = AlbertForMaskedLM.from_pretrained(folder)
    long = AlbertForMaskedLM.from_pretrained(folder, max_position_embeddings=70)
    table, repeated = (np.asarray(model.encoder.embeddings.position_embeddings) for model in (short, long))
    np.testing.assert_array_equal(repeated, np.concatenate([table, table, table[:6]]))
    np.testing.assert_allclose(long(INPUTS)["logits"], short(INPUTS)["logits"], atol=1e-6)
    assert long(make_inputs(2, length=70))["logits"].shape == (2, 70, CONFIG.vocab_size)


def test_longer_inputs_and_fewer_positions_stay_errors(folder):
    with pytest.raises(ValueError, match="length=33, max_position_embeddings=32; truncate"):
        AlbertForMaskedLM.from_pretrained(folder)(make_inputs(2, length=33))
    with pytest.raises(ValueError, match="other shapes"):
        AlbertForMaskedLM.from_pretrained(folder, max_position_embeddings=16)


# === Exports ===


@pytest.fixture
def long_folder(folders, tmp_path):
    """A classifier of texts with up to 200 tokens, in blocks of 8."""
    changes = {"attention": "block_local", "block_size": 8, "max_position_embeddings": 200}
    model = AlbertForSequenceClassification.from_pretrained(folders["classifier"], **changes)
    model.preprocessor = Preprocessor(AlbertTokenizer.from_pretrained(folders["classifier"]), max_length=200)
    with pytest.warns(UserWarning, match="transformers would compute different outputs"):
        model.save_pretrained(tmp_path / "long")
    return tmp_path / "long"


@pytest.mark.exhaustive
def test_a_saved_model_takes_texts_of_any_length(long_folder, tmp_path):
    report = export_saved_model(long_folder, tmp_path / "exports", "long", max_length=200)
    texts = ["Short.", "The old man went by. " * 30, "Nine words " * 9]
    expected = [answer.probabilities for answer in pipeline(long_folder)(texts)]
    for rows in ([0, 1, 2], [0], [2]):
        found = pipeline(report.folder)([texts[row] for row in rows])
        for row, answer in zip(rows, found, strict=True):
            assert answer.probabilities == pytest.approx(expected[row], abs=1e-5)


def test_what_knows_full_attention_only_is_refused(long_folder, tmp_path):
    with pytest.raises(ValueError, match=r"attention='block_local', .*do not support; export a SavedModel"):
        export_onnx(long_folder, tmp_path, "onnx")
    with pytest.raises(ValueError, match="`attention` must be False for block-local attention"):
        export_saved_model(long_folder, tmp_path / "exports", "long", attention=True)
