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
KINDS = {
    "classifier": ("text",),
    "questions": ("question", "context"),
    **dict.fromkeys(("regression", "pretrained", "tags", "embedding", "questions_beam"), ("text",)),
    "pairs": ("text", "text_pair"),
}
KINDS["questions_beam"] = KINDS["questions"]
TEXTS = {"text": [LONG, SHORT, ""], "text_pair": [SHORT, "", LONG], "question": ["Who?", "Who?", ""]}
TEXTS["context"] = TEXTS["text"]


def expected_of(loaded, texts, pairs=None, doc_stride=None):
    """Tokens and the Keras model's attention [B, layers, N, L, L] of the first window of each text."""
    inputs = loaded.tokenizer(texts, pairs, max_length=loaded.settings.max_length, doc_stride=doc_stride)
    samples = inputs.pop("overflow_to_sample_mapping", np.arange(len(texts)))
    inputs = {name: rows[np.searchsorted(samples, range(len(texts)))] for name, rows in inputs.items()}
    attentions = loaded.model.encoder(inputs, output_attentions=True)["attentions"]
    tokens = [[loaded.tokenizer.pieces[token] for token in row] for row in inputs["input_ids"]]
    return tokens, np.stack(attentions, axis=1), inputs["attention_mask"].astype(bool)


@pytest.mark.exhaustive
def test_probabilities_of_a_saved_model_are_the_models(exports, folders):
    restored = tf.saved_model.load(str(exports["classifier"].folder))
    outputs = restored.signatures["attention"](text=tf.constant(TEXTS["text"]))
    check(outputs, load_folder(folders["classifier"]), "classifier")


@pytest.mark.parametrize("kind", first_of([kind for kind in KINDS if kind != "classifier"]))
def test_every_kind_of_model_has_it(folders, kind):
    loaded = load_folder(folders[kind])
    served = served_model(loaded, Form())
    texts = {name: tf.constant(TEXTS[name]) for name in KINDS[kind]}
    check(served.attention(served.encode(texts)), loaded, kind)


def test_models_that_read_several_rows_at_once_have_none(folders, tmp_path):
    with pytest.raises(ValueError, match="`attention` must be False for AlbertForMultipleChoice"):
        export_saved_model(folders["choices"], tmp_path, "choices", attention=True)
    assert not any(tmp_path.rglob("*.pb"))


def check(outputs, loaded, kind):
    texts = {name: TEXTS[name] for name in KINDS[kind]}
    stride = loaded.settings.doc_stride if kind in ("questions", "questions_beam", "tags") else None
    tokens, attention, is_token = expected_of(loaded, *texts.values(), doc_stride=stride)
    given = outputs["attention"].numpy()
    assert given.shape == attention.shape
    for row, used in enumerate(is_token):
        assert [token.decode() for token in outputs["tokens"][row].numpy()[used]] == np.array(tokens[row])[
            used
        ].tolist()
        assert set(outputs["tokens"][row].numpy()[~used]) <= {b""}
        np.testing.assert_allclose(given[row][:, :, used], attention[row][:, :, used], rtol=0, atol=1e-5)
        np.testing.assert_allclose(given[row][:, :, used].sum(-1), 1, rtol=0, atol=1e-5)
        assert not given[row][:, :, ~used].any()
        assert not given[row][..., ~used].any()
    assert not is_token.all()
    assert np.ptp(given[0], axis=(0, 1)).max() > 0.01  # layers and heads differ


def test_only_the_first_tokens_of_long_texts_are_returned(folders, monkeypatch):
    monkeypatch.setattr(serve_base, "MAX_ATTENTION_TOKENS", 6)
    loaded = load_folder(folders["classifier"])
    served = ServedClassifier(loaded, Form())
    outputs = served.attention(served.encode({"text": tf.constant([LONG])}))
    tokens, attention, _ = expected_of(loaded, [LONG])
    assert [token.decode() for token in outputs["tokens"].numpy()[0]] == tokens[0][:6]
    np.testing.assert_allclose(outputs["attention"], attention[..., :6, :6], rtol=0, atol=1e-5)
