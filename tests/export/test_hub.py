"""Proves that TF Hub modules give the Keras model's numbers, and can be fine-tuned where `albert_tf` is not."""

import json
import shutil

import keras
import numpy as np
import pytest
import tensorflow as tf
from tensorflow.core.protobuf import saved_model_pb2

from albert_tf import (
    AlbertForMaskedLM,
    AlbertForPreTraining,
    AlbertForSentenceEmbedding,
    AlbertForSequenceClassification,
    pipeline,
)
from albert_tf.export import export_hub
from tests.toy_task import CONFIG, tokenizer

pytestmark = pytest.mark.exhaustive  # tracing and saving the modules takes most of their time

TEXTS = ("One short text.", "", "  Ünïcödé, 1,000 Wörter und 한국어 — and more ", "many words " * 40)
PAIRS = ("many words " * 40, "two", "a second text", "many more words " * 40)
TO_OURS = {"input_word_ids": "input_ids", "input_mask": "attention_mask", "input_type_ids": "token_type_ids"}
TO_REFERENCE = {"input_word_ids": "input_ids", "input_mask": "input_mask", "input_type_ids": "segment_ids"}


def write(model, folder):
    model.save_pretrained(folder)
    tokenizer().save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def model():
    keras.utils.set_random_seed(3)
    config = CONFIG.replace(hidden_dropout_prob=0.1, attention_probs_dropout_prob=0.1)
    return AlbertForPreTraining(config)


@pytest.fixture(scope="module")
def folder(model, tmp_path_factory):
    """The exported modules, moved after the export."""
    root = tmp_path_factory.mktemp("hub")
    report = export_hub(write(model, root / "model"), root / "first")
    assert report.largest_difference <= 1e-5
    assert report.signatures == ("mlm", "sop", "tokenization_info", "tokens")
    return shutil.move(report.folder, root / "moved")


@pytest.fixture
def encoder(folder):
    return tf.saved_model.load(str(folder / "encoder"))


@pytest.fixture(scope="module")
def preprocess(folder):
    return tf.saved_model.load(str(folder / "preprocess"))


@pytest.fixture(scope="module")
def batch():
    """Rows of two texts and padding, as the encoder takes them."""
    inputs = tokenizer()(TEXTS, PAIRS, max_length=40, padding="max_length")
    return {name: tf.constant(inputs[ours]) for name, ours in TO_OURS.items()}


def same(given, expected):
    assert given.shape == tuple(expected.shape)
    np.testing.assert_allclose(given, expected, rtol=0, atol=1e-5)


def test_outputs_are_the_models(model, encoder, batch):
    inputs, positions = (
        {ours: batch[name] for name, ours in TO_OURS.items()},
        tf.constant([[1, 5], [0, 0], [2, 3], [4, 9]]),
    )
    expected = model.encoder(inputs, output_hidden_states=True)
    logits = model({**inputs, "masked_lm_positions": positions})
    outputs, masked = encoder(batch), encoder.mlm({**batch, "masked_lm_positions": positions})
    for given in (outputs, masked):
        same(given["default"], expected["pooled_output"])
        same(given["pooled_output"], expected["pooled_output"])
        same(given["sequence_output"], expected["sequence_output"])
        for one, other in zip(given["encoder_outputs"], expected["hidden_states"][1:], strict=True):
            same(one, other)
    same(masked["mlm_logits"], logits["masked_lm_logits"])
    assert np.ptp(outputs["default"], axis=0).max() > 0.05  # the rows do differ

    named = {TO_REFERENCE[name]: ids for name, ids in batch.items()}
    signatures = encoder.signatures
    of_tokens, of_order = signatures["tokens"](**named), signatures["sop"](**named)
    of_masks = signatures["mlm"](**named, mlm_positions=positions)
    assert set(of_tokens) == {"pooled_output", "sequence_output"}
    for name, numbers in of_tokens.items():
        for given in (of_tokens, of_order, of_masks):
            same(given[name], expected[name])
        same(numbers, outputs[name])
    same(of_masks["mlm_logits"], tf.reshape(logits["masked_lm_logits"], [8, -1]))
    same(of_order["sop_log_probs"], tf.nn.log_softmax(logits["sentence_order_logits"]))


def test_texts_become_the_ids_of_the_tokenizer(preprocess):
    def check(given, expected):
        for name, ours in TO_OURS.items():
            assert given[name].dtype == tf.int32
            np.testing.assert_array_equal(given[name], expected[ours])

    length = CONFIG.max_position_embeddings  # shorter than TF Hub's 128
    check(preprocess(tf.constant(TEXTS)), tokenizer()(TEXTS, max_length=length, padding="max_length"))
    segments = [preprocess.tokenize(tf.constant(texts)) for texts in (TEXTS, PAIRS)]
    assert segments[0].to_list() == [tokenizer().encode(text) for text in TEXTS]
    for size in (length, 9, 10):
        expected = tokenizer()(TEXTS, PAIRS, max_length=size, padding="max_length")
        check(preprocess.bert_pack_inputs(segments, seq_length=size), expected)
    check(preprocess.bert_pack_inputs(segments), tokenizer()(TEXTS, PAIRS, max_length=length, padding="max_length"))
    special = {name: int(number) for name, number in preprocess.tokenize.get_special_tokens_dict().items()}
    names = ("vocab_size", "padding_id", "start_of_sequence_id", "end_of_segment_id", "mask_id")
    assert special == dict(zip(names, (30000, 0, 2, 3, 4)))


def test_preprocessing_runs_in_tensorflow_serving(folder):
    content = saved_model_pb2.SavedModel.FromString((folder / "preprocess" / "saved_model.pb").read_bytes())
    functions = content.meta_graphs[0].graph_def.library.function
    ops = {node.op for function in functions for node in function.node_def}
    assert {op for op in ops if op.startswith(("TFText>", "Sentencepiece"))} == {
        "SentencepieceOp",
        "SentencepieceTokenizeOp",
    }


def test_the_vocabulary_lies_inside(folder, encoder):
    info = encoder.signatures["tokenization_info"]()
    path = info["vocab_file"].numpy().decode()
    assert path == encoder.sp_model_file.asset_path.numpy().decode() == f"{folder}/encoder/assets/spiece.model"
    assert bool(info["do_lower_case"]) is bool(encoder.do_lower_case) is True
    assert tokenizer().from_pretrained(path).pieces == tokenizer().pieces


def test_fine_tuning_with_a_gradient_tape(encoder, batch):
    before = [variable.numpy() for variable in encoder.trainable_variables]
    assert encoder.regularization_losses == []
    assert len(encoder.variables) > len(before)  # states of dropout
    assert np.ptp([encoder(batch, training=True)["default"].numpy() for _ in range(2)], axis=0).max() > 0.01
    labels, losses = tf.constant([0.0, 1.0, 0.0, 1.0]), []
    for _ in range(12):
        with tf.GradientTape() as tape:
            outputs = encoder(batch, training=True)
            loss = tf.reduce_mean(tf.square(tf.reduce_mean(outputs["pooled_output"][:, :3], axis=1) - labels))
        gradients = tape.gradient(loss, encoder.trainable_variables)
        losses.append(float(loss))
        assert all(gradient is not None for gradient in gradients)
        for variable, gradient in zip(encoder.trainable_variables, gradients):
            variable.assign_sub(0.1 * tf.convert_to_tensor(gradient))
    assert losses[-1] < 0.5 * losses[0]
    changed = [np.abs(variable - old).max() for variable, old in zip(encoder.trainable_variables, before)]
    assert min(changed) > 0, list(zip([variable.name for variable in encoder.trainable_variables], changed))


# Runs in a process that cannot import albert_tf.
ALONE = """
import json, sys

class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "albert_tf":
            raise ImportError(name)

sys.meta_path.insert(0, Refuse())
import tensorflow as tf
import tensorflow_text

preprocess, encoder = (tf.saved_model.load(f"{sys.argv[1]}/{name}") for name in ("preprocess", "encoder"))
with tf.GradientTape() as tape:
    pooled = encoder(preprocess(tf.constant(json.loads(sys.argv[2]))), training=False)["default"]
gradients = tape.gradient(pooled, encoder.trainable_variables)
print("ANSWER" + json.dumps([pooled.numpy().tolist(), [float(tf.norm(gradient)) for gradient in gradients]]))
"""


def test_modules_work_without_albert_tf(model, folder, run_python, tmp_path):
    (tmp_path / "alone.py").write_text(ALONE)
    printed = run_python("-I", tmp_path / "alone.py", folder, json.dumps(TEXTS)).stdout
    pooled, norms = json.loads(printed.split("ANSWER")[1])
    inputs = tokenizer()(TEXTS, max_length=CONFIG.max_position_embeddings, padding="max_length")
    same(np.array(pooled), model.encoder(inputs)["pooled_output"])
    assert len(norms) == len(model.encoder.trainable_variables)
    assert min(norms) > 0


def test_sentence_embeddings_have_the_length_that_they_have_in_keras(tmp_path):
    model = AlbertForSentenceEmbedding(CONFIG, normalize=True)
    report = export_hub(write(model, tmp_path / "model"), tmp_path / "hub", seq_length=16)
    restored, preprocess = (tf.saved_model.load(str(report.folder / name)) for name in ("encoder", "preprocess"))
    expected = model(tokenizer()(TEXTS, max_length=16))["sentence_embedding"]
    same(restored(preprocess(tf.constant(TEXTS)))["default"], expected)


@pytest.mark.parametrize("kind", [AlbertForMaskedLM, AlbertForSequenceClassification])
def test_parts_that_a_checkpoint_lacks_are_not_exported(kind, tmp_path):
    model = kind(CONFIG, **({} if kind is AlbertForMaskedLM else {"num_labels": 3}))
    report = export_hub(write(model, tmp_path / "model"), tmp_path / "hub", seq_length=16)
    restored = tf.saved_model.load(str(report.folder / "encoder"))
    inputs = tf.saved_model.load(str(report.folder / "preprocess"))(tf.constant(TEXTS))
    assert inputs["input_mask"].shape == (4, 16)
    outputs, expected = restored(inputs), model.encoder({ours: inputs[name] for name, ours in TO_OURS.items()})
    assert len(restored.trainable_variables) == len(model.encoder.trainable_variables)
    if kind is AlbertForMaskedLM:
        assert report.signatures == ("mlm", "tokenization_info", "tokens")
        mask = np.array(inputs["input_mask"], "float32")[:, :, None]
        same(outputs["default"], np.sum(expected["sequence_output"] * mask, 1) / mask.sum(1))
        assert "pooled_output" not in outputs
    else:
        assert report.signatures == ("tokenization_info", "tokens")
        same(outputs["default"], expected["pooled_output"])
        assert not hasattr(restored, "mlm")


def test_mistakes_are_explained(folders, folder, tmp_path):
    with pytest.raises(ValueError, match=r"does not take texts.* export it with"):
        pipeline(folder / "encoder")
    with pytest.raises(ValueError, match=r"`output` must not exist yet. Received: output="):
        export_hub(folders["pretrained"], tmp_path)
    with pytest.raises(ValueError, match=r"`seq_length` must be an integer from 3 to 64. Received: seq_length=65"):
        export_hub(folders["pretrained"], tmp_path / "new", seq_length=65)
    assert not any(tmp_path.iterdir())
