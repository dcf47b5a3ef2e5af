"""Proves that every task gives the same predictions on every engine, and in the text signatures of its exports."""

import dataclasses
import functools
import itertools
import unicodedata

import numpy as np
import pytest

import albert_tf
from albert_tf.inference.folder import load_folder
from albert_tf.serving.engine import OnnxEngine, load_engine
from albert_tf.tasks.table import TASKS
from tests.conftest import OTHER_TASKS
from tests.parameters import diagonal, first_of

LONG = "The old man went by the house of Anna Smith in Berlin, with very cold rain. " * 5
HANGUL = unicodedata.normalize("NFD", "서울의 봄, 한국어 — and more")
TEXTS = ["One short text.", LONG, "", "🙂 Ünïcödé,\u3000 1,000 Wörter 🙂🙂 ", HANGUL]
MASKED = ["The old [MASK].", f"{LONG[:90]} [MASK] and [MASK]", "[MASK] 🙂", f"{HANGUL} [MASK]", "He [MASK]"]
CONTEXTS = [LONG, "🙂 She wrote it.", HANGUL, "In 1811, or so.", " ".join(map(str, range(99, 200)))]
QUESTIONS = {"question": [*TEXTS[:2], HANGUL, "When?", "Who? 🙂"], "context": CONTEXTS}
CHOICES = [["one", "🙂"], ["a b", LONG], [HANGUL, "y"], ["now", ""], ["London", "Rome"]]
INPUTS = {
    **{kind: {"text": TEXTS} for kind in ("classifier", "regression", "multi_label", "tags", "embedding")},
    "pairs": {"text": TEXTS, "text_pair": TEXTS[::-1]},
    **{kind: {"text": MASKED} for kind in ("pretrained", "masked")},
    "choices": {"context": CONTEXTS, "choices": CHOICES},
    "questions": QUESTIONS,
    "questions_beam": QUESTIONS,
}
ENGINES = ("keras", "tensorflow", "onnxruntime", "openvino")
FORMS = ("onnx", "saved_model")
# Kinds that `make test` tries.
QUICK = ("pairs", "tags", "choices", "pretrained")
TOLERANCE = 1e-4


def same(given, expected):
    """Whether two predictions are of one class and have equal fields, numbers to 1e-4."""
    assert type(given) is type(expected)
    if dataclasses.is_dataclass(expected):
        same(list(vars(given).items()), list(vars(expected).items()))
    elif isinstance(expected, list | tuple):
        assert len(given) == len(expected)
        for one, other in zip(given, expected):
            same(one, other)
    elif isinstance(expected, dict):
        same(list(given.items()), list(expected.items()))
    elif isinstance(expected, str | int | None):
        assert given == expected
    else:
        np.testing.assert_allclose(given, expected, rtol=0, atol=TOLERANCE)


def of_every_kind(values, kinds=tuple(INPUTS)):
    """All pairs of a kind and one of the values, of which `make test` tries a diagonal."""
    quick = diagonal(QUICK, values)
    return first_of(dict.fromkeys([*quick, *itertools.product(kinds, values)]), count=len(quick))


def folder_of(kind, engine, folders, exports, onnx_folders):
    if engine == "keras":
        return folders[kind]
    return exports[kind].folder if engine == "tensorflow" else onnx_folders[kind]


@pytest.fixture(scope="module")
def expected(folders):
    """The predictions of the Keras models, one text at a time."""

    def predict(kind):
        predictor = albert_tf.pipeline(folders[kind])
        return [predictor(*row) for row in zip(*INPUTS[kind].values(), strict=True)]

    return functools.cache(predict)


def test_every_task_is_tried():
    tried = {"sequence_classification", "token_classification", "multiple_choice", "question_answering"}
    tried |= {"question_answering_beam", "pretraining", "masked_lm", "sentence_embedding"}
    assert {task.name for task in TASKS} == tried
    assert set(OTHER_TASKS) < set(INPUTS)


# Signatures of all kinds are compared below.
@pytest.mark.parametrize(("kind", "engine"), of_every_kind(ENGINES, ("classifier", *OTHER_TASKS)))
def test_predictions_are_equal_in_batches_and_one_by_one(kind, engine, expected, folders, exports, onnx_folders):
    folder = folder_of(kind, engine, folders, exports, onnx_folders)
    predictor = albert_tf.pipeline(folder, engine=engine, batch_size=2)
    assert predictor.model.network.name == engine
    found = predictor(**INPUTS[kind])
    assert isinstance(found, list)
    same(found, expected(kind))
    same([predictor(*row) for row in zip(*INPUTS[kind].values())], expected(kind))


@pytest.mark.parametrize(("kind", "form"), of_every_kind(FORMS))
def test_signatures_answer_as_predictions_do(kind, form, folders, exports, onnx_folders):
    """From strings to arrays: the graph of a SavedModel, and what the server computes of an ONNX folder."""
    model = load_folder(folders[kind])
    wanted = model.text_task.arrays(model.predict(*INPUTS[kind].values()))
    engine = load_engine(exports[kind].folder) if form == "saved_model" else OnnxEngine(onnx_folders[kind])
    texts = {name: np.vectorize(str.encode, otypes=[object])(values) for name, values in INPUTS[kind].items()}
    found = engine.run("serving_default", texts)
    specs = engine.signatures["serving_default"].outputs
    assert set(found) == set(specs) >= set(wanted)
    tokens = engine.run("tokens", engine.run("tokenize", texts))
    assert set(tokens) == set(engine.signatures["tokens"].outputs)
    assert all(array.dtype == object or np.isfinite(array).all() for array in tokens.values())
    if "labels" in engine.signatures:
        assert [name.decode() for name in engine.run("labels", {})["labels"]] == list(model.settings.labels)
    assert ("labels" in engine.signatures) == (kind in ("classifier", "pairs", "multi_label", "tags"))
    for name, array in found.items():
        assert array.dtype == np.dtype("O" if specs[name].dtype == "string" else specs[name].dtype), name
        assert all(size in (None, length) for size, length in zip(specs[name].shape, array.shape, strict=True)), name
    for name, array in wanted.items():
        if array.dtype == np.float32:
            np.testing.assert_allclose(found[name], array, rtol=0, atol=TOLERANCE, err_msg=name)
        else:
            np.testing.assert_array_equal(found[name], array, err_msg=name)
