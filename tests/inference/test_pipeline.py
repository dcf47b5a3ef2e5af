"""Proves that `albert_tf.pipeline` loads whatever holds a model, and predicts in order, from any sequence."""

import itertools
import math
import shutil

import numpy as np
import pandas
import pytest
import tensorflow as tf

import albert_tf
from albert_tf import export
from albert_tf.inference.folder import load_folder
from albert_tf.serving.engine import OnnxEngine
from albert_tf.tasks.masked_lm.task import SentenceOrder
from tests.inference.test_signatures import same
from tests.parameters import first_of

LONG = "The old man went by the house of Anna Smith in Berlin, with very cold rain. " * 4
TEXTS = ["One short text.", LONG, "", "  Ünïcödé, 1,000 Wörter und 한국어 — and more ", "a sunny garden"]
CONTEXTS = [LONG, "She wrote it.", "x y", "In 1811, or so.", "Ada Lovelace lived in London."]
QUESTIONS = [*TEXTS[:2], *TEXTS[3:], "Who?"]


@pytest.fixture(scope="module")
def folder_for(folders, exports, onnx_folders):
    def find(kind, engine):
        if engine == "keras":
            return folders[kind]
        return exports[kind].folder if engine == "tensorflow" else onnx_folders[kind]

    return find


@pytest.mark.parametrize("engine", first_of(["keras", "openvino", "tensorflow"]))
def test_the_order_of_segments(engine, folders, folder_for):
    loaded = load_folder(folders["pretrained"])
    expected = loaded.predict(TEXTS, TEXTS[::-1], task=SentenceOrder(loaded.tokenizer, loaded.settings))
    same(albert_tf.pipeline(folder_for("pretrained", engine))(TEXTS, TEXTS[::-1]), expected)


@pytest.mark.parametrize("engine", ["keras", "tensorflow", "openvino"])
def test_what_a_folder_holds_decides(engine, folder_for):
    folder = folder_for("classifier", engine)
    assert albert_tf.pipeline(str(folder)).model.network.name == engine
    if engine != "keras":
        assert albert_tf.pipeline(folder.parent).model.network.name == engine
        with pytest.raises(ValueError, match=r"format (ONNX|SavedModel), not a folder of weights; leave `engine` out"):
            albert_tf.pipeline(folder, engine="keras")
    for other in {"tensorflow", "onnxruntime"} - {engine}:
        if {engine, other} != {"openvino", "onnxruntime"}:
            with pytest.raises(ValueError, match=r"holds no .*write one with `albert-tf export`"):
                albert_tf.pipeline(folder, engine=other)


def test_precisions(folder_for, tmp_path):
    """Of weights the model's data type, of an ONNX folder the file or the hint; close to float32, but not equal."""
    keras_folder = folder_for("classifier", "keras")
    onnx_folder = export.export_onnx(keras_folder, tmp_path, "both", precisions=("float32", "int8")).folder
    expected = albert_tf.pipeline(keras_folder, precision="float32")(TEXTS)
    for folder, engine, precision in (
        (keras_folder, "keras", "bfloat16"),
        (onnx_folder, "onnxruntime", "int8"),
        (onnx_folder, "openvino", "int8"),
    ):
        found = albert_tf.pipeline(folder, engine=engine, precision=precision)(TEXTS)
        scores, exact = (np.array([list(one.probabilities.values()) for one in given]) for given in (found, expected))
        np.testing.assert_allclose(scores, exact, atol=0.05)
        assert np.abs(scores - exact).max() > 1e-6
    for folder, given, message in (
        (keras_folder, {"precision": "int8"}, "export them with --format onnx"),
        (keras_folder, {"precision": "half"}, "`precision` must be one of float32, bfloat16"),
        (folder_for("classifier", "tensorflow"), {"precision": "bfloat16"}, "chosen when it was exported"),
        (onnx_folder, {"precision": "float16"}, "no ONNX file in float16, only in float32, int8"),
    ):
        with pytest.raises(ValueError, match=message):
            albert_tf.pipeline(folder, **given)


@pytest.fixture
def computed(folder_for):
    """A classifier in batches of 30, and the shapes of the ids that it has computed."""
    predictor = albert_tf.pipeline(folder_for("classifier", "onnxruntime"), engine="onnxruntime", batch_size=30)
    return predictor, recorded_shapes(predictor.model.network)


def recorded_shapes(network):
    shapes, compute = [], network.compute
    network.compute = lambda batch: shapes.append(batch["input_ids"].shape) or compute(batch)
    return shapes


def test_as_many_texts_are_computed_at_once_as_asked(computed):
    predictor, shapes = computed
    predictor([*["a text"] * 20, *["a longer text"] * 30])
    assert [rows for rows, _ in shapes] == [30, 20]
    assert shapes[0][1] > shapes[1][1]  # the longest ones first


def test_texts_with_equal_numbers_of_tokens_are_computed_together(computed):
    predictor, shapes = computed
    texts = ["the " * 6, "! ? ! ? ! ? " * 2] * 30  # all have 24 characters
    lengths = [len(ids) + 2 for ids in predictor.model.tokenizer.encode_batch(texts)]
    assert len(set(lengths)) == 2
    predictor(texts)
    assert sum(rows * length for rows, length in shapes) == sum(lengths)  # without padding


def test_the_batches_of_a_server_are_computed_as_they_are(onnx_folders):
    """Which may be of more than 1,024 tokens (`albert-tf serve --max-batch-tokens`)."""
    engine = OnnxEngine(onnx_folders["classifier"], "onnxruntime")
    shapes = recorded_shapes(engine._predictor.network)
    engine.run("serving_default", {"text": np.array([b"! ? ! ? ! ? " * 2] * 60, object)})
    assert shapes == [(60, 26)]


@pytest.fixture(scope="module")
def classifier(onnx_folders):
    return albert_tf.pipeline(onnx_folders["classifier"], engine="onnxruntime", batch_size=2)


@pytest.fixture(scope="module")
def chooser(onnx_folders):
    return albert_tf.pipeline(onnx_folders["choices"], engine="onnxruntime", batch_size=2)


@pytest.mark.parametrize(
    "make",
    [
        tuple,
        np.array,
        pandas.Series,
        lambda texts: pandas.Series(texts, index=[3, 3, 1, 0, 7], dtype="string"),
        lambda texts: pandas.DataFrame({"number": range(len(texts)), "text": texts}),
        lambda texts: {"text": texts},
        lambda texts: dict.fromkeys(texts).keys(),
    ],
)
def test_several_texts_may_be_any_sequence(make, classifier):
    same(classifier(make(TEXTS)), classifier(TEXTS))


def test_one_text_may_be_of_numpy(classifier):
    same(classifier(np.str_(TEXTS[0])), classifier(TEXTS)[0])
    assert classifier([]) == []
    assert list(classifier(iter([]))) == []


def test_columns_of_a_table(onnx_folders):
    asker = albert_tf.pipeline(onnx_folders["questions"], engine="onnxruntime")
    table = pandas.DataFrame({"context": CONTEXTS, "id": range(5), "question": QUESTIONS})
    expected = asker(question=QUESTIONS, context=CONTEXTS)
    same(asker(table), expected)
    same(asker(context=table["context"], question=table["question"]), expected)
    same(asker(table.iloc[0].to_dict()), expected[0])


def test_an_iterator_is_read_some_batches_at_a_time(classifier):
    taken = itertools.count()
    texts = (f"text {next(taken)} " + "word " * (number % 5) for number in range(100))
    found = classifier(texts)
    first = next(found)
    assert next(taken) == 64  # 32 batches of 2
    expected = [f"text {n} " + "word " * (n % 5) for n in range(64)]
    same([first, *itertools.islice(found, 63)], classifier(expected))
    assert len(list(found)) == 36


def test_texts_of_many_batches_are_handed_over_by_length(classifier, monkeypatch):
    sizes = []
    predict = type(classifier.model).predict
    monkeypatch.setattr(
        type(classifier.model),
        "predict",
        lambda model, texts, **task: sizes.append([*map(len, texts)]) or predict(model, texts, **task),
    )
    classifier(["x" * length for length in (9, *range(80, 9, -1), *range(1, 9))])
    assert sizes == [[*range(1, 65)], [*range(65, 81)]]


def test_numbers_of_choices_may_differ(chooser):
    choices = [["a", "b", "c"], ["a", "b"], ["d", "e", "f"], ["a", "b", "c", "d"]]
    found = chooser(CONTEXTS[:4], choices)
    for context, row, result in zip(CONTEXTS, choices, found, strict=False):
        same(chooser(context, row), result)
        assert math.isclose(result.sum(), 1, abs_tol=1e-5)
    assert [len(result) for result in found] == [3, 2, 3, 4]
    same(chooser(CONTEXTS[:2], np.array([["a", "b"], ["c", "d"]])), chooser(CONTEXTS[:2], [("a", "b"), ("c", "d")]))


CHOICES = r"Row 0 of `choices` must be a list of texts"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((["a", float("nan")],), r"Row 1 of `text` must be a text\. Received: 'nan'"),
        ((["a", ["b"]],), r"Row 1 of `text` must be a text"),
        ((5,), r"`text` must be a text, or for several rows a list\. Received: '5'"),
        ((b"a",), r"`text` must be a text, or for several"),
        (("a", "b"), r"trained on single texts, but received pairs"),
        ((["a"], "b"), r"`text_pair` must be a text, or for several rows a list\. Received: 'b'"),
        ((["a"], ["b", "c"]), r"equal numbers of rows\. Received: \{'text': 1, 'text_pair': 2\}"),
        (("a", "b", "c"), r"takes text and text_pair\. Received: 'a', 'b', 'c'"),
        ((), r"takes text and text_pair\. Received: none of them"),
        (({"title": "a"},), r"takes text and text_pair\. Received: \{'title'"),
        ((pandas.DataFrame({"title": ["a"]}),), "a DataFrame with the columns 'title'; give one of its columns"),
    ],
)
def test_mistakes_are_explained(classifier, arguments, message):
    with pytest.raises(ValueError, match=message):
        classifier(*arguments)


def test_other_mistakes_are_explained(classifier, chooser, folders, tmp_path):
    nowhere = tmp_path / "nowhere"
    for call, message in (
        (lambda: classifier("a", question="b"), r"takes text and text_pair\. Received: 'a', question"),
        (lambda: classifier("a", text="b"), r"takes text and text_pair\. Received: 'a', text\."),
        *((lambda choices=choices: chooser("a", choices), CHOICES) for choices in ("no", [], [5], None)),
        (lambda: chooser("a"), r"takes context and choices"),
        (lambda: albert_tf.pipeline("classification", "runs/x"), "which tells the task.*Received: 'classif.*'; write"),
        (lambda: albert_tf.pipeline(folders["classifier"], engine="torch"), "`engine` must be one of keras, tensorf"),
        (lambda: albert_tf.pipeline(folders["classifier"], batch_size=0), "`batch_size` must be an integer of at l"),
        (lambda: albert_tf.pipeline(nowhere), "nowhere does not exist; check the spelling"),
        (lambda: albert_tf.pipeline(nowhere, engine="openvino"), "nowhere does not exist; check the spelling"),
    ):
        with pytest.raises(ValueError, match=message):
            call()
    assert repr(classifier) == "<Pipeline task=sequence_classification engine=onnxruntime batch_size=2>"


class _Lengths(tf.Module):
    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="words")])
    def lengths(self, words):
        return {"length": tf.strings.length(words)}


def test_a_saved_model_of_another_program_is_told_apart(exports, tmp_path):
    module = _Lengths()
    tf.saved_model.save(module, str(tmp_path / "foreign"), signatures={"serving_default": module.lengths})
    expected = r"was not written by `albert-tf export`, or lacks .*; call .*: serving_default\(words\) -> length\."
    with pytest.raises(ValueError, match=expected):
        albert_tf.pipeline(tmp_path / "foreign")
    shutil.copytree(exports["classifier"].folder, tmp_path / "old")
    shutil.rmtree(tmp_path / "old" / "assets.extra")
    with pytest.raises(ValueError, match=r"or lacks its assets\.extra/tokenizer; call its signatures"):
        albert_tf.pipeline(tmp_path / "old")
