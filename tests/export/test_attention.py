"""Proves that the signature `attention` gives the Keras model's probabilities, whatever the task and the batch."""

import numpy as np
import pytest
import tensorflow as tf

from albert_tf.export import export_saved_model, serve_base
from albert_tf.export.saved_model import served_model
from albert_tf.export.serve_base import Form
from albert_tf.export.serve_classifier import ServedClassifier
from albert_tf.inference.folder import load_folder
from tests.parameters import first_of

LONG, SHORT = "The old man " + " ".join(map(str, range(99, 200))), "He went by."
TEXTS, ASKED = {"text": [LONG, SHORT, ""]}, {"question": ["Who?", "Who?", ""], "context": [LONG, SHORT, ""]}
COLUMNS = {
    **dict.fromkeys(("classifier", "regression", "pretrained", "tags", "embedding"), TEXTS),
    **dict.fromkeys(("questions", "questions_beam"), ASKED),
    "pairs": {"text": [LONG, SHORT, ""], "text_pair": [SHORT, "", LONG]},
}


def expected_of(loaded, columns, doc_stride=None):
    """Tokens [B, L] and the Keras model's attention [B, layers, N, L, L] of the first window of each text."""
    texts, pairs = [*columns.values(), None][:2]
    inputs = loaded.tokenizer(texts, pairs, max_length=loaded.settings.max_length, doc_stride=doc_stride)
    samples = inputs.pop("overflow_to_sample_mapping", np.arange(len(texts)))
    inputs = {name: rows[np.searchsorted(samples, range(len(texts)))] for name, rows in inputs.items()}
    attentions = loaded.model.encoder(inputs, output_attentions=True)["attentions"]
    is_token = inputs["attention_mask"].astype(bool)
    tokens = np.where(is_token, np.array(loaded.tokenizer.pieces)[inputs["input_ids"]], "")
    return tokens, np.stack(attentions, axis=1) * is_token[:, None, None, :, None]


def check(outputs, loaded, kind):
    stride = loaded.settings.doc_stride if kind in ("questions", "questions_beam", "tags") else None
    tokens, attention = expected_of(loaded, COLUMNS[kind], stride)
    assert [[token.decode() for token in row] for row in outputs["tokens"].numpy()] == tokens.tolist()
    np.testing.assert_allclose(outputs["attention"], attention, rtol=0, atol=1e-5)
    assert "" in tokens
    sums = np.broadcast_to((tokens != "")[:, None, None], attention.shape[:-1])
    np.testing.assert_allclose(outputs["attention"].numpy().sum(-1), sums, rtol=0, atol=1e-5)
    assert np.ptp(attention[0], axis=(0, 1)).max() > 0.01  # layers and heads differ


@pytest.mark.exhaustive
def test_probabilities_of_a_saved_model_are_the_models(exports, folders):
    restored = tf.saved_model.load(str(exports["classifier"].folder))
    outputs = restored.signatures["attention"](text=tf.constant(COLUMNS["classifier"]["text"]))
    check(outputs, load_folder(folders["classifier"]), "classifier")


@pytest.mark.parametrize("kind", first_of([kind for kind in COLUMNS if kind != "classifier"]))
def test_every_kind_of_model_has_it(folders, kind):
    loaded = load_folder(folders[kind])
    served = served_model(loaded, Form())
    texts = {name: tf.constant(column) for name, column in COLUMNS[kind].items()}
    check(served.attention(served.encode(texts)), loaded, kind)


def test_models_that_read_several_rows_at_once_have_none(folders, tmp_path):
    with pytest.raises(ValueError, match="`attention` must be False for AlbertForMultipleChoice"):
        export_saved_model(folders["choices"], tmp_path, "choices", attention=True)
    assert not any(tmp_path.rglob("*.pb"))


def test_only_the_first_tokens_of_long_texts_are_returned(folders, monkeypatch):
    monkeypatch.setattr(serve_base, "MAX_ATTENTION_TOKENS", 6)
    loaded = load_folder(folders["classifier"])
    served = ServedClassifier(loaded, Form())
    outputs = served.attention(served.encode({"text": tf.constant([LONG])}))
    tokens, attention = expected_of(loaded, {"text": [LONG]})
    assert [token.decode() for token in outputs["tokens"].numpy()[0]] == tokens[0, :6].tolist()
    np.testing.assert_allclose(outputs["attention"], attention[..., :6, :6], rtol=0, atol=1e-5)
