"""Proves that ONNX files give the Keras models' outputs, hold shared weights once, and appear whole or not at all."""

import json
import shutil

import keras
import numpy as np
import onnx
import onnxruntime
import openvino
import pytest
import tokenizers

from albert_tf import AlbertConfig, AlbertTokenizer, models
from albert_tf.export import export_onnx, export_saved_model, onnx_folder, onnx_graph
from albert_tf.files.atomic import sha256
from albert_tf.inference.pipeline import pipeline
from albert_tf.serving.engine import OnnxEngine
from albert_tf.tasks.settings import read_settings
from tests.parameters import first_of
from tests.tokenization.wordpiece_golden import korean, word_end
from tests.toy_task import CONFIG, change_settings, tokenizer

GROUPS = AlbertConfig(
    vocab_size=50,
    embedding_size=8,
    hidden_size=16,
    num_hidden_layers=3,
    num_hidden_groups=2,
    inner_group_num=2,
    num_attention_heads=2,
    intermediate_size=32,
    max_position_embeddings=12,
    initializer_range=0.5,
)
CONFIGS = {
    "no projection, relu": GROUPS.replace(embedding_size=16, hidden_act="relu", num_hidden_groups=1),
    "attention shared alone, gelu": GROUPS.replace(num_hidden_groups=1, share="attention", hidden_act="gelu"),
}
MODELS = {
    "sequence_classification": lambda config: models.AlbertForSequenceClassification(config, num_labels=3),
    "token_classification": lambda config: models.AlbertForTokenClassification(config, num_labels=3),
    "multiple_choice": models.AlbertForMultipleChoice,
    "question_answering": models.AlbertForQuestionAnswering,
    "question_answering_beam": lambda config: models.AlbertForQuestionAnswering(
        config, head="beam", start_n_top=4, end_n_top=3
    ),
    "pretraining": models.AlbertForPreTraining,
    "masked_lm": models.AlbertForMaskedLM,
    "sentence_embedding": models.AlbertEncoder,
}
NAMES = {
    "pretraining": ("masked_lm_logits", "sentence_order_logits"),
    "question_answering": ("start_logits", "end_logits"),
    "sentence_embedding": ("sequence_output", "pooled_output"),
}
SLOW = pytest.mark.exhaustive
TEXTS = ("The Café, 1999, [MASK]s", "put on his [MASK].", " \t a\u3000b  ``two'' ", "\ufeff한국어 ㅋㅣ", "x" * 300, "")


def random_model(task, config=GROUPS):
    """A model whose weights are all random, those of biases and norms too."""
    keras.utils.set_random_seed(3)
    model, rng = MODELS[task](config), np.random.default_rng(4)
    for variable in model.weights:
        variable.assign(variable + rng.normal(0, 0.1, variable.shape).astype("float32"))
    return model


def padded_batch(task):
    """Rows of 12, 7 and 1 tokens; the padding holds ids too."""
    rng, shape = np.random.default_rng(5), (3, 2, 12) if task == "multiple_choice" else (3, 12)
    lengths = np.array([12, 7, 1]).reshape(3, *[1] * (len(shape) - 1))
    return {
        "input_ids": rng.integers(50, size=shape),
        "attention_mask": np.broadcast_to(np.arange(12) < lengths, shape).astype(np.int64),
        "token_type_ids": rng.integers(2, size=shape),
    }


def in_onnxruntime(model, inputs):
    return onnxruntime.InferenceSession(model.SerializeToString()).run(None, inputs)


def in_openvino(model, inputs):
    core = openvino.Core()
    compiled = core.compile_model(
        core.read_model(model.SerializeToString()), "CPU", {"INFERENCE_PRECISION_HINT": "f32"}
    )
    return list(compiled(inputs).values())


@pytest.mark.parametrize(
    "task",
    [
        pytest.param(task, marks=() if task in ("pretraining", "multiple_choice", "question_answering") else SLOW)
        for task in MODELS
        if task != "question_answering_beam"
    ],
)
def test_outputs_are_the_models(task):
    model, inputs = random_model(task), padded_batch(task)
    graph = onnx_graph.onnx_graph(task, GROUPS, model.arrays_by_path()).model
    onnx.checker.check_model(graph, full_check=True)
    outputs = model(inputs, training=False)
    for run in (in_onnxruntime, in_openvino):
        for name, given in zip(NAMES.get(task, ("logits",)), run(graph, inputs), strict=True):
            np.testing.assert_allclose(given, outputs[name], rtol=0, atol=1e-4, err_msg=f"{run.__name__} {name}")


def test_beams_are_the_models():
    task = "question_answering_beam"
    model, inputs = random_model(task), padded_batch(task)
    graph = onnx_graph.onnx_graph(task, GROUPS, model.arrays_by_path(), beams=(4, 3)).model
    onnx.checker.check_model(graph, full_check=True)
    inputs["attention_mask"][2] = inputs["attention_mask"][1]
    inputs["p_mask"] = 1 - inputs["attention_mask"]
    inputs["p_mask"][:, 1:3] = 1
    outputs, short = model(inputs, training=False), {name: array[:1, :3] for name, array in inputs.items()}
    names = [output.name for output in graph.graph.output]
    assert set(names) == set(outputs)
    for run in (in_onnxruntime, in_openvino):
        for name, given in zip(names, run(graph, inputs), strict=True):
            assert given.dtype == np.asarray(outputs[name]).dtype
            np.testing.assert_allclose(given, outputs[name], rtol=0, atol=1e-4, err_msg=f"{run.__name__} {name}")
        few = dict(zip(names, run(graph, short), strict=True))  # rows shorter than the beams
        assert few["start_top_index"].shape == (1, 4)
        assert few["start_top_index"][0, 0] == 0  # the others are masked
        assert few["end_top_index"].max() == 2
        np.testing.assert_allclose(few["start_top_log_probs"][0, :2], [0, -1e30], atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("name", first_of(CONFIGS))
def test_other_configs(name):
    model, inputs = random_model("sentence_embedding", CONFIGS[name]), padded_batch("sentence_embedding")
    graph = onnx_graph.onnx_graph("sentence_embedding", CONFIGS[name], model.arrays_by_path()).model
    outputs = model(inputs, training=False)
    for given, expected in zip(in_onnxruntime(graph, inputs), (outputs["sequence_output"], outputs["pooled_output"])):
        np.testing.assert_allclose(given, expected, rtol=0, atol=1e-4)


@pytest.mark.parametrize(("precision", "bytes_per_weight"), [("float32", 4), ("float16", 2), ("int8", 1)])
def test_shared_weights_are_stored_once(precision, bytes_per_weight):
    config = AlbertConfig.from_preset("tiny").replace(num_hidden_layers=12)
    arrays = models.AlbertForPreTraining(config).arrays_by_path()
    ranges = [(-1.0, 1.0)] * 100
    graph = onnx_graph.onnx_graph("pretraining", config, arrays, precision, ranges).model
    # An int8 file has scales and float32 biases besides.
    limit = 1.4 if precision == "int8" else 1.1
    assert len(graph.SerializeToString()) < limit * bytes_per_weight * sum(array.size for array in arrays.values())


def test_half_precision_stays_finite_without_any_token():
    model, inputs = random_model("sentence_embedding"), padded_batch("sentence_embedding")
    graph = onnx_graph.onnx_graph("sentence_embedding", GROUPS, model.arrays_by_path(), "float16").model
    inputs["attention_mask"][2] = 0
    outputs = model(inputs, training=False)
    for given, name in zip(in_onnxruntime(graph, inputs), ("sequence_output", "pooled_output")):
        assert given.dtype == np.float32
        np.testing.assert_allclose(given, outputs[name], rtol=0, atol=0.05)


@pytest.fixture(scope="module")
def report(folders, tmp_path_factory):
    return export_onnx(folders["classifier"], tmp_path_factory.mktemp("onnx"), "task")


def test_a_folder_is_complete(report, folders):
    names = {path.relative_to(report.folder).as_posix() for path in report.folder.rglob("*") if path.is_file()}
    tokenizer_files = {"spiece.model", "tokenizer.json", "tokenizer_config.json"}
    assert names == {"config.json", "model.json", "onnx/model.onnx", "onnx/model_quantized.onnx", *tokenizer_files}
    assert report.folder.name == "1"
    assert report.largest_differences["float32"] < 1e-5 < report.largest_differences["int8"] < 0.1
    assert report.sizes["int8"] < report.sizes["float32"] / 2
    config = json.loads((report.folder / "config.json").read_text())
    assert config == json.loads((folders["classifier"] / "config.json").read_text())
    manifest = read_settings(report.folder)
    assert (manifest.task, manifest.max_length, manifest.pair_column) == ("sequence_classification", 48, None)
    assert manifest.labels == ("gloomy", "mixed", "pleasant")
    content = json.loads((report.folder / "model.json").read_text())
    assert content.keys() == {*manifest.entries(), "files"}
    settings = json.loads((report.folder / "tokenizer_config.json").read_text())
    assert settings["model_max_length"] == 48  # for transformers.js
    assert set(content["files"]) == names - {"model.json"}
    for name, file in content["files"].items():
        assert file == {"bytes": (report.folder / name).stat().st_size, "sha256": sha256(report.folder / name)}


@pytest.mark.parametrize("engine", ["onnxruntime", "openvino"])
def test_int8_is_close_in_both_engines(report, engine):
    inputs = tokenizer()(["One text.", "Another, longer one with the old man and the sea."])
    inputs = {name: array.astype(np.int64) for name, array in inputs.items()}
    run = {"onnxruntime": in_onnxruntime, "openvino": in_openvino}[engine]
    exact, rounded = (
        run(onnx.load(report.folder / "onnx" / name), inputs)[0] for name in ("model.onnx", "model_quantized.onnx")
    )
    assert 0 < np.abs(exact - rounded).max() < 0.2 * np.abs(exact).max()


@pytest.mark.exhaustive
def test_wrong_outputs_are_not_published(folders, tmp_path, monkeypatch):
    monkeypatch.setattr(onnx_folder, "TOLERANCE", -1.0)
    with pytest.raises(ValueError, match=r"The outputs of the ONNX file differ by .* Nothing was written"):
        export_onnx(folders["classifier"], tmp_path, "task")
    assert list(tmp_path.iterdir()) == []


def test_a_beam_head_has_all_files(folders, tmp_path):
    report = export_onnx(folders["questions_beam"], tmp_path, "beam", precisions=["float16", "int8"])
    assert report.largest_differences["float32"] < 1e-5
    assert max(report.largest_differences.values()) < 0.2
    assert read_settings(report.folder).task == "question_answering"


def test_a_file_that_is_too_large(monkeypatch):
    monkeypatch.setattr(onnx_graph, "_MAX_BYTES", 1000)
    with pytest.raises(ValueError, match=r"An ONNX file must not be larger than 2 GB"):
        onnx_graph.onnx_graph("masked_lm", GROUPS, random_model("masked_lm").arrays_by_path())


def test_ids_are_those_of_the_tokenizers_library(report, tmp_path):
    korean().save_pretrained(tmp_path)
    for ours, folder in ((tokenizer(), report.folder), (korean(), tmp_path)):
        theirs = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
        for text in TEXTS:
            assert theirs.encode(text).ids[1:-1] == ours.encode(text, allow_special=True), text
        pair = theirs.encode("one", "two")
        expected = ours("one", "two")
        assert pair.ids == expected["input_ids"][0].tolist()
        assert pair.type_ids == expected["token_type_ids"][0].tolist()
        assert AlbertTokenizer.from_pretrained(folder).vocab_hash == ours.vocab_hash


def test_a_vocabulary_without_tokenizer_json_is_warned_of(tmp_path):
    vocabulary = word_end()
    models.AlbertForMaskedLM(CONFIG.replace(vocab_size=vocabulary.vocab_size)).save_pretrained(tmp_path / "model")
    vocabulary.save_pretrained(tmp_path / "model")
    with pytest.warns(UserWarning, match=r"transformers\.js cannot read texts for this model"):
        report = export_onnx(tmp_path / "model", tmp_path / "out", "ends", precisions=["float32"])
    assert not (report.folder / "tokenizer.json").exists()


def test_damaged_settings_are_named(folders, tmp_path):
    change_settings(shutil.copytree(folders["classifier"], tmp_path / "model"), header="x")
    with pytest.raises(ValueError, match=r"model\.json: `header` is invalid .*Received: 'x'"):
        export_onnx(tmp_path / "model", tmp_path / "out", "task")


def test_embeddings_take_single_texts_though_they_learned_from_pairs(folders, tmp_path):
    source = shutil.copytree(folders["embedding"], tmp_path / "model")
    change_settings(source, pair_column="sentence2")
    folder = export_onnx(source, tmp_path, "embedding", precisions=["float32"]).folder
    assert read_settings(folder).pair_column == "sentence2"
    assert pipeline(folder).model.text_task.inputs == ("text",)


def test_a_classifier_without_a_record_is_exported_for_pairs_if_asked(tmp_path):
    models.AlbertForSequenceClassification(CONFIG, labels=["no", "yes"]).save_pretrained(tmp_path / "model")
    tokenizer().save_pretrained(tmp_path / "model")
    open_one, pairs = (
        export_onnx(tmp_path / "model", tmp_path, name, precisions=["float32"], pair_column=column).folder
        for name, column in (("open", None), ("pairs", "text_pair"))
    )
    assert pipeline(open_one)("a", "b") == pipeline(pairs)("a", "b") != pipeline(open_one)("a")
    assert [OnnxEngine(folder).signatures["serving_default"].inputs.keys() for folder in (open_one, pairs)] == [
        {"text"},
        {"text", "text_pair"},
    ]
    with pytest.raises(ValueError, match="trained on pairs of texts, but received single texts"):
        pipeline(pairs)("a")


def test_an_encoder_is_exported_for_programs_that_pool(tmp_path):
    models.AlbertEncoder(CONFIG, add_pooling_layer=False).save_pretrained(tmp_path / "encoder")
    tokenizer().save_pretrained(tmp_path / "encoder")
    folder = export_onnx(tmp_path / "encoder", tmp_path, "m", precisions=["float32"]).folder
    assert read_settings(folder).task == "sentence_embedding"
    assert np.shape(pipeline(folder)(["a text", ""])) == (2, CONFIG.hidden_size)


@pytest.mark.parametrize("max_length", [0, 65, 8.0])
def test_a_length_that_the_model_cannot_take_is_refused(max_length, folders, tmp_path):
    for write in (export_onnx, export_saved_model):
        with pytest.raises(ValueError, match=r"`max_length` must be an integer from 3 to 64"):
            write(folders["pretrained"], tmp_path, "m", max_length=max_length)
