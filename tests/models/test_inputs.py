"""Proves that unusable inputs and labels are an error of one sentence before anything is traced, and others work."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from albert_tf import (
    AlbertEncoder,
    AlbertForMaskedLM,
    AlbertForMultipleChoice,
    AlbertForPreTraining,
    AlbertForQuestionAnswering,
    AlbertForSequenceClassification,
    AlbertForTokenClassification,
)
from tests.parameters import first_of

from .small import CONFIG, make_choices, make_inputs, make_pretraining_batch

ROWS = 4
TEXTS, CHOICES = make_inputs(ROWS), make_choices(ROWS)
IDS, MASK = TEXTS["input_ids"], TEXTS["attention_mask"]
LABELS = np.array([0, 1, 1, 0])
PACKED = {"example_ids": MASK, "position_ids": np.tile(np.arange(11), (ROWS, 1)), "cls_positions": MASK[:, :2] * 0}
MASKED, MASKED_LABELS = make_pretraining_batch(ROWS)
MASKED_LM_LABELS = {name: MASKED_LABELS[name] for name in ("masked_lm_ids", "masked_lm_weights")}
ANSWERS = {"start_positions": LABELS, "end_positions": LABELS}


@pytest.fixture(scope="module")
def models():
    made = {
        "encoder": AlbertEncoder(CONFIG),
        "texts": AlbertForSequenceClassification(CONFIG, num_labels=2),
        "several": AlbertForSequenceClassification(CONFIG, num_labels=3, problem="multi_label"),
        "numbers": AlbertForSequenceClassification(CONFIG, problem="regression"),
        "tokens": AlbertForTokenClassification(CONFIG, num_labels=3),
        "choices": AlbertForMultipleChoice(CONFIG),
        "span": AlbertForQuestionAnswering(CONFIG),
        "beam": AlbertForQuestionAnswering(CONFIG, head="beam"),
        "masked": AlbertForMaskedLM(CONFIG),
        "pretraining": AlbertForPreTraining(CONFIG),
    }
    for model in made.values():
        model.compile("sgd")
    return made


def with_text(name, value):
    return {**TEXTS, name: value}


def changed(array, value):
    """A copy whose element at [2, 1] or [2] is `value`."""
    array = np.array(array, np.result_type(array, type(value)))
    array[(2, 1) if array.ndim == 2 else 2] = value
    return array


# Model, inputs, what the error says.
VOCABULARY = (
    r"`input_ids` must be integers from 0 to 49 \(vocab_size=50\)\. Received: {} at \[2, 1\]; use the tokenizer"
)
WRONG_INPUTS = {
    "misspelt": ("encoder", with_text("attention_masks", MASK), "not an input of .*; did you mean .attention_m"),
    "of another model": ("texts", with_text("p_mask", MASK), r"`p_mask` is not an input .*; it takes input_ids"),
    "labels inside": ("texts", with_text("labels", LABELS), r"`labels` is not an input .*: \(inputs, labels\)\.$"),
    "no ids": ("encoder", {"attention_mask": MASK}, r"^`input_ids` is missing\. Received: attention_mask\.$"),
    "negative id": ("encoder", changed(IDS, -1), VOCABULARY.format(-1)),
    "id beyond the vocabulary": ("encoder", changed(IDS, 50), VOCABULARY.format(50)),
    "fraction": ("encoder", changed(IDS, 3.5), VOCABULARY.format(3.5)),
    "half precision": ("encoder", IDS.astype("float16"), r"must be integers\. Received: dtype=float16, .*; use int32"),
    "text": ("encoder", ["a text"], r"must be integers\. Received: texts; give `tokenizer\(texts\)`; .*`preprocessor`"),
    "token type": (
        "encoder",
        with_text("token_type_ids", changed(MASK, 7)),
        r"from 0 to 1 \(type_vocab.* 7 at \[2, 1\]",
    ),
    "mask with -10000": ("encoder", with_text("attention_mask", changed(MASK, -1e4)), r"from 0 to 1\. .* -10000.0 at"),
    "one row": ("encoder", IDS[0], r"`input_ids` must have shape \[B, L\]\. Received: shape=\(11,\); add a batch axis"),
    "mask of another length": (
        "encoder",
        with_text("attention_mask", MASK[:, :9]),
        r"\[B=4, L=11\]\. .*shape=\(4, 9\)",
    ),
    "too many arrays": ("choices", (CHOICES["input_ids"],) * 4, r"4 arrays for 3 inputs \(input_ids, att"),
    "masked position": (
        *("masked", {**MASKED, "masked_lm_positions": changed(MASKED["masked_lm_positions"], 11)}),
        r"from 0 to 10\. Received: 11 at",
    ),
    "position id": (
        *("encoder", {**TEXTS, **PACKED, "position_ids": changed(PACKED["position_ids"], 32)}),
        r"from 0 to 31 \(max_position_embeddings=32\)\. Received: 32 at",
    ),
    "packed without positions": ("encoder", with_text("example_ids", MASK), "`position_ids` must be given"),
    "texts as choices": ("choices", TEXTS, r"\[B, C, L\]\. .*shape=\(4, 11\); pass one sequence per choice"),
    "ragged": ("encoder", tf.ragged.constant([[1, 2], [3]]), r"is ragged; pad it: input_ids\.to_tensor\(\)"),
}
# Model, inputs, labels, what the error says.
OF_TWO = r"`labels` must be integers from 0 to 1 \(num_labels=2\), or -100\. Received: "
WRONG_LABELS = {
    "none": ("texts", TEXTS, None, r"AlbertForSequenceClassification got no labels; pass them .*: \(inputs, labels\)"),
    "names": ("texts", TEXTS, ["a", "b", "a", "b"], "dtype=str32; use class ids: 0 for 'LABEL_0', 1 for"),
    "one hot": ("texts", TEXTS, np.eye(2)[LABELS], r"\[B=4\]\. .*shape=\(4, 2\); .* labels\.argmax\(-1\)"),
    "scalar": ("texts", TEXTS, 3, r"must have shape \[B=4\]\. Received: shape=\(\); pass one per row"),
    "too few": ("texts", TEXTS, LABELS[:3], r"must have shape \[B=4\]\. Received: shape=\(3,\); pass one per row"),
    "class": ("texts", TEXTS, changed(LABELS, 5), rf"{OF_TWO}5 at \[2\]; number the classes from 0"),
    "fraction": ("texts", TEXTS, changed(LABELS, 0.7), rf"{OF_TWO}0\.7 at \[2\]; number the classes from 0"),
    "dict": ("texts", TEXTS, {"labels": LABELS}, r"must be one array\. Received: a dict of labels; pass them"),
    "numbers for several": ("several", TEXTS, LABELS, r"shape \[B=4, C=3\]\. .*shape=\(4,\); pass one per class"),
    "one of several": ("several", TEXTS, changed(np.zeros((ROWS, 3), int), 2), r"from 0 to 1\. .* 2 at \[2, 1\]"),
    "NaN": ("numbers", TEXTS, changed(LABELS, np.nan), r"`labels` must be finite numbers\. Received: nan at \[2\]"),
    "token class": ("tokens", TEXTS, changed(MASK, 3), r"from 0 to 2 \(num_labels=3\), or -100\. .* 3 at \[2, 1\]"),
    "one for a text of tokens": ("tokens", TEXTS, LABELS, r"shape \[B=4, L=11\]\. .*shape=\(4,\); pass one per token"),
    "choice": ("choices", CHOICES, changed(LABELS, 3), r"from 0 to 2, or -100\. .* 3 at \[2\]; number the choices"),
    "no dict": ("span", TEXTS, LABELS, r"a dict of start_positions, end_positions\. Received: ndarray; pass"),
    "no end": ("span", TEXTS, {"start_positions": LABELS}, r"`end_positions` is missing\. Received: start_positions"),
    "impossible": (
        *("beam", with_text("start_positions", LABELS), {**ANSWERS, "is_impossible": changed(LABELS, 2)}),
        r"`is_impossible` must be integers from 0 to 1\. Received: 2 at \[2\]",
    ),
    "masked id": (
        *("masked", MASKED, {**MASKED_LM_LABELS, "masked_lm_ids": changed(MASKED_LABELS["masked_lm_ids"], -100)}),
        r"`masked_lm_ids` must be integers from 0 to 49 \(vocab_size=50\)\. Received: -100 at",
    ),
    "objective": (
        *("pretraining", MASKED, {**MASKED_LABELS, "next_sentence_labels": LABELS}),
        "`next_sentence_labels` is not a label of AlbertForPreTraining; did you mean 'sentence_order_labels'",
    ),
}


@pytest.mark.parametrize("case", WRONG_INPUTS)
def test_wrong_inputs(models, case):
    name, inputs, message = WRONG_INPUTS[case]
    for call in (models[name], lambda inputs: models[name].predict(inputs, verbose=0)):
        with pytest.raises(ValueError, match=message) as raised:
            call(inputs)
        assert "\n" not in str(raised.value)


@pytest.mark.parametrize("case", WRONG_LABELS)
def test_wrong_labels(models, case):
    name, inputs, labels, message = WRONG_LABELS[case]
    for method, options in (("fit", {"verbose": 0}), ("evaluate", {"verbose": 0}), ("train_on_batch", {})):
        with pytest.raises(ValueError, match=message) as raised:
            getattr(models[name], method)(inputs, labels, **options)
        assert "\n" not in str(raised.value)


def test_errors_of_numpy_and_of_the_layers_say_enough(models):
    with pytest.raises(ValueError, match="inhomogeneous shape"):
        models["encoder"]([[1, 2], [3]])
    with pytest.raises(ValueError, match="length=33, max_position_embeddings=32; truncate texts"):
        models["texts"].predict(np.ones((2, 33), int), verbose=0)


def test_wrong_labels_of_the_validation_data_before_the_first_step(models):
    with pytest.raises(ValueError, match=rf"{OF_TWO}2 at \[1\]; number the classes from 0"):
        models["texts"].fit(TEXTS, LABELS, validation_data=(TEXTS, LABELS + 1), verbose=0)


def test_a_compiled_loss_of_class_numbers_has_checked_labels(models):
    model = AlbertForSequenceClassification(CONFIG, num_labels=2)
    model.compile("sgd", loss="sparse_categorical_crossentropy")
    with pytest.raises(ValueError, match=r"from 0 to 1 \(num_labels=2\)\. Received: 5 at \[2\]; number"):
        model.fit(TEXTS, changed(LABELS, 5), verbose=0)
    model.compile("sgd", loss="categorical_crossentropy")
    assert np.isfinite(model.evaluate(TEXTS, np.eye(2)[LABELS], verbose=0))


@pytest.mark.parametrize("jit_compile", first_of([False, True]))
def test_unseen_ids_without_a_row_give_nan(models, jit_compile):
    encoder = models["encoder"]
    call = tf.function(lambda ids, types: encoder({"input_ids": ids, "token_type_ids": types}), jit_compile=jit_compile)
    types = TEXTS["token_type_ids"]
    expected = encoder({"input_ids": IDS, "token_type_ids": types})["sequence_output"]
    np.testing.assert_allclose(call(IDS, types)["sequence_output"], expected, atol=1e-5)
    wrong = [(changed(IDS, -1), types), (IDS, changed(types, 7))]
    if jit_compile:  # otherwise TensorFlow raises on a CPU
        wrong.append((changed(IDS, 50), types))
    for some_ids, some_types in wrong:
        assert np.isnan(call(some_ids, some_types)["pooled_output"]).all()


# === What is accepted ===


@pytest.mark.parametrize("policy", ["float32", "mixed_bfloat16"])
def test_float_ids_are_exact(policy):
    config = CONFIG.replace(vocab_size=3000)
    encoder = AlbertEncoder(config, dtype=policy)
    ids = np.random.default_rng(0).integers(4, 3000, IDS.shape).astype("int32")
    expected = encoder(ids)["sequence_output"]
    symbol = keras.Input((None,))
    assert symbol.dtype == "float32"
    functional = keras.Model(symbol, encoder(symbol)["sequence_output"])
    for found in (
        encoder(ids.astype("float64"))["sequence_output"],
        functional(ids),
        functional(ids.astype("float32")),
    ):
        np.testing.assert_array_equal(found, expected)


def test_inputs_in_order_and_lists(models):
    model = models["texts"]
    expected = model({"input_ids": IDS, "attention_mask": MASK})["logits"]
    for inputs in ((IDS, MASK), [IDS, MASK], (IDS, MASK, None), {"input_ids": IDS.tolist(), "attention_mask": MASK}):
        np.testing.assert_array_equal(model(inputs)["logits"], expected)
        np.testing.assert_allclose(model.predict(inputs, verbose=0)["logits"], expected, atol=1e-6)
    np.testing.assert_array_equal(model(IDS.tolist())["logits"], model(IDS)["logits"])


def test_labels_in_other_forms(models):
    expected = models["texts"].evaluate(TEXTS, LABELS, verbose=0)
    for labels in (LABELS.tolist(), LABELS[:, None], LABELS.astype("float32"), LABELS == 1):
        assert models["texts"].evaluate(TEXTS, labels, verbose=0) == pytest.approx(expected, abs=1e-6)


# === Datasets and generators ===


def dataset(inputs=TEXTS, labels=LABELS):
    return tf.data.Dataset.from_tensor_slices((inputs, labels))


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (dataset(), r"`input_ids` must have shape \[B, L\]\. Received: shape=\(11,\); add a batch axis"),
        (dataset(labels=np.array([*"abab"])).batch(2), "Received: dtype=string; use class ids: 0 for 'LABEL_0'"),
        (dataset(with_text("attention_masks", MASK)).batch(2), "not an input .*; did you mean 'attention_mask'"),
        (dataset().batch(2).map(lambda inputs, labels: inputs), "got no labels; pass them after the inputs"),
    ],
)
def test_a_dataset_is_checked_by_its_spec(models, data, message):
    with pytest.raises(ValueError, match=message):
        models["texts"].fit(data, shuffle=False, verbose=0)


def test_a_generator_is_checked_batch_by_batch(models):
    def batches():
        for number in range(6):
            yield TEXTS if number < 5 else changed(IDS, 50), LABELS

    with pytest.raises(ValueError, match=VOCABULARY.format(50)):
        models["texts"].fit(batches(), shuffle=False, verbose=0)


def test_none_from_a_generator_is_a_missing_input(models):
    def batches(inputs):
        yield from [(inputs, LABELS, np.ones(ROWS))] * 3

    without = {name: array for name, array in TEXTS.items() if name != "token_type_ids"}
    losses = [
        models["texts"].evaluate(batches(inputs), steps=3, verbose=0)[0]
        for inputs in (with_text("token_type_ids", None), without)
    ]
    assert losses[0] == losses[1]
    assert losses[0] == pytest.approx(models["texts"].evaluate(without, LABELS, verbose=0)[0], abs=1e-6)


class Batches(keras.utils.PyDataset):
    def __init__(self, labels):
        super().__init__()
        self.labels = labels

    def __len__(self):
        return 2

    def __getitem__(self, index):
        return TEXTS, self.labels


def test_a_py_dataset_is_checked_by_its_first_batch(models):
    with pytest.raises(ValueError, match=rf"{OF_TWO}2 at \[1\]; number the classes from 0"):
        models["texts"].evaluate(Batches(LABELS + 1), verbose=0)
    found = models["texts"].evaluate(Batches(LABELS), verbose=0)
    assert found == pytest.approx(models["texts"].evaluate(TEXTS, LABELS, verbose=0), abs=1e-6)


def test_inputs_in_order_from_a_dataset_with_weights(models):
    data = tf.data.Dataset.from_tensor_slices(((IDS, MASK), LABELS, np.array([1.0, 0, 2, 1]))).batch(ROWS)
    weights = np.array([1.0, 0, 2, 1])
    expected = models["texts"].evaluate(
        {"input_ids": IDS, "attention_mask": MASK}, LABELS, sample_weight=weights, verbose=0
    )
    assert models["texts"].evaluate(data, verbose=0) == pytest.approx(expected, abs=1e-6)


# === Keras' own export ===


@pytest.mark.exhaustive
@pytest.mark.parametrize(("name", "inputs"), [("tokens", TEXTS), ("choices", CHOICES)])
def test_export_of_keras_without_a_signature(name, inputs, tmp_path):
    model = AlbertForMultipleChoice(CONFIG) if name == "choices" else AlbertForTokenClassification(CONFIG, num_labels=3)
    model.export(tmp_path / "model", verbose=False)
    serve = tf.saved_model.load(str(tmp_path / "model")).signatures["serving_default"]
    for rows in (1, 3):
        few = {key: array[:rows, ..., : 5 + rows] for key, array in inputs.items()}
        found = serve(**{key: tf.constant(array) for key, array in few.items()})["logits"]
        np.testing.assert_allclose(found, model(few)["logits"], atol=1e-5)
