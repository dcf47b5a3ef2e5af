"""Sentence embeddings: sentence-transformers' vectors and losses, its folders, and what it refuses."""

import json
import shutil

import numpy as np
import pytest
from safetensors.numpy import save_file

from albert_tf import AlbertConfig, AlbertForSentenceEmbedding, checkpoints
from albert_tf.cli.checkpoint_checks import check_weights
from albert_tf.inference.network import Computed
from albert_tf.tasks.sentence_embedding.settings import EmbeddingSettings
from albert_tf.tasks.sentence_embedding.task import SentenceEmbedding
from tests.conftest import ROOT
from tests.disk import change_json

FOLDER = ROOT / "tests/golden/sentence_transformers"
TOLERANCE = 1e-5


def inputs_of(case, numbers):
    return {name: case.arrays[name][np.array(numbers)] for name in ("input_ids", "attention_mask")}


def row_numbers(case):
    content = json.loads((case.folder / "texts.json").read_text(encoding="utf-8"))
    return [[content["texts"].index(text) for text in row] for row in content["rows"]]


@pytest.mark.parametrize("normalize", [False, True])
def test_embeddings_of_sentence_transformers(golden, normalize):
    case = golden("sentence_transformers")
    model = AlbertForSentenceEmbedding.from_pretrained(case.folder, normalize=normalize)
    assert model.max_length == 24
    found = model.predict(inputs_of(case, range(6)), verbose=0)["sentence_embedding"]
    np.testing.assert_allclose(found, case.arrays["normalized" if normalize else "embeddings"], atol=TOLERANCE, rtol=0)
    rows = model(inputs_of(case, [[0, 1], [2, 4]]))["sentence_embedding"]
    np.testing.assert_allclose(rows, found[[[0, 1], [2, 4]]], atol=1e-6, rtol=0)


@pytest.mark.parametrize("pooling", ["mean", "cls", "max", "mean_sqrt_len"])
def test_poolings_of_sentence_transformers(golden, tmp_path, pooling):
    case = golden("sentence_transformers")
    inputs, expected = inputs_of(case, range(6)), case.arrays[f"embeddings_{pooling}".removesuffix("_mean")]
    model = AlbertForSentenceEmbedding.from_pretrained(case.folder, pooling=pooling)
    np.testing.assert_allclose(model(inputs)["sentence_embedding"], expected, atol=TOLERANCE, rtol=0)
    model.save_pretrained(tmp_path)
    assert AlbertForSentenceEmbedding.from_pretrained(tmp_path).pooling == pooling
    # A network that leaves pooling to the program, as an ONNX file does.
    outputs = {"sequence_output": np.array(model.encoder(inputs)["sequence_output"])}
    task = SentenceEmbedding(None, EmbeddingSettings(max_length=24, pooling=pooling))
    pooled = task.with_embeddings(Computed(np.arange(6), inputs, outputs)).outputs["sentence_embedding"]
    np.testing.assert_allclose(pooled, expected, atol=TOLERANCE, rtol=0)


@pytest.fixture
def dense_folder(golden, tmp_path):
    """A folder of sentence-transformers with all modules: Transformer, Pooling, Dense, Normalize."""
    folder = golden("sentence_transformers").folder
    shutil.copytree(folder, tmp_path / "dense")
    return shutil.copytree(folder / "dense", tmp_path / "dense", dirs_exist_ok=True)


def test_a_dense_module_of_sentence_transformers(golden, dense_folder, tmp_path):
    case, dense = golden("sentence_transformers"), np.load(dense_folder / "io.npz")
    model = AlbertForSentenceEmbedding.from_pretrained(dense_folder)
    assert (model.dense_size, model.dense_activation, model.pooling, model.normalize) == (12, "gelu", "cls", True)
    inputs = inputs_of(case, range(6))
    np.testing.assert_allclose(model(inputs)["sentence_embedding"], dense["embeddings"], atol=TOLERANCE, rtol=0)
    rows = model({name: array.reshape(3, 2, -1) for name, array in inputs.items()})["sentence_embedding"]
    np.testing.assert_allclose(np.reshape(rows, (6, 12)), dense["embeddings"], atol=TOLERANCE, rtol=0)
    model.save_pretrained(tmp_path / "saved")
    checkpoints.write(checkpoints.read(dense_folder), tmp_path / "converted", "huggingface")
    for file in ("2_Dense/config.json", "2_Dense/model.safetensors"):
        assert (tmp_path / "converted" / file).read_bytes() == (tmp_path / "saved" / file).read_bytes()
    modules = json.loads((tmp_path / "saved/modules.json").read_text(encoding="utf-8"))
    assert [module["path"] for module in modules] == ["", "1_Pooling", "2_Dense", "3_Normalize"]
    for name in ("saved", "converted"):
        copy = AlbertForSentenceEmbedding.from_pretrained(tmp_path / name)
        assert copy.get_config() == {**model.get_config(), "name": copy.name}
        for path, array in model.arrays_by_path().items():
            np.testing.assert_array_equal(copy.arrays_by_path()[path], array)
    with pytest.raises(ValueError, match="Google format has no name for dense/bias"):
        checkpoints.write(checkpoints.read(dense_folder), tmp_path / "google", "google")


def test_a_dense_layer_is_trained(dense_folder):
    model = AlbertForSentenceEmbedding.from_pretrained(dense_folder, objective="ranking")
    model.compile("sgd", run_eagerly=True)
    before = model.dense.get_weights()
    model.fit(np.random.default_rng(0).integers(5, 100, [4, 2, 6]), verbose=0)
    assert not np.array_equal(model.dense.get_weights()[0], before[0])
    smaller = AlbertForSentenceEmbedding.from_pretrained(dense_folder, dense_size=None)
    assert "dense/kernel" not in smaller.arrays_by_path()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"activation_function": "torch.nn.modules.activation.Mish"}, "has the activation .*Mish, but one of Tanh"),
        ({"module_input_name": "token_embeddings"}, "applies to `token_embeddings`"),
        ({"size": 3}, r"tensors of the shapes .*\(12, 32\).* are expected"),
        ({"size": None}, "2_Dense has no model.safetensors"),
    ],
)
def test_dense_modules_that_cannot_be_used(dense_folder, change, message):
    folder = dense_folder / "2_Dense"
    change_json(folder / "config.json", **change)
    if "size" in change:
        (folder / "model.safetensors").unlink()
    if change.get("size"):
        save_file({"linear.weight": np.ones((12, 3), "float32")}, folder / "model.safetensors")
    with pytest.raises(ValueError, match=message):
        AlbertForSentenceEmbedding.from_pretrained(dense_folder)


@pytest.mark.parametrize(
    ("objective", "recorded", "count"),
    [
        ("similarity", "similarity", 2),
        ("ranking", "ranking_pairs", 2),
        ("ranking", "ranking", 3),
        ("triplet", "triplet", 3),
    ],
)
def test_losses_of_sentence_transformers(golden, objective, recorded, count):
    case = golden("sentence_transformers")
    model = AlbertForSentenceEmbedding.from_pretrained(case.folder, objective=objective)
    model.compile("sgd", run_eagerly=True)
    inputs = inputs_of(case, [row[:count] for row in row_numbers(case)])
    labels = case.arrays["labels"] if objective == "similarity" else None
    loss = model.evaluate(inputs, labels, verbose=0, return_dict=True)["loss"]
    assert loss == pytest.approx(float(case.arrays[recorded]), abs=TOLERANCE)


@pytest.mark.parametrize("objective", ["similarity", "triplet"])
def test_equal_texts_have_finite_gradients(golden, objective):
    model = AlbertForSentenceEmbedding.from_pretrained(golden("sentence_transformers").folder, objective=objective)
    model.compile("sgd", run_eagerly=True)
    ids = np.full((4, 3 if objective == "triplet" else 2, 5), 7)
    model.fit(ids, np.ones(4) if objective == "similarity" else None, verbose=0)
    assert all(np.isfinite(np.asarray(weight)).all() for weight in model.get_weights())


@pytest.mark.exhaustive
def test_pairs_become_similar(golden):
    model = AlbertForSentenceEmbedding.from_pretrained(golden("sentence_transformers").folder, objective="ranking")
    model.compile("adam", gradient_accumulation_steps=2)
    ids = np.random.default_rng(0).integers(5, 100, [16, 2, 6])
    ids[:, 1, :4] = ids[:, 0, :4]
    history = model.fit(ids, batch_size=8, epochs=6, verbose=0).history
    assert history["accuracy"][-1] > history["accuracy"][0]
    assert history["loss"][-1] < 0.5 * history["loss"][0]


def test_its_folder_is_read_as_it_was_written(golden, tmp_path):
    model = AlbertForSentenceEmbedding.from_pretrained(golden("sentence_transformers").folder, normalize=True)
    model.save_pretrained(tmp_path)
    modules = json.loads((tmp_path / "modules.json").read_text(encoding="utf-8"))
    assert [module["path"] for module in modules] == ["", "1_Pooling", "2_Normalize"]
    copy = AlbertForSentenceEmbedding.from_pretrained(tmp_path)
    assert (copy.normalize, copy.max_length) == (True, 24)
    for path, array in model.arrays_by_path().items():
        np.testing.assert_array_equal(copy.arrays_by_path()[path], array)
    model.normalize = False
    model.save_pretrained(tmp_path)  # over the other one
    assert not AlbertForSentenceEmbedding.from_pretrained(tmp_path).normalize


def test_a_converted_folder_keeps_how_it_pools(tmp_path):
    model = AlbertForSentenceEmbedding(AlbertConfig.from_preset("tiny"), normalize=True, max_length=9)
    model.save_pretrained(tmp_path / "saved")
    checkpoints.write(checkpoints.read(tmp_path / "saved"), tmp_path / "converted", "huggingface")
    for file in ("config.json", "modules.json", "1_Pooling/config.json", "sentence_bert_config.json"):
        assert (tmp_path / "converted" / file).read_text() == (tmp_path / "saved" / file).read_text()


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("modules.json", [{"idx": 0, "type": "x.Transformer"}, {"type": "x.Dense"}], "modules Transformer, Dense"),
        ("modules.json", [{}], "must be a list of modules"),
        ("modules.json", {}, "a list is expected"),
        (
            "1_Pooling/config.json",
            dict.fromkeys(("pooling_mode_cls_token", "pooling_mode_max_tokens"), True),
            "by cls_token, max",
        ),
        ("1_Pooling/config.json", {"pooling_mode": "lasttoken"}, "pools by lasttoken, but one of cls, mean"),
        ("sentence_bert_config.json", {"max_seq_length": "many"}, "`max_seq_length` must be an integer"),
    ],
)
def test_folders_that_cannot_be_read(golden, tmp_path, file, content, message):
    shutil.copytree(golden("sentence_transformers").folder, tmp_path, dirs_exist_ok=True)
    (tmp_path / file).write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(ValueError, match=message):
        AlbertForSentenceEmbedding.from_pretrained(tmp_path)


def test_older_folders_name_their_pooling_by_flags(golden, tmp_path):
    shutil.copytree(golden("sentence_transformers").folder, tmp_path, dirs_exist_ok=True)
    flags = {"pooling_mode_cls_token": False, "pooling_mode_mean_sqrt_len_tokens": True}
    (tmp_path / "1_Pooling/config.json").write_text(json.dumps(flags), encoding="utf-8")
    (tmp_path / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": 10}), encoding="utf-8")
    model = AlbertForSentenceEmbedding.from_pretrained(tmp_path)
    assert (model.max_length, model.pooling) == (10, "mean_sqrt_len")


def test_wrong_arguments_and_rows():
    config = AlbertConfig.from_preset("tiny")
    with pytest.raises(ValueError, match="`objective` must be one of similarity, ranking, triplet"):
        AlbertForSentenceEmbedding(config, objective="cosine")
    with pytest.raises(ValueError, match="`pooling` must be one of mean, cls, max, mean_sqrt_len"):
        AlbertForSentenceEmbedding(config, pooling="last")
    with pytest.raises(ValueError, match="`max_length` must be an integer from 3 to max_position_embeddings=512"):
        AlbertForSentenceEmbedding(config, max_length=1000)
    model = AlbertForSentenceEmbedding(config, objective="triplet")
    model.compile("sgd")
    with pytest.raises(ValueError, match="Rows must have 3 texts for the objective 'triplet'"):
        model.fit(np.ones((4, 2, 5), int), verbose=0)
    with pytest.raises(ValueError, match=r"shape \[B=2, T=3, L=4\]. Received: shape=\(2, 4\)"):
        model({"input_ids": np.ones((2, 3, 4), int), "attention_mask": np.ones((2, 4), int)})
    model = AlbertForSentenceEmbedding(config)
    model.compile("sgd")
    with pytest.raises(ValueError, match="got no labels"):
        model.fit(np.ones((4, 2, 5), int), verbose=0)


def test_a_dense_layer_is_verified(dense_folder):
    assert check_weights(checkpoints.read(dense_folder)) == "Every tensor is used: encoder, dense."
