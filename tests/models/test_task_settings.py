"""Proves that what a model was set to is in its folder and comes back, also to pipelines, and what copies keep."""

import copy
import json
import pickle

import keras
import numpy as np
import pytest

import albert_tf
from albert_tf import AlbertForSentenceEmbedding, AlbertForSequenceClassification, Preprocessor
from tests.disk import change_json
from tests.parameters import first_of
from tests.toy_task import CONFIG, tokenizer

LONG = "The old man went by the house of Anna Smith in Berlin, with very cold rain. "
TEXTS = ["One short text.", LONG * 3 + "joy", LONG * 3 + "grief", "", "a garden"]
PAIRS = TEXTS[::-1]
LABELS = ["gloomy", "mixed", "pleasant"]


def make(kind=AlbertForSequenceClassification, options=None, **arguments):
    keras.utils.set_random_seed(1)
    preprocessor = Preprocessor(tokenizer(), **{"max_length": 16, **(options or {})})
    if kind is AlbertForSequenceClassification and arguments.get("problem") != "regression":
        arguments = {"labels": LABELS, **arguments}
    model = kind(CONFIG, preprocessor=preprocessor, **arguments)
    model.compile(keras.optimizers.SGD(0.01))
    return model


def logits(model, texts=TEXTS):
    with pytest.warns(UserWarning, match="texts had no tokens"):
        return model.predict(texts, verbose=0)["logits"]


def record_of(folder):
    return json.loads((folder / "model.json").read_text(encoding="utf-8"))


# === How texts are read ===


@pytest.mark.filterwarnings("ignore:.*texts (had no tokens|did not fit)")
@pytest.mark.parametrize(
    ("problem", "options"),
    first_of(
        [
            ("classification", {}),
            ("classification", {"windows": "mean", "doc_stride": 5}),
            ("classification", {"windows": "max"}),
            ("multi_label", {"windows": "max"}),
            ("regression", {"windows": "mean"}),
        ],
        count=2,
    ),
)
def test_a_folder_answers_as_its_model_does(problem, options, tmp_path):
    model = make(problem=problem, options=options)
    model.save_pretrained(tmp_path)
    again = AlbertForSequenceClassification.from_pretrained(tmp_path)
    for name in ("max_length", "windows", "doc_stride"):
        assert (
            getattr(again.preprocessor, name)
            == getattr(model.preprocessor, name)
            == {"max_length": 16, **options}.get(name)
        )
    expected = logits(model)
    np.testing.assert_array_equal(logits(again), expected)
    sees_ends = np.abs(expected[1] - expected[2]).max() > 1e-4
    assert sees_ends == ("windows" in options)
    found = albert_tf.pipeline(tmp_path)(TEXTS)
    if problem == "regression":
        np.testing.assert_allclose([one.score for one in found], expected[:, 0], atol=1e-5)
    else:
        wanted = keras.ops.convert_to_numpy(model.probabilities(expected))
        np.testing.assert_allclose([[*one.probabilities.values()] for one in found], wanted, atol=1e-6)


def test_the_length_of_embeddings_is_that_of_the_preprocessor(tmp_path):
    model = make(AlbertForSentenceEmbedding)
    model.save_pretrained(tmp_path)
    found = albert_tf.pipeline(tmp_path)(TEXTS[1])
    np.testing.assert_allclose(found, model.predict(TEXTS[1:2], verbose=0)["sentence_embedding"][0], atol=1e-6)
    assert AlbertForSentenceEmbedding.from_pretrained(tmp_path).max_length == 16


def test_a_model_without_settings_leaves_no_file_and_no_old_one(tmp_path):
    model = AlbertForSequenceClassification(CONFIG, labels=LABELS)
    model.save_pretrained(tmp_path / "new")
    assert not (tmp_path / "new" / "model.json").exists()
    make().save_pretrained(tmp_path / "old")
    model.save_pretrained(tmp_path / "old")
    assert AlbertForSequenceClassification.from_pretrained(tmp_path / "old").preprocessor.max_length is None


# === What was chosen for the task ===


def test_settings_of_the_task_come_back_and_go_on(tmp_path):
    model = make(label_smoothing=0.25)
    model.task_settings |= {"text_column": "review", "main_score": "f1_macro"}
    model.save_pretrained(tmp_path / "first")
    again = AlbertForSequenceClassification.from_pretrained(tmp_path / "first")
    again.save_pretrained(tmp_path / "second")
    assert record_of(tmp_path / "first") == record_of(tmp_path / "second")
    settings = albert_tf.pipeline(tmp_path / "second").model.settings
    assert (settings.text_column, settings.main_score, settings.max_length) == ("review", "f1_macro", 16)
    assert again.label_smoothing == settings.label_smoothing == 0.25
    given = {"label_smoothing": 0.0, "preprocessor": None}
    other = AlbertForSequenceClassification.from_pretrained(tmp_path / "first", **given)
    assert (other.label_smoothing, other.preprocessor) == (0.0, None)


def test_a_threshold_comes_back(tmp_path):
    model = make(problem="multi_label")
    model.task_settings["threshold"] = {"mixed": 0.125}
    model.save_pretrained(tmp_path / "first")
    AlbertForSequenceClassification.from_pretrained(tmp_path / "first").save_pretrained(tmp_path / "second")
    assert albert_tf.pipeline(tmp_path / "second").model.settings.thresholds.tolist() == [0.5, 0.125, 0.5]


def test_settings_of_other_labels_are_left_out(tmp_path):
    model = make(label_smoothing=0.25, options={"windows": "mean"})
    model.task_settings["pair_column"] = None
    model.save_pretrained(tmp_path)
    other = AlbertForSequenceClassification.from_pretrained(tmp_path, labels=["a", "b"], new_head=True)
    assert (other.task_settings, other.label_smoothing) == ({}, 0.0)
    assert (other.preprocessor.max_length, other.preprocessor.windows) == (16, None)
    same = AlbertForSequenceClassification.from_pretrained(tmp_path, labels=LABELS[::-1])
    assert (same.label_smoothing, same.preprocessor.windows) == (0.25, "mean")


# === Pairs ===


def test_without_a_record_single_texts_and_pairs_are_answered(tmp_path):
    make().save_pretrained(tmp_path)
    predictor = albert_tf.pipeline(tmp_path).model.changed(max_length=20)
    assert len(predictor.predict(["a"])) == len(predictor.predict(["a"], ["b"])) == 1
    assert "pair_column" not in predictor.settings.entries()
    with pytest.raises(ValueError, match="`windows` must be left out for pairs"):
        albert_tf.pipeline(tmp_path, windows="mean")("a", "b")


@pytest.mark.parametrize("train", first_of(["fit", "train_on_batch"]))
def test_what_a_model_was_trained_on_is_recorded(train, tmp_path):
    model, texts = make(), ["a dog", "a cat", "one"]
    for pairs, given, other in ((True, (texts, texts), texts), (False, texts, (texts, texts))):
        getattr(model, train)(given, LABELS)
        sentence = (
            f"trained on {'pairs of' if pairs else 'single'} texts, but received {'single' if pairs else 'pairs'}"
        )
        model.save_pretrained(tmp_path)
        again = AlbertForSequenceClassification.from_pretrained(tmp_path)
        predictor = albert_tf.pipeline(tmp_path)
        for predict in (model.predict, again.predict_on_batch):
            with pytest.raises(ValueError, match=sentence):
                predict(other)
        with pytest.raises(ValueError, match=sentence):
            predictor(*([other] if pairs else other))
        assert np.shape(again.predict(given, verbose=0)["logits"]) == (3, 3)
        assert len(predictor(*(given if pairs else [given]))) == 3
    model.task_settings["pair_column"] = "second"
    model.fit((texts, texts), LABELS, verbose=0)
    assert model.task_settings["pair_column"] == "second"


def test_labels_that_do_not_fit_train_on_nothing():
    model = make()
    with pytest.raises(ValueError, match="'ugly'"):
        model.fit((TEXTS, PAIRS), ["ugly"] * len(TEXTS))
    assert model.task_settings == {}


# === Copies ===


@pytest.mark.parametrize("copied", first_of([copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))]))
def test_copies_keep_the_preprocessor_and_settings(copied):
    model = make(problem="multi_label", options={"windows": "max"})
    model.task_settings["threshold"] = {"mixed": 0.125}
    again = copied(model)
    np.testing.assert_array_equal(logits(again), logits(model))
    again.task_settings["threshold"]["mixed"] = 0.5
    assert model.task_settings == {"threshold": {"mixed": 0.125}}


def test_clones_of_keras_say_that_they_have_none():
    with pytest.raises(ValueError, match=r"with a `preprocessor`, which `\.keras` files and `clone_model`"):
        keras.models.clone_model(make()).predict(TEXTS)


# === Mistakes ===


@pytest.mark.parametrize(
    ("record", "words"),
    [
        ({"windows": "sum"}, "`windows` must be 'mean', 'max' or None"),
        ({"label_smoothing": 5.0}, "`label_smoothing` must be at least 0"),
        ({"label_smoothing": "a"}, "`label_smoothing` must be at least 0"),
    ],
)
def test_damaged_records_are_named(record, words, tmp_path):
    make().save_pretrained(tmp_path)
    change_json(tmp_path / "model.json", **record)
    with pytest.raises(ValueError, match=rf"model\.json: {words}.*Restore it"):
        AlbertForSequenceClassification.from_pretrained(tmp_path)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"windows": "sum"}, "`windows` must be 'mean', 'max' or None. Received: windows='sum'"),
        ({"doc_stride": 8}, "None without `windows`. Received: doc_stride=8, windows=None"),
        ({"windows": "max", "doc_stride": 0}, "an integer of at least 1"),
    ],
)
def test_options_that_do_not_fit(options, words):
    with pytest.raises(ValueError, match=words):
        Preprocessor(tokenizer(), **options)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda model: model.fit(TEXTS, LABELS[:1] * 5), "None but for `predict`.*count each window as a text"),
        (lambda model: model.evaluate(TEXTS, LABELS[:1] * 5), "None but for `predict`"),
        (lambda model: model.predict_on_batch(TEXTS), "None but for `predict`"),
        (lambda model: model.predict(TEXTS, steps=1), "`steps` must be None .* in windows.*steps=1; pass fewer texts"),
        (lambda model: model.predict((TEXTS, PAIRS)), "unless single texts .* for pairs of texts"),
    ],
)
def test_windows_are_for_predictions_of_single_texts(call, words):
    with pytest.raises(ValueError, match=words):
        call(make(options={"windows": "mean"}))


def test_a_folder_is_not_written_that_cannot_be_read(tmp_path):
    model = make(AlbertForSentenceEmbedding, options={"windows": "mean"})
    with pytest.raises(ValueError, match="windows='mean' for AlbertForSentenceEmbedding"):
        model.save_pretrained(tmp_path)
    model = make(options={"max_length": 65})
    with pytest.raises(ValueError, match="max_length=65"):
        model.save_pretrained(tmp_path)
