"""Proves that all options of a batch give the same arrays in the graph, and that the layer lives through saving."""

import itertools
import random

import keras
import numpy as np
import pytest
import tensorflow as tf

from albert_tf.tokenization import AlbertTokenizer
from tests.parameters import MadeOnce, first_of
from tests.tokenization.golden import AWKWARD_TEXTS, TINY_MODEL, read_lines, spelling_bytes
from tests.tokenization.in_graph import as_bytes, assert_same
from tests.tokenization.wordpiece_golden import korean, word_end


def with_added_tokens():
    tokenizer = AlbertTokenizer.english()
    tokenizer.add_tokens(["[E1]", "[/E1]", "covid"])
    return tokenizer


TOKENIZERS = MadeOnce(
    {
        "english": AlbertTokenizer.english,
        "digit_comma": lambda: AlbertTokenizer.from_pretrained(TINY_MODEL, reference_digit_comma=True),
        "cased": lambda: AlbertTokenizer.from_pretrained(TINY_MODEL, do_lower_case=False),
        "bytes": spelling_bytes,
        "added_tokens": with_added_tokens,
        "wordpiece": korean,
        "word_end": word_end,
    }
)
INVALID = [b"\xff\xfe", b"\xc0\x80a", b"\xe2\x82", b"\xc4\xcc\x81\x91", b"a\xf0\x9f\x98b"]
PARTS = [*"  ..!!--a1,9é３ﬁ½가あ☃😀\0\u3000\u0301\u1100\u1161¨▁", "the ", "1999,", "!!!!", "Café", " ", "\ufffd"]
SPECIAL_PARTS = [" [MASK]", "[CLS]", "[SEP]x", "\u3000[MASK].", "<unk>", " <pad>", "[mask]", "\U0010fff0"]


def recorded_texts():
    return [line["text"] for line in read_lines("T1b_digit_comma")]


def drawn_texts(count, parts=PARTS):
    draw = random.Random(0)
    texts = ["".join(draw.choices(parts, k=draw.randrange(40))).encode() for _ in range(count)]
    return [text + draw.choice([b"", b"", *INVALID]) for text in texts]


@pytest.mark.parametrize("name", ["english", "digit_comma", "bytes"])
def test_offsets_in_bytes(name):
    texts = [*AWKWARD_TEXTS, *INVALID, *drawn_texts(800), *recorded_texts()]
    assert_same(TOKENIZERS[name], texts, max_length=6000, return_offsets=True)


def test_offsets_cut_the_pieces_out_of_the_original_bytes():
    text = "Café ½ １９ €, ﬁnd"
    inputs = TOKENIZERS["english"].as_layer(return_offsets=True)(tf.constant([text]))
    spans = [text.encode()[start:end].decode() for start, end in inputs["offsets"][0, 1:-1].numpy()]
    assert spans == ["Café", " ½", "½", "½", " １９", " ", "€", ",", " ﬁnd"]


@pytest.mark.parametrize(
    ("name", "allow_special"), [("english", True), ("bytes", False), ("bytes", True), ("wordpiece", True)]
)
def test_special_pieces(name, allow_special):
    texts = [*AWKWARD_TEXTS, *INVALID, *drawn_texts(400, PARTS + SPECIAL_PARTS), "Café [MASK]  [SEP] ½ b", "[MASK]!"]
    assert_same(TOKENIZERS[name], texts, max_length=6000, return_offsets=True, allow_special=allow_special)


OPTIONS = [
    {"max_length": 24, "pad_to_multiple_of": 8, "return_offsets": True},
    {"max_length": 24, "pad_to_multiple_of": 8, "padding": "max_length"},
    {"max_length": 48, "doc_stride": 5, "return_offsets": True},
    {"max_length": 40, "doc_stride": 30, "pad_to_multiple_of": 8, "padding": "longest"},
]


@pytest.mark.parametrize(
    ("name", "options"),
    [
        *(("digit_comma", options) for options in OPTIONS),
        *(("wordpiece", options) for options in (OPTIONS[0], OPTIONS[2])),
        pytest.param("word_end", OPTIONS[2], marks=pytest.mark.exhaustive),
    ],
    ids=str,
)
def test_layouts(name, options):
    tokenizer, texts = TOKENIZERS[name], drawn_texts(200)
    assert_same(tokenizer, texts, **options)
    assert_same(tokenizer, [text[:6] for text in drawn_texts(200, "abc ")], texts[::-1], **options)
    assert_same(tokenizer, [], **options)
    assert_same(tokenizer, [], [], **options)


def test_pairs_and_truncation():
    texts = recorded_texts()[:120]  # none of which has two splits of equal scores
    for max_length, padding in itertools.product((3, 4, 5, 8, 17, 64), ("longest", "max_length")):
        assert_same(TOKENIZERS["digit_comma"], texts, max_length=max_length, padding=padding)
        assert_same(TOKENIZERS["digit_comma"], texts, texts[::-1], max_length=max_length, padding=padding)


def test_a_first_text_without_space_for_the_second():
    layer = TOKENIZERS["digit_comma"].as_layer(max_length=8, doc_stride=2)
    with pytest.raises(tf.errors.InvalidArgumentError, match="must leave space for the second in every window"):
        layer((tf.constant(["a b c d e f g h"]), tf.constant(["x"])))


def test_shapes_that_are_no_batch_of_texts():
    layer, one, two = TOKENIZERS["english"].as_layer(), tf.constant(["a"]), tf.constant(["a", "b"])
    for wrong in (tf.constant("a"), tf.constant([["a"]]), (one,) * 3, tf.constant([1]), (one, two), (two, one)):
        with pytest.raises(ValueError, match=r"`texts` must be one or two string tensors of shape \[B\]"):
            layer(wrong)
    unknown = tf.TensorSpec([None], tf.string)
    in_graph = tf.function(lambda *texts: layer(texts)["input_ids"], input_signature=[unknown, unknown])
    assert in_graph(one, one).shape == (1, 5)
    for wrong in ((one, two), (two, one)):
        with pytest.raises(tf.errors.InvalidArgumentError, match="`texts` must have as many second texts as first"):
            in_graph(*wrong)


def test_in_a_dataset_and_in_a_functional_model():
    texts = as_bytes(recorded_texts()[:64])
    options = {"max_length": 16, "doc_stride": 8, "return_offsets": True, "padding": "max_length"}
    layer, inputs = TOKENIZERS["digit_comma"].as_layer(**options), keras.Input((), dtype="string")
    model = keras.Model(inputs, layer(inputs))
    dataset = tf.data.Dataset.from_tensor_slices(texts).batch(32).map(layer)
    assert dataset.element_spec["offsets"].shape.as_list() == [None, 16, 2]
    for given, batch in zip((texts[:32], texts[32:]), dataset.as_numpy_iterator(), strict=True):
        outputs = model(tf.constant(given))
        for name, array in TOKENIZERS["digit_comma"](given, **options).items():
            np.testing.assert_array_equal(batch[name], array)
            np.testing.assert_array_equal(outputs[name], array)


@pytest.mark.parametrize("name", first_of(["added_tokens", "cased"]))
def test_a_keras_file_carries_the_tokenizer(name, tmp_path):
    options = {"max_length": 12, "padding": "max_length", "allow_special": True}
    inputs = keras.Input((), dtype="string")
    keras.Model(inputs, TOKENIZERS[name].as_layer(**options)(inputs)).save(tmp_path / "model.keras")
    restored = keras.models.load_model(tmp_path / "model.keras")
    texts = ["The Year [MASK], 1999,", "", "a long text " * 9, "[E1]Bill[/E1] COVID"]
    for key, array in TOKENIZERS[name](texts, **options).items():
        np.testing.assert_array_equal(restored(tf.constant(texts))[key], array)


@pytest.mark.parametrize("name", ["digit_comma", "wordpiece"])
def test_a_layer_made_of_its_config_is_the_same(name):
    layer = TOKENIZERS[name].as_layer(max_length=32, doc_stride=7, return_offsets=True)
    copy = type(layer).from_config(layer.get_config())
    assert copy.get_config() == layer.get_config()
    texts = tf.constant(["3/12, 5/12, and 밥을 so on " * 9])
    for key, array in layer(texts).items():
        np.testing.assert_array_equal(copy(texts)[key], array)


SEEDED = [{"return_offsets": True}, {"allow_special": True}]


@pytest.mark.parametrize(
    ("name", "options"), first_of(itertools.product(["wordpiece", "digit_comma"], SEEDED)), ids=str
)
def test_layers_and_saved_models_outlive_a_new_seed(name, options, tmp_path):
    layer, texts = TOKENIZERS[name].as_layer(**options), tf.constant(["the word [MASK]"])
    module = tf.Module()
    module.layer = layer
    module.tokenize = tf.function(layer.call, input_signature=[tf.TensorSpec([None], tf.string)])
    datasets = [tf.data.Dataset.from_tensors(texts).map(layer)]
    wanted = layer(texts)
    tf.saved_model.save(module, tmp_path)
    loaded = tf.saved_model.load(tmp_path).tokenize
    keras.utils.set_random_seed(1)
    datasets.append(tf.data.Dataset.from_tensors(texts).map(layer))
    results = [*(call(texts) for call in (layer, module.tokenize, loaded)), *(next(iter(data)) for data in datasets)]
    for result, key in itertools.product(results, wanted):
        np.testing.assert_array_equal(result[key], wanted[key])
    assert loaded(texts[:0])["input_ids"].shape[0] == 0
