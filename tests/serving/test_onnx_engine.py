"""Proves that the ONNX engine answers as the Keras models do, without TensorFlow, and names what it cannot answer."""

import concurrent.futures
import json
import shutil
import sys

import keras
import numpy as np
import pytest

from albert_tf import models
from albert_tf.data.finetuning.choices import ChoiceQuestion
from albert_tf.data.finetuning.tagged import TaggedText
from albert_tf.export import answer_questions, classify, embed, export_onnx, fill_mask, load_folder, sentence_order
from albert_tf.serving.onnx_engine import load
from albert_tf.trainer import tasks
from albert_tf.trainer.task_options import TaskOptions
from tests.parameters import MadeOnce, first_of
from tests.toy_task import CONFIG, tokenizer

TEXTS = ("One short text.", "", "  Ünïcödé, 1,000 Wörter und 한국어 — and more of them ", "many words " * 40)
LONG = "The old man went by the house of Anna Smith in Berlin, with very cold rain. " * 6
OPTIONS = {"max_length": 32, "doc_stride": 12, "max_question_length": 10, "max_answer_length": 4}
LABELS = {"labels": ["gloomy", "mixed", "pleasant"]}
MODELS = {
    "classifier": lambda: models.AlbertForSequenceClassification(CONFIG, **LABELS),
    "pairs": lambda: models.AlbertForSequenceClassification(CONFIG, **LABELS),
    "multi_label": lambda: models.AlbertForSequenceClassification(CONFIG, problem="multi_label", **LABELS),
    "regression": lambda: models.AlbertForSequenceClassification(CONFIG, problem="regression"),
    "pretrained": lambda: models.AlbertForPreTraining(CONFIG),
    "tags": lambda: models.AlbertForTokenClassification(CONFIG, labels=["O", "B-PER", "I-PER"]),
    "choices": lambda: models.AlbertForMultipleChoice(CONFIG),
    "answers": lambda: models.AlbertForQuestionAnswering(CONFIG),
    "beams": lambda: models.AlbertForQuestionAnswering(CONFIG, head="beam"),
    "vectors": lambda: models.AlbertForSentenceEmbedding(CONFIG, normalize=True, max_length=40),
}

# Runs in a process of its own, where it may take two seconds.
ALONE = """
import sys
import numpy as np
from albert_tf.serving.onnx_engine import load
engine = load(sys.argv[1], sys.argv[2])
engine.run("serving_default", {"text": np.array([b"One short text."], object)})
print("FOREIGN", sorted({"tensorflow", "keras", "onnx", "jax", "torch", "pydantic"} & set(sys.modules)))
"""


@pytest.fixture(scope="module")
def sources(tmp_path_factory):
    """A folder of each kind of model, with random weights, as fine-tuning leaves it."""
    root = tmp_path_factory.mktemp("sources")

    def write(kind):
        keras.utils.set_random_seed(6)
        MODELS[kind]().save_pretrained(root / kind)
        tokenizer().save_pretrained(root / kind)
        recipe = {**OPTIONS, "pair_column": "text_pair" if kind == "pairs" else None}
        (root / kind / "recipe.json").write_text(json.dumps(recipe))
        return root / kind

    return MadeOnce({kind: lambda kind=kind: write(kind) for kind in MODELS})


@pytest.fixture(scope="module")
def folders(sources, tmp_path_factory):
    """The exported folder of each kind."""
    output = tmp_path_factory.mktemp("onnx")
    make = lambda kind: export_onnx(sources[kind], output, kind, precisions=["float32"]).folder  # noqa: E731
    return MadeOnce({kind: lambda kind=kind: make(kind) for kind in MODELS})


@pytest.fixture(scope="module")
def engines(folders):
    """Both engines of each kind."""
    names = ("onnxruntime", "openvino")
    return MadeOnce({kind: lambda kind=kind: [load(folders[kind], name) for name in names] for kind in MODELS})


def strings(values):
    return np.vectorize(str.encode, otypes=[object])(np.array(values, object))


def ask(engine, signature="serving_default", **texts):
    """Answers, after a look at whether they are as the signature says."""
    outputs = engine.run(signature, {name: strings(values) for name, values in texts.items()})
    specs = engine.signatures[signature].outputs
    assert set(outputs) == set(specs)
    for name, array in outputs.items():
        assert array.dtype == np.dtype("O" if specs[name].dtype == "string" else specs[name].dtype), name
        assert len(array.shape) == len(specs[name].shape), name
        assert all(wanted in (None, length) for wanted, length in zip(specs[name].shape, array.shape)), name
    return outputs


def same(given, expected):
    np.testing.assert_allclose(given, expected, rtol=0, atol=1e-4)


@pytest.mark.parametrize("kind", first_of(["classifier", "pairs", "multi_label"]))
def test_labels_are_the_models(kind, sources, engines):
    pairs = {"text_pair": TEXTS[::-1]} if kind == "pairs" else {}
    predictions = classify(load_folder(sources[kind]), TEXTS, pairs.get("text_pair"))
    for engine in engines[kind]:
        outputs = ask(engine, text=TEXTS, **pairs)
        same(outputs["probabilities"], [list(prediction.probabilities.values()) for prediction in predictions])
        same(outputs["score"], [prediction.score for prediction in predictions])
        assert [label.decode() for label in outputs["label"]] == [prediction.label for prediction in predictions]
        assert engine.run("labels", {})["labels"].tolist() == [b"gloomy", b"mixed", b"pleasant"]


@pytest.mark.exhaustive
def test_numbers_are_the_models(sources, engines):
    predictions = classify(load_folder(sources["regression"]), TEXTS)
    for engine in engines["regression"]:
        assert "labels" not in engine.signatures
        same(ask(engine, text=TEXTS)["score"], [prediction.score for prediction in predictions])


@pytest.mark.exhaustive
def test_pieces_and_orders_are_the_models(sources, engines):
    loaded = load_folder(sources["pretrained"])
    texts = ("He put his [MASK] on.", "[MASK]s sang", LONG[:60] + "[MASK]")
    predictions = fill_mask(loaded, texts, top=10)
    for engine in engines["pretrained"]:
        outputs = ask(engine, text=[*texts, "[MASK] and [MASK]"])
        assert outputs["pieces"].shape == (4, 2, 10)
        same(outputs["probabilities"][:3, 0], [masks[0].probabilities for masks in predictions])
        assert [row[0].decode() for row in outputs["pieces"][:3, 0]] == [masks[0].pieces[0] for masks in predictions]
        assert set(outputs["pieces"][:3, 1].flat) == {b""}
        assert not outputs["probabilities"][:3, 1].any()
        assert outputs["probabilities"][3].min() > 0
        orders = ask(engine, "sentence_order", text=TEXTS, text_pair=TEXTS[::-1])["in_order"]
        same(orders, sentence_order(loaded, TEXTS, TEXTS[::-1]))
        for text in ("No mask.", LONG + "[MASK]"):
            with pytest.raises(ValueError, match=r"Each text must contain \[MASK\], all of them within its first 30"):
                ask(engine, text=["A [MASK].", text])


@pytest.mark.exhaustive
def test_entities_are_the_models(sources, engines):
    texts = ["", "Anna Smith went by.", "  한국어 Anna  ", LONG]
    task = tasks.TokenClassification(TaskOptions(task="token_classification", **OPTIONS))
    model = models.AlbertForTokenClassification.from_pretrained(sources["tags"])
    expected = task.predictor(model, tokenizer(), [TaggedText("here", text) for text in texts])().spans
    assert max(map(len, expected)) > 5
    for engine in engines["tags"]:
        outputs = ask(engine, text=texts)
        for row, (text, spans) in enumerate(zip(texts, expected)):
            found = [outputs[f"entity_{name}"][row].tolist() for name in ("start", "end", "label", "text", "score")]
            padding = outputs["entity_label"].shape[1] - len(spans)
            wanted = [(start, end, label.encode(), text[start:end].encode()) for start, end, label in spans]
            assert list(zip(*found[:4])) == wanted + [(-1, -1, b"", b"")] * padding
            assert all(1 / 3 <= score <= 1 for score in found[4][: len(spans)])
            assert found[4][len(spans) :] == [0.0] * padding


@pytest.mark.exhaustive
def test_choices_are_the_models(sources, engines):
    contexts, choices = ["It rained. " * 30, "The sun."], [["rain", "sun", "fog"], ["a", "b " * 20, "c"]]
    task = tasks.MultipleChoice(TaskOptions(task="multiple_choice", **OPTIONS))
    model = models.AlbertForMultipleChoice.from_pretrained(sources["choices"])
    questions = [ChoiceQuestion("", context, "", tuple(row), 0) for context, row in zip(contexts, choices)]
    logits = task.predictor(model, tokenizer(), questions)().logits
    for engine in engines["choices"]:
        outputs = ask(engine, context=contexts, choices=choices)
        assert outputs["choice"].tolist() == logits.argmax(axis=1).tolist()
        same(outputs["probabilities"], np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True))
        same(outputs["score"], outputs["probabilities"].max(axis=1))
        tokens = engine.run("tokenize", {"context": strings(contexts), "choices": strings(choices)})
        same(engine.run("tokens", tokens)["logits"], logits)


@pytest.mark.parametrize("kind", ["answers", "beams"])
def test_answers_are_the_models(kind, sources, engines):
    contexts = [LONG, "In Berlin.", LONG[::-1], "In the house by the sea."]
    questions = ["Where is Anna?", "Where?", "Who went by the house?", "Where?"]  # one question about two passages
    expected = answer_questions(load_folder(sources[kind]), questions, contexts)
    for engine in engines[kind]:
        outputs = ask(engine, question=questions, context=contexts)
        assert [answer.decode() for answer in outputs["answer"]] == [answer.text for answer in expected]
        for name in ("start", "end", "score", "null_odds"):
            same(outputs[name], [getattr(answer, name) for answer in expected])
        assert max(outputs["start"]) > 30
        tokens = engine.run("tokenize", {"question": strings(questions), "context": strings(contexts)})
        scores = engine.run("tokens", tokens)
        assert {name: array.dtype for name, array in scores.items()} == {
            name: spec.dtype for name, spec in engine.signatures["tokens"].outputs.items()
        }
        with pytest.raises(ValueError, match=r"^The passage of question 'Why\?' has no tokens; delete it\.$"):
            ask(engine, question=["Who?", "Why?"], context=["The sun.", " "])


@pytest.mark.exhaustive
def test_questions_above_the_threshold_are_not_answered(sources, tmp_path):
    shutil.copytree(sources["answers"], tmp_path / "model")
    (tmp_path / "model" / "metrics.json").write_text('{"no_answer_threshold": -100.0}')
    folder = export_onnx(tmp_path / "model", tmp_path / "out", "answers", precisions=["float32"]).folder
    outputs = ask(load(folder, "onnxruntime"), question=["Where?"], context=[LONG])
    assert (outputs["answer"][0], outputs["start"][0], outputs["end"][0]) == (b"", -1, -1)


@pytest.mark.exhaustive
def test_vectors_are_the_models(sources, engines):
    expected = embed(load_folder(sources["vectors"]), TEXTS)
    for engine in engines["vectors"]:
        outputs = ask(engine, text=TEXTS)
        same(outputs["sentence_embedding"], expected)
        assert outputs["sequence_output"].shape == (4, 40, CONFIG.hidden_size)


def test_answers_do_not_depend_on_threads_or_batches(engines):
    texts = [text[: 7 * number] for number, text in enumerate([LONG] * 24)]
    for engine in engines["classifier"]:
        together = ask(engine, text=texts)["probabilities"]
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            alone = list(pool.map(lambda text, engine=engine: ask(engine, text=[text])["probabilities"][0], texts))
        same(alone, together)


@pytest.mark.parametrize("engine", ["openvino", "onnxruntime"])
def test_nothing_heavy_is_imported(folders, run_python, engine):
    assert run_python("-c", ALONE, folders["classifier"], engine).stdout.split("FOREIGN ")[1].strip() == "[]"


def test_what_does_not_fit_is_named(engines):
    engine, one = engines["classifier"][0], np.ones([1, 4], np.int32)
    ids = {"input_ids": one, "attention_mask": one, "token_type_ids": one}
    for signature, inputs, message in (
        ("serve", {}, r"`signature` must be one of serving_default, tokens, tokenize, labels\. Received: 'serve'"),
        ("serving_default", {"question": strings(["a"])}, r"serving_default takes text\. Received: question"),
        ("serving_default", {"text": strings([["a"]])}, r"`text` must have 1 axes"),
        ("serving_default", {"text": np.array([], object)}, r"`text` must have 1 axes .* at least one"),
        ("tokens", {**ids, "input_ids": one * 30000}, r"`input_ids` must be integers from 0 to 29999"),
        ("tokens", {**ids, "attention_mask": one * 2}, r"`attention_mask` must be integers from 0 to 1"),
        ("tokens", {name: np.ones([1, 65], np.int32) for name in ids}, r"must have at most 64 columns"),
    ):
        with pytest.raises(ValueError, match=message):
            engine.run(signature, inputs)


def test_bfloat16_is_of_openvino_and_near_float32(folders, engines):
    found = ask(load(folders["classifier"], precision="bfloat16"), text=TEXTS)["probabilities"]
    expected = ask(engines["classifier"][1], text=TEXTS)["probabilities"]
    np.testing.assert_allclose(found, expected, rtol=0, atol=0.02)  # equal where the processor has no bfloat16
    with pytest.raises(ValueError, match=r"`engine` must be 'openvino' for precision='bfloat16'"):
        load(folders["classifier"], "onnxruntime", "bfloat16")


def test_damaged_folders_are_named(folders, tmp_path):
    with pytest.raises(ValueError, match=r"has no ONNX file in int8, only in float32"):
        load(folders["classifier"], precision="int8")
    with pytest.raises(ValueError, match=r"`engine` must be one of auto, openvino, onnxruntime"):
        load(folders["classifier"], "tvm")
    shutil.copytree(folders["classifier"], tmp_path / "copy")
    weights, manifest = tmp_path / "copy" / "onnx" / "model.onnx", tmp_path / "copy" / "model.json"
    weights.write_bytes(weights.read_bytes()[:-1] + b"\0")
    with pytest.raises(ValueError, match=r"model\.onnx was changed after it was written"):
        load(tmp_path / "copy")
    manifest.write_text(manifest.read_text().replace("48", "49").replace("32", "33"))
    with pytest.raises(ValueError, match=r"model\.json was changed after it was written"):
        load(tmp_path / "copy")


def test_an_engine_that_is_not_installed_is_named(folders, monkeypatch):
    monkeypatch.setitem(sys.modules, "openvino", None)
    assert load(folders["classifier"]).name == "onnxruntime"
    with pytest.raises(ValueError, match=r"openvino is not installed; pip install 'albert-tf\[openvino\]'"):
        load(folders["classifier"], "openvino")
