"""Proves that models with a preprocessor take texts and names of labels, with the numbers of rows tokenized by hand."""

import warnings

import keras
import numpy as np
import polars
import pyarrow
import pytest

from albert_tf import (
    AlbertConfig,
    AlbertForMaskedLM,
    AlbertForSentenceEmbedding,
    AlbertForSequenceClassification,
    AlbertTokenizer,
    Preprocessor,
)
from albert_tf.models.texts import columns_of, in_batches, with_ids
from tests.parameters import first_of

WORDS = ("a", "fine", "film", "waste", "of", "time", "dull", "good")
CONFIG = AlbertConfig(
    vocab_size=5 + len(WORDS),
    embedding_size=8,
    hidden_size=16,
    num_hidden_layers=1,
    num_attention_heads=2,
    intermediate_size=24,
    max_position_embeddings=48,
    hidden_dropout_prob=0.0,
    attention_probs_dropout_prob=0.0,
    classifier_dropout_prob=0.0,
    initializer_range=0.3,
)
LABELS = ("bad", "good")
RANDOM = np.random.default_rng(0)
TEXTS = [" ".join(RANDOM.choice(WORDS, size)) for size in RANDOM.permutation(np.arange(1, 42))]
PAIRS = TEXTS[::-1]
NAMES = [LABELS["good" in text] for text in TEXTS]
IDS = np.array(["good" in text for text in TEXTS], "int32")


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory):
    file = tmp_path_factory.mktemp("vocabulary") / "vocab.txt"
    file.write_text("\n".join(("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS)), encoding="utf-8")
    return AlbertTokenizer.from_pretrained(file)


@pytest.fixture(scope="module")
def model(tokenizer):
    """One that no test trains."""
    return make(tokenizer)


def make(tokenizer: AlbertTokenizer, kind=AlbertForSequenceClassification, max_length=None, **arguments):
    keras.utils.set_random_seed(1)
    if kind is AlbertForSequenceClassification and arguments.get("problem") != "regression":
        arguments = {"labels": LABELS, **arguments}
    model = kind(CONFIG, preprocessor=Preprocessor(tokenizer, max_length), **arguments)
    model.compile(keras.optimizers.SGD(0.01))
    return model


def by_hand(tokenizer, texts=TEXTS, pairs=None):
    return tokenizer(texts, pairs, max_length=48, pad_to_multiple_of=8)


def logits(model, inputs, **options):
    return model.predict(inputs, verbose=0, **options)["logits"]


def assert_equal(found, expected):
    np.testing.assert_allclose(found, expected, atol=1e-5, rtol=0)


# === Predictions ===


def series(texts):
    return pytest.importorskip("pandas").Series(texts)


FORMS = [list, tuple, np.array, lambda texts: np.array(texts, object), series, pyarrow.array]


@pytest.mark.parametrize("form", [*FORMS, polars.Series, lambda texts: polars.Series(texts).cast(polars.Categorical)])
def test_forms_of_texts(form, model, tokenizer):
    assert columns_of(model, form(TEXTS)) == [TEXTS]
    assert columns_of(model, (form(TEXTS), form(PAIRS))) == [TEXTS, PAIRS]
    assert columns_of(model, by_hand(tokenizer)["input_ids"]) is None
    assert columns_of(model, tuple(by_hand(tokenizer).values())[:2]) is None
    assert with_ids(model, form(NAMES)).tolist() == IDS.tolist()


def test_predictions_are_in_the_order_of_the_texts(model, tokenizer):
    found = logits(model, TEXTS, batch_size=8)
    assert np.ptp(found, axis=0).min() > 0.01
    assert_equal(found, logits(model, by_hand(tokenizer)))


def test_predictions_of_pairs_and_of_one_batch(model, tokenizer):
    texts = [text[:40] for text in TEXTS]
    expected = logits(model, by_hand(tokenizer, texts, texts[::-1]))
    assert_equal(logits(model, (texts, np.array(texts[::-1]))), expected)
    assert_equal(model.predict_on_batch((texts, texts[::-1]))["logits"], expected)


def test_embeddings(tokenizer):
    model = make(tokenizer, AlbertForSentenceEmbedding)
    found = model.predict(TEXTS, batch_size=8, verbose=0)["sentence_embedding"]
    assert_equal(found, model.predict(by_hand(tokenizer), verbose=0)["sentence_embedding"])


def test_no_texts(model):
    assert logits(model, []).shape == (0, 2)


# === Training ===


def steps(model, inputs, labels, **options):
    """Losses of the epochs, and the weights after them."""
    history = model.fit(inputs, labels, batch_size=8, verbose=0, **options).history
    return [value for name in sorted(history) for value in history[name]], model.get_weights()


@pytest.mark.parametrize(
    ("problem", "texts_labels", "labels"),
    first_of(
        [
            ("classification", NAMES, IDS),
            ("classification", IDS.tolist(), IDS),
            ("multi_label", [[name] if name == "good" else [] for name in NAMES], np.stack([0 * IDS, IDS], 1)),
            ("regression", [*map(float, IDS)], IDS.astype("float32")),
        ]
    ),
    ids=["names", "ids", "lists", "numbers"],
)
def test_fit_in_order_equals_rows_tokenized_by_hand(problem, texts_labels, labels, tokenizer):
    options, weights = {"shuffle": False, "epochs": 2, "validation_split": 0.2}, 1.0 + np.arange(41) % 3
    found = steps(make(tokenizer, problem=problem), TEXTS, texts_labels, sample_weight=weights.tolist(), **options)
    expected = steps(make(tokenizer, problem=problem), by_hand(tokenizer), labels, sample_weight=weights, **options)
    assert_equal(found[0], expected[0])
    for ours, theirs in zip(found[1], expected[1], strict=True):
        assert_equal(ours, theirs)


def test_shuffled_epochs_have_each_row_once_in_batches_of_similar_length(tokenizer):
    model = make(tokenizer)
    batches = in_batches(model, {"x": TEXTS, "y": NAMES, "batch_size": 8}, "fit")["x"]
    lengths = np.array([len(text.split()) + 2 for text in TEXTS])
    orders = []
    for _ in range(2):
        widths = [batches[index][0]["input_ids"].shape[1] for index in range(len(batches))]
        assert sorted(np.concatenate(batches.batches).tolist()) == list(range(41))
        assert widths == [-(-lengths[rows].max() // 8) * 8 for rows in batches.batches]
        orders.append(np.concatenate(batches.batches).tolist())
    assert sorted(widths) == [16, 24, 32, 40, 48, 48]
    assert orders[0] != orders[1]


def test_shuffled_fit_learns_and_is_reproducible(tokenizer):
    histories = [make(tokenizer).fit(TEXTS, NAMES, epochs=20, batch_size=8, verbose=0).history for _ in range(2)]
    assert histories[0] == histories[1]
    assert histories[0]["loss"][-1] < 0.8 * histories[0]["loss"][0]


@pytest.mark.parametrize("held_out", first_of([{"validation_split": 0.2}, {"validation_data": 9}]), ids=str)
def test_class_weights_by_name_weigh_training_alone(held_out, tokenizer):
    texts, rows = ({"class_weight": weight, "shuffle": False, **held_out} for weight in ({"bad": 3.0}, {0: 3.0}))
    if "validation_data" in held_out:
        texts["validation_data"] = TEXTS[:9], NAMES[:9]
        rows["validation_data"] = by_hand(tokenizer, TEXTS[:9]), IDS[:9]
    found, expected, plain = (
        steps(make(tokenizer), *data, **options)[0]
        for data, options in (
            ((TEXTS, NAMES), texts),
            ((by_hand(tokenizer), IDS), rows),
            ((TEXTS, NAMES), {**texts, "class_weight": None}),
        )
    )
    assert_equal(found, expected)
    assert abs(found[1] - plain[1]) > 0.1  # cross_entropy; accuracy is the first


LISTS = [[LABELS[1 - label]] if index % 3 else [] for index, label in enumerate(IDS)]
OF_LISTS = np.stack([[int(name in row) for name in LABELS] for row in LISTS])


@pytest.mark.exhaustive
def test_class_weights_of_several_labels(tokenizer):
    factors = np.tile([3.0, 0.5], (41, 1))
    expected = make(tokenizer, problem="multi_label").train_on_batch(by_hand(tokenizer), OF_LISTS, factors)
    for inputs, labels in ((TEXTS, LISTS), (by_hand(tokenizer), OF_LISTS)):
        model, weights = make(tokenizer, problem="multi_label"), {"bad": 3, 1: 0.5}
        assert_equal(model.train_on_batch(inputs, labels, class_weight=weights), expected)
    found, expected = (
        steps(make(tokenizer, problem="multi_label"), TEXTS, LISTS, shuffle=False, **options)
        for options in ({"class_weight": weights}, {"sample_weight": factors})
    )
    assert_equal(found[0], expected[0])


def table(columns=("good", "bad")):
    return pytest.importorskip("pandas").DataFrame(OF_LISTS, columns=list(LABELS))[list(columns)]


@pytest.mark.parametrize(
    "labels",
    [
        *(lambda form=form: form(LISTS) for form in (series, polars.Series, pyarrow.array)),
        lambda: list(map(set, LISTS)),
        table,
        lambda: polars.DataFrame({name: OF_LISTS[:, LABELS.index(name)] for name in ("good", "bad")}),
        lambda: pyarrow.table({name: OF_LISTS[:, LABELS.index(name)] for name in ("good", "bad")}),
        lambda: table(LABELS).set_axis([0, 1], axis=1),
    ],
)
def test_forms_of_several_labels(labels, tokenizer):
    assert with_ids(make(tokenizer, problem="multi_label"), labels()).tolist() == OF_LISTS.tolist()


def test_columns_of_labels_beside_rows_and_one_hot(tokenizer):
    """Their names count, whatever the inputs and the problem are."""
    several = make(tokenizer, problem="multi_label")
    assert_equal(several.test_on_batch(by_hand(tokenizer), table()), several.test_on_batch(TEXTS, LISTS))
    model = make(tokenizer)
    model.compile("sgd", keras.losses.CategoricalCrossentropy(from_logits=True))
    one_hot = np.eye(2)[IDS]
    columns = polars.DataFrame({"good": one_hot[:, 1], "bad": one_hot[:, 0]})
    expected = model.evaluate(by_hand(tokenizer), one_hot, verbose=0)
    assert_equal([model.evaluate(TEXTS, labels, verbose=0) for labels in (columns, one_hot.tolist())], [expected] * 2)


@pytest.mark.exhaustive
def test_steps_take_the_first_texts_as_of_arrays(tokenizer):
    model, rows = make(tokenizer), by_hand(tokenizer)
    for options in ({"steps": 2}, {"steps": 2, "batch_size": 8}):
        found, expected = (model.evaluate(*data, **options, verbose=0) for data in ((TEXTS, NAMES), (rows, IDS)))
        assert_equal(found, expected)
        assert_equal(logits(model, TEXTS, **options), logits(model, rows, **options))
    options = {"epochs": 2, "steps_per_epoch": 14, "shuffle": False, "validation_steps": 1, "verbose": 0}
    models = make(tokenizer), make(tokenizer)
    for one, x, y in zip(models, (TEXTS, rows), (NAMES, IDS)):
        one.fit(x, y, validation_data=(x, y), **options)
        assert int(one.optimizer.iterations) == 28
    found, expected = (one.history.history for one in models)
    assert_equal([found[name] for name in expected], list(expected.values()))


def test_evaluation_and_single_batches(tokenizer):
    model, rows = make(tokenizer), by_hand(tokenizer)
    weights = 1.0 + np.arange(41) % 3
    options = {"sample_weight": weights, "batch_size": 8, "verbose": 0}
    assert_equal(model.evaluate(TEXTS, NAMES, **options), model.evaluate(rows, IDS, **options))
    assert_equal(model.test_on_batch(TEXTS, NAMES, weights), model.test_on_batch(rows, IDS, weights))
    assert_equal(make(tokenizer).train_on_batch(TEXTS, NAMES), make(tokenizer).train_on_batch(rows, IDS))


@pytest.mark.parametrize(
    ("labels", "words"),
    [
        (["bad good"] * 41, r"a list of names for each text.* 'bad good'; pass a list"),
        ([None] * 41, r"a list of names for each text.* None; pass a list"),
        (polars.DataFrame(OF_LISTS, ["ugly", "good"]), "Columns of labels must be .* ugly, good; rename them"),
    ],
)
def test_mistakes_in_several_labels(labels, words, tokenizer):
    with pytest.raises(ValueError, match=words):
        make(tokenizer, problem="multi_label").fit(TEXTS, labels)


def test_f1_of_several_labels(tokenizer):
    """Keras makes its variables by the static shape of labels."""
    model = make(tokenizer, problem="multi_label")
    model.compile("sgd", metrics=[keras.metrics.F1Score("micro", 0.5)])
    found, expected = (model.evaluate(*data, verbose=0) for data in ((TEXTS, LISTS), (by_hand(tokenizer), OF_LISTS)))
    assert_equal(found, expected)


# === Folders ===


def test_folders_keep_the_tokenizer(tokenizer, tmp_path):
    model = make(tokenizer)
    model.save_pretrained(tmp_path)
    again = AlbertForSequenceClassification.from_pretrained(tmp_path)
    assert again.preprocessor.tokenizer.vocab_hash == tokenizer.vocab_hash
    assert_equal(logits(again, TEXTS), logits(model, TEXTS))
    (tmp_path / "model.json").write_text('{"max_length": 12}', encoding="utf-8")
    assert AlbertForSequenceClassification.from_pretrained(tmp_path).preprocessor.max_length == 12
    assert AlbertForSequenceClassification.from_pretrained(tmp_path, preprocessor=None).preprocessor is None
    mine = Preprocessor(tokenizer, 8)
    assert AlbertForSequenceClassification.from_pretrained(tmp_path, preprocessor=mine).preprocessor is mine


def test_another_tokenizer_in_the_folder_stays(tokenizer, tmp_path):
    (tmp_path / "vocab.txt").write_text("another one", encoding="utf-8")
    make(tokenizer).save_pretrained(tmp_path)
    assert (tmp_path / "vocab.txt").read_text(encoding="utf-8") == "another one"


def test_a_folder_without_tokenizer_and_one_of_another_size(tokenizer, tmp_path):
    AlbertForSequenceClassification(CONFIG, labels=LABELS).save_pretrained(tmp_path / "none")
    assert AlbertForSequenceClassification.from_pretrained(tmp_path / "none").preprocessor is None
    larger = AlbertForSequenceClassification(
        CONFIG.replace(vocab_size=20), labels=LABELS, preprocessor=Preprocessor(tokenizer)
    )
    larger.save_pretrained(tmp_path / "larger")
    assert not (tmp_path / "larger" / "vocab.txt").exists()
    with pytest.raises(ValueError, match="vocab_size=20"):
        larger.predict(TEXTS, verbose=0)


def test_keras_files_leave_the_tokenizer_out(tokenizer, tmp_path):
    model = make(tokenizer)
    model.save(tmp_path / "model.keras")
    again = keras.models.load_model(tmp_path / "model.keras")
    assert again.preprocessor is None
    assert_equal(logits(again, by_hand(tokenizer)), logits(model, TEXTS))


# === Messages ===


def test_cut_and_empty_texts_are_counted_once_a_call(tokenizer):
    model = make(tokenizer, max_length=16)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit([*TEXTS, ""], [*NAMES, "bad"], validation_data=(TEXTS, NAMES), verbose=0)
    messages = [str(warning.message) for warning in caught if warning.category is UserWarning]
    assert [message[:32] for message in messages] == [
        "54 of 83 texts did not fit into ",
        "1 of 83 texts had no tokens: the",
    ]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda model: model.fit(TEXTS, ["ugly"] * 41), "'ugly'"),
        (lambda model: model.fit(TEXTS, IDS + 1), "num_labels=2"),
        (lambda model: model.fit(TEXTS, NAMES[:40]), "B=41"),
        (lambda model: model.fit(TEXTS), "no labels"),
        (lambda model: model.fit(TEXTS, NAMES, sample_weight=np.ones(3)), "as many"),
        (lambda model: model.fit(TEXTS, NAMES, sample_weight=np.ones(41), class_weight={0: 1.0}), "multiply them"),
        (lambda model: model.fit(TEXTS[:1], NAMES[:1], validation_split=0.5), "validation_split"),
        (lambda model: model.predict((TEXTS, PAIRS[:3])), "3 texts"),
        (lambda model: model.predict([*TEXTS, None]), "position 41"),
        (lambda model: model.predict("a fine film"), r"\(texts, pairs\).* one text; pass \[text\]"),
        (lambda model: model.predict([TEXTS, PAIRS]), r"\(texts, pairs\).* a list"),
        (lambda model: model.predict([*zip(TEXTS, PAIRS)]), r"\(texts, pairs\).* a list"),
        (lambda model: model.predict({"text": TEXTS}), r"\(texts, pairs\).* a dict"),
        (lambda model: model.predict(polars.DataFrame({"text": TEXTS})), "a table; pass one of its columns"),
        (lambda model: model.predict(pyarrow.table({"text": TEXTS})), "a table; pass one of its columns"),
        (lambda model: model.predict(series([None, None])), r"\(texts, pairs\).* a Series"),
        (lambda model: model.fit((text for text in TEXTS), shuffle=False), r"\(texts, pairs\).* one text"),
        (lambda model: model.fit(((TEXTS, NAMES) for _ in "a"), shuffle=False), "a generator; pass a list or a PyData"),
        (lambda model: model.fit(TEXTS, NAMES, validation_data=TEXTS), r"\(x, y, sample_weight\).* a list of 41"),
        (
            lambda model: model.fit(TEXTS, NAMES, class_weight={"ugly": 1}),
            "`class_weight` must be of .*'ugly'; use .* ids",
        ),
        (lambda model: model.fit(TEXTS, NAMES, class_weight={2: 1}), "`class_weight` must be of .*Received: 2"),
        (lambda model: model.train_on_batch(TEXTS, NAMES, class_weight={"god": 1}), "did you mean 'good'"),
        (lambda model: model.fit(TEXTS, NAMES, class_weight={"bad": -1}), "numbers from 0"),
        (lambda model: model.fit(TEXTS, NAMES, class_weight=[1, 2]), "must be a dict"),
    ],
)
def test_mistakes(call, words, model):
    with pytest.raises(ValueError, match=words):
        call(model)


def test_models_that_take_no_texts(tokenizer):
    with pytest.raises(ValueError, match="Received: texts"):
        make(tokenizer, AlbertForMaskedLM).predict(TEXTS)
    with pytest.raises(ValueError, match="one list of texts"):
        make(tokenizer, AlbertForSentenceEmbedding).predict((TEXTS, PAIRS))


def test_a_length_that_the_model_has_not_and_no_preprocessor(tokenizer):
    with pytest.raises(ValueError, match="max_position_embeddings=48"):
        make(tokenizer, max_length=64).predict(TEXTS)
    model = make(tokenizer)
    model.preprocessor = tokenizer
    with pytest.raises(ValueError, match=r"Preprocessor\(tokenizer\)"):
        model.predict(TEXTS)


@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="of tf.data")
def test_batches_of_tensorflow_have_open_shapes(tokenizer):
    """The first two have one length, which Keras would take for that of all."""
    texts = ["a fine film"] * 16 + TEXTS
    history = make(tokenizer).fit(texts, ["bad"] * 57, batch_size=8, shuffle=False, verbose=0)
    assert np.isfinite(history.history["loss"]).all()
