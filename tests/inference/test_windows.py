"""Proves that long texts get the mean or maximum of their windows' logits on every engine, and cut ones one warning."""

import re
import warnings

import numpy as np
import pytest

import albert_tf
from albert_tf.export import export_litert, export_onnx, export_saved_model
from albert_tf.inference.folder import load_folder
from albert_tf.serving.engine import OnnxEngine, load_engine
from albert_tf.tasks.settings import read_settings
from tests.inference.test_signatures import same
from tests.parameters import first_of
from tests.toy_task import change_settings, tokenizer, write_classifier, write_task

LONG = "The old man went by the house of Anna Smith in Berlin, with very cold rain. "
TEXTS = ["One short text.", LONG * 9, "", LONG * 3 + "한국어 🙂", "word " * 46, "word " * 47]
HEADS = {
    "classification": {"labels": ["gloomy", "mixed", "pleasant"]},
    "multi_label": {"problem": "multi_label", "labels": ["a", "b"]},
    "regression": {"problem": "regression"},
}
# The two ways of joining, and the three kinds of logits.
CASES = [("classification", "mean"), ("classification", "max"), ("multi_label", "max"), ("regression", "mean")]


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """A folder as fine-tuning with windows leaves it, by case."""
    root = tmp_path_factory.mktemp("windows")

    def write(problem, windows):
        folder = write_classifier(root / f"{problem}_{windows}", **HEADS[problem])
        return change_settings(folder, windows=windows, doc_stride=20)

    return {case: write(*case) for case in CASES}


def by_hand(folder, problem, windows):
    """Logits [B, C] of the texts."""
    model, rows = load_folder(folder).model, tokenizer()(TEXTS, max_length=48, doc_stride=20)
    text = rows.pop("overflow_to_sample_mapping")
    assert np.bincount(text).tolist() == [1, 7, 1, 2, 1, 2]
    logits = np.asarray(model(rows)["logits"], np.float64)
    if problem == "classification":
        logits -= np.log(np.exp(logits).sum(axis=1, keepdims=True))
    join = np.mean if windows == "mean" else np.max
    return np.stack([join(logits[text == number], axis=0) for number in range(len(TEXTS))])


@pytest.mark.parametrize("case", first_of(((case,) for case in CASES), count=2), ids="-".join)
def test_the_windows_of_a_text_are_joined(folders, case):
    problem, windows = case
    logits = by_hand(folders[case], *case)
    found = albert_tf.pipeline(folders[case])(TEXTS)
    if problem == "regression":
        np.testing.assert_allclose([one.score for one in found], logits[:, 0], atol=1e-5)
        return
    powers = np.exp(logits)
    expected = powers / (1 + powers) if problem == "multi_label" else powers / powers.sum(axis=1, keepdims=True)
    np.testing.assert_allclose([list(one.probabilities.values()) for one in found], expected, atol=1e-5)
    cut = albert_tf.pipeline(folders[case], windows="max" if windows == "mean" else "mean")(TEXTS)
    assert [one == other for one, other in zip(found, cut)] == [True, False, True, False, True, False]


@pytest.mark.exhaustive
@pytest.mark.parametrize(("problem", "windows"), [("classification", "mean"), ("multi_label", "max")])
def test_exports_join_them_as_the_model_does(folders, problem, windows, tmp_path):
    model = folders[problem, windows]
    loaded = load_folder(model)
    expected = loaded.predict(TEXTS)
    saved, onnx = (export(model, tmp_path, export.__name__) for export in (export_saved_model, export_onnx))
    assert saved.largest_difference < 1e-5
    for folder in (saved.folder, onnx.folder):
        assert read_settings(folder).windows == windows
        same(albert_tf.pipeline(folder, batch_size=2)(TEXTS), expected)
    texts = {"text": np.array([text.encode() for text in TEXTS], object)}
    for engine in (load_engine(saved.folder), OnnxEngine(onnx.folder, "onnxruntime")):
        assert engine.reads_windows
        found = engine.run("serving_default", texts)
        for name, array in loaded.text_task.arrays(expected).items():
            if array.dtype == object:
                assert found[name].tolist() == array.tolist()
            else:
                np.testing.assert_allclose(found[name], array, atol=1e-4, err_msg=name)
        assert len(engine.run("tokenize", texts)["input_ids"]) == 14


@pytest.mark.parametrize("export", first_of([export_onnx, export_saved_model]))
def test_an_export_may_read_windows_though_training_did_not(export, tmp_path):
    folder = write_classifier(tmp_path / "model")
    exported = export(folder, tmp_path, "task", windows="max").folder
    same(albert_tf.pipeline(exported)(TEXTS), albert_tf.pipeline(folder, windows="max")(TEXTS))


@pytest.mark.exhaustive
def test_forms_without_windows_say_so(folders, tmp_path):
    model = folders["classification", "mean"]
    with pytest.warns(UserWarning, match=r"^A LiteRT file does not read windows, as the model was trained to"):
        export_litert(model, tmp_path, "litert")


def test_models_that_read_no_windows_refuse_them(tmp_path):
    pairs = write_classifier(tmp_path / "pairs", pairs=True)
    with pytest.raises(ValueError, match=r"^`windows` must be left out for pairs of texts, .*'mean'"):
        albert_tf.pipeline(pairs, windows="mean")
    with pytest.raises(ValueError, match=r"must be left out for pairs of texts"):
        export_saved_model(pairs, tmp_path, "task", windows="mean")
    write_task(tmp_path / "tags", "tags")
    with pytest.raises(ValueError, match=r"`windows` must be left out for the task 'token_classification'"):
        albert_tf.pipeline(tmp_path / "tags", windows="mean")
    with pytest.raises(ValueError, match=r"`windows` is invalid \(Input should be 'mean' or 'max'\)"):
        albert_tf.pipeline(write_classifier(tmp_path / "model"), windows="sum")


def test_a_call_warns_once_of_all_texts_that_are_cut_or_empty(tmp_path):
    predictor = albert_tf.pipeline(write_classifier(tmp_path / "model"), batch_size=1)
    expected = [r"3 of 72 texts did not fit into 48 tokens", r"1 of 72 texts had no tokens"]
    texts = [*TEXTS, *["a text"] * 66]  # of more than two parts of an iterator
    for given in (texts, iter(texts)):
        with pytest.warns(UserWarning, match="of 72 texts") as caught:
            list(predictor(given))
        assert [re.match(start, str(one.message)) is not None for start, one in zip(expected, caught)] == [True] * 2
        assert len(caught) == 2
    with warnings.catch_warnings(action="error"):
        predictor([TEXTS[0], TEXTS[4]])  # 48 tokens with [CLS] and [SEP]
        albert_tf.pipeline(tmp_path / "model", windows="mean")(TEXTS[:2])
