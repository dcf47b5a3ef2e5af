"""Proves that models without a recipe, such as downloaded ones, answer alike in Keras, SavedModels and ONNX folders."""

import keras
import numpy as np
import pytest

import albert_tf
from albert_tf import AlbertForMultipleChoice, AlbertForQuestionAnswering, AlbertForTokenClassification
from albert_tf.export import export_onnx, export_saved_model
from albert_tf.inference.folder import load_folder
from tests.toy_task import CONFIG as SHORT
from tests.toy_task import change_settings, tokenizer

CONFIG = SHORT.replace(max_position_embeddings=200)
LONG = " ".join(map(str, range(99, 300)))
TEXTS = [LONG, "He lives in New York (U.S.A.)", LONG[::-1]]
MODELS = {
    "questions": lambda: AlbertForQuestionAnswering(CONFIG),
    "beams": lambda: AlbertForQuestionAnswering(CONFIG, head="beam"),
    "tags": lambda: AlbertForTokenClassification(CONFIG, labels=["O", "PER", "LOC"]),
    "choices": lambda: AlbertForMultipleChoice(CONFIG),
}
INPUTS = {
    "questions": (["Who is he? " * 3, "Where?", "What?"], TEXTS),
    "beams": (["Who is he? " * 3, "Where?", "What?"], TEXTS),
    "tags": (TEXTS,),
    "choices": (TEXTS, [["It is 150. " * 40, "no " * 90]] * 3),
}


@pytest.fixture
def write(tmp_path):
    def write(kind):
        keras.utils.set_random_seed(3)
        MODELS[kind]().save_pretrained(tmp_path / kind)
        tokenizer().save_pretrained(tmp_path / kind)
        return tmp_path / kind

    return write


def plain(results):
    if isinstance(results[0], np.ndarray):
        return np.round(np.array(results), 3).tolist()
    rows = [row if isinstance(row, list) else [row] for row in results]
    return [[(getattr(one, "label", ""), one.text, one.start, one.end) for one in row] for row in rows]


def exported(form, folder, tmp_path, **options):
    if form == "saved":
        return albert_tf.pipeline(export_saved_model(folder, tmp_path / "saved", "model", **options).folder)
    return albert_tf.pipeline(export_onnx(folder, tmp_path / "onnx", "m", precisions=["float32"], **options).folder)


@pytest.mark.exhaustive
@pytest.mark.parametrize("kind", MODELS)
def test_exports_of_another_length_read_texts_as_the_model_does(write, tmp_path, kind):
    folder, texts = write(kind), INPUTS[kind]
    length = {"choices": 180, "beams": 60}.get(kind, 100)  # 60 is less than the longest question takes
    expected = plain(load_folder(folder).changed(max_length=length).predict(*texts))
    assert all(expected)  # taggers find entities, also with labels that have no prefix
    form = "onnx" if kind in ("questions", "choices") else "saved"
    assert plain(exported(form, folder, tmp_path, max_length=length)(*texts)) == expected


@pytest.mark.exhaustive
def test_nothing_is_answered_where_no_span_is_allowed(write, tmp_path):
    folder = change_settings(write("beams"), task="question_answering_beam", max_answer_length=1)
    contexts = [LONG[start : start + 400] for start in range(0, 400, 20)]
    questions = ["Who?"] * len(contexts)
    expected = plain(albert_tf.pipeline(folder)(questions, contexts))
    answers = {text == "" for ((_, text, _, _),) in expected}
    assert answers == {True, False}
    assert plain(exported("saved", folder, tmp_path)(questions, contexts)) == expected
