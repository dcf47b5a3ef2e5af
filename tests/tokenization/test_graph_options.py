"""Proves that all options of a batch give the same arrays in the graph, and that the layer lives through saving."""

import functools
import random

import keras
import numpy as np
import pytest
import tensorflow as tf

from albert_tf.tokenization import AlbertTokenizer

from .golden import AWKWARD_TEXTS, TINY_MODEL, read_lines, spelling_bytes
from .test_graph import _assert_same, english


@functools.cache
def tiny():
    return AlbertTokenizer.from_pretrained(TINY_MODEL, reference_digit_comma=True)


INVALID = [b"\xff\xfe", b"\xc0\x80a", b"\xe2\x82", b"\xc4\xcc\x81\x91", b"a\xf0\x9f\x98b"]
PARTS = [*"  ..!!--a1,9é３ﬁ½가あ☃😀\0\u3000\u0301\u1100\u1161¨▁", "the ", "1999,", "!!!!", "Café", " ", "\ufffd"]
SPECIAL_PARTS = [" [MASK]", "[CLS]", "[SEP]x", "\u3000[MASK].", "<unk>", " <pad>", "[mask]", "\U0010fff0"]


def _draw_texts(count, parts):
    draw = random.Random(0)
    texts = ["".join(draw.choices(parts, k=draw.randrange(40))).encode() for _ in range(count)]
    return [text + draw.choice([b"", b"", *INVALID]) for text in texts]


def _awkward():
    return [text.encode("utf-8", "surrogatepass") for text in AWKWARD_TEXTS] + INVALID


@pytest.mark.parametrize("load", [english, tiny, spelling_bytes], ids=["english", "digit_comma", "bytes"])
def test_offsets_in_bytes(load):
    texts = [*_awkward(), *_draw_texts(800, PARTS), *(line["text"].encode() for line in read_lines("T1b_digit_comma"))]
    _assert_same(load(), texts, max_length=6000, return_offsets=True)


def test_offsets_cut_the_pieces_out_of_the_original_bytes():
    text = "Café ½ １９ €, ﬁnd"
    inputs = english().as_layer(return_offsets=True)(tf.constant([text]))
    spans = [text.encode()[start:end].decode() for start, end in inputs["offsets"][0, 1:-1].numpy()]
    assert spans == ["Café", " ½", "½", "½", " １９", " ", "€", ",", " ﬁnd"]


@pytest.mark.parametrize(("load", "allow_special"), [(english, True), (spelling_bytes, False), (spelling_bytes, True)])
def test_special_pieces(load, allow_special):
    texts = [*_awkward(), *_draw_texts(400, PARTS + SPECIAL_PARTS)]
    _assert_same(load(), texts, max_length=6000, return_offsets=True, allow_special=allow_special)


OPTIONS = [
    {"max_length": 24, "pad_to_multiple_of": 8},
    {"max_length": 24, "pad_to_multiple_of": 8, "padding": "max_length"},
    {"max_length": 48, "doc_stride": 5, "return_offsets": True},
    {"max_length": 40, "doc_stride": 30, "pad_to_multiple_of": 8, "padding": "longest"},
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_layouts(options):
    texts = _draw_texts(200, PARTS)
    short = [text[:6] for text in _draw_texts(200, "abc ")]
    for pairs in (None, texts[::-1]):
        _assert_same(tiny(), texts if pairs is None else short, pairs, **options)
    _assert_same(tiny(), [], **options)


def test_a_first_text_without_room_for_the_second():
    layer = tiny().as_layer(max_length=8, doc_stride=2)
    with pytest.raises(tf.errors.InvalidArgumentError, match="must leave space for the second in every window"):
        layer((tf.constant(["a b c d e f g h"]), tf.constant(["x"])))


def test_windows_and_offsets_in_a_dataset():
    texts = [line["text"] for line in read_lines("T1b_digit_comma")][:64]
    options = {"max_length": 16, "doc_stride": 8, "return_offsets": True, "padding": "max_length"}
    dataset = tf.data.Dataset.from_tensor_slices(texts).batch(32).map(tiny().as_layer(**options))
    assert dataset.element_spec["offsets"].shape.as_list() == [None, 16, 2]
    batches = list(dataset.as_numpy_iterator())
    for start, batch in zip((0, 32), batches, strict=True):
        given = [text.encode() for text in texts[start : start + 32]]
        for name, array in tiny()(given, **options).items():
            np.testing.assert_array_equal(batch[name], array)


@pytest.mark.exhaustive
def test_a_keras_file_carries_the_tokenizer(tmp_path):
    options = {"max_length": 12, "padding": "max_length", "allow_special": True}
    tokenizer = AlbertTokenizer.from_pretrained(TINY_MODEL, do_lower_case=False)
    inputs = keras.Input((), dtype="string")
    keras.Model(inputs, tokenizer.as_layer(**options)(inputs)).save(tmp_path / "model.keras")
    restored = keras.models.load_model(tmp_path / "model.keras")
    texts = ["The Year [MASK], 1999,", "", "x" * 50]
    for name, array in tokenizer(texts, **options).items():
        np.testing.assert_array_equal(restored(tf.constant(texts))[name], array)


def test_a_layer_made_of_its_config_is_the_same():
    layer = tiny().as_layer(max_length=32, doc_stride=7, return_offsets=True)
    copy = type(layer).from_config(layer.get_config())
    assert copy.get_config() == layer.get_config()
    texts = tf.constant(["3/12, 5/12, and so on " * 9])
    for name, array in layer(texts).items():
        np.testing.assert_array_equal(copy(texts)[name], array)
