"""Proves that tokens added to a vocabulary stay through every export, and through `albert-tf convert`."""

import pickle

import numpy as np
import pytest
import tensorflow as tf

import albert_tf
from albert_tf import AlbertForPreTraining, AlbertForSequenceClassification, AlbertTokenizer, checkpoints
from albert_tf.export import export_hub, export_onnx, export_saved_model
from albert_tf.serving.engine import OnnxEngine, load_engine
from tests.cli.terminal import output_of
from tests.toy_task import tokenizer, write_pretrained

TOKENS = ["[E1]", "[/E1]", "Benbow"]
TEXTS = ["[E1] Admiral BENBOW[/E1] [MASK]", "The old [MASK].", "[MASK][E1]s[/e1] 🙂"]


@pytest.fixture(scope="module")
def added() -> AlbertTokenizer:
    added = pickle.loads(pickle.dumps(tokenizer()))
    assert added.add_tokens(TOKENS) == 3
    return added


@pytest.fixture(scope="module")
def folder(added, tmp_path_factory):
    root = tmp_path_factory.mktemp("added")
    model = AlbertForPreTraining.from_pretrained(write_pretrained(root / "plain"), vocab_size=len(added))
    model.save_pretrained(root / "model")
    added.save_pretrained(root / "model")
    return root / "model"


@pytest.mark.parametrize("form", [pytest.param("saved_model", marks=pytest.mark.exhaustive), "onnx"])
def test_exports_answer_as_the_folder_does(form, added, folder, tmp_path):
    if form == "saved_model":
        exported = export_saved_model(folder, tmp_path, "model").folder
        engine = load_engine(exported)
    else:
        exported = export_onnx(folder, tmp_path, "model", precisions=["float32"]).folder
        engine = OnnxEngine(exported)
    expected = albert_tf.pipeline(folder)(TEXTS)
    predictor = albert_tf.pipeline(exported)
    assert predictor.model.tokenizer.added_tokens == added.added_tokens
    for given, wanted in zip(predictor(TEXTS), expected, strict=True):
        assert [[piece for piece, _ in mask] for mask in _pieces(given)] == [
            [piece for piece, _ in mask] for mask in _pieces(wanted)
        ]
        for one, other in zip(_pieces(given), _pieces(wanted), strict=True):
            np.testing.assert_allclose([p for _, p in one], [p for _, p in other], atol=1e-5)
    tokenized = engine.run("tokenize", {"text": np.array([text.encode() for text in TEXTS], object)})
    ids = added(TEXTS, allow_special=True)["input_ids"]
    np.testing.assert_array_equal(tokenized["input_ids"][:, : ids.shape[1]], ids)


def _pieces(prediction):
    return [list(zip(mask.pieces, mask.probabilities)) for mask in prediction]


@pytest.mark.exhaustive
def test_hub_modules(added, folder, tmp_path):
    preprocess = tf.saved_model.load(str(export_hub(folder, tmp_path / "hub").folder / "preprocess"))
    ids = added(TEXTS, max_length=64)["input_ids"]
    np.testing.assert_array_equal(preprocess(tf.constant(TEXTS))["input_word_ids"][:, : ids.shape[1]], ids)


def test_conversions_there_and_back(added, folder, tmp_path):
    output_of("convert", folder, tmp_path / "google", "--to", "google")
    output_of("convert", tmp_path / "google", tmp_path / "back", "--to", "huggingface")
    for name in ("google", "back"):
        found = AlbertTokenizer.from_pretrained(tmp_path / name)
        assert (found.vocab_hash, found.added_tokens) == (added.vocab_hash, added.added_tokens)
        arrays = checkpoints.read(tmp_path / name).arrays
        for path, array in checkpoints.read(folder).arrays.items():
            np.testing.assert_array_equal(arrays[path], array, err_msg=path)
    assert (tmp_path / "google" / "30k-clean.model").read_bytes() == (folder / "spiece.model").read_bytes()


def test_a_folder_whose_model_lacks_the_rows_is_named(added, tmp_path):
    AlbertForSequenceClassification.from_pretrained(
        write_pretrained(tmp_path / "plain"), num_labels=2, new_head=True
    ).save_pretrained(tmp_path / "model")
    added.save_pretrained(tmp_path / "model")
    with pytest.raises(ValueError, match=r"vocab_size=30000, a vocabulary of 30003 pieces.*vocab_size=30003"):
        albert_tf.pipeline(tmp_path / "model")
