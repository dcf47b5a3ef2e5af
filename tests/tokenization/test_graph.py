"""Proves that the layer in the graph gives the Python tokenizer's arrays, and that a SavedModel carries it along."""

import functools
import itertools
import random
import subprocess
import sys

import keras
import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from albert_tf.tokenization import AlbertTokenizer
from albert_tf.tokenization.model_proto import respell_pieces
from albert_tf.tokenization.sentencepiece_graph import _GeneralOp, is_utf8
from albert_tf.tokenization.sentencepiece_model import SentencePieceModel

from .golden import AWKWARD_TEXTS, TINY_MODEL, read_lines, small_tokenizer, spelling_bytes, train_plainly

LONG = 2_000_000
ENGLISH = AlbertTokenizer.english()
TINY = AlbertTokenizer.from_pretrained(TINY_MODEL)


def _as_bytes(texts):
    """TensorFlow holds bytes; lone surrogates are passed on as Python's tokenizer passes them on."""
    return [text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass") for text in texts]


@functools.cache
def _layer(tokenizer, **layout):
    return tokenizer.as_layer(**layout)


def _assert_same(tokenizer, texts, pairs=None, **layout):
    wanted = tokenizer(texts, pairs, **layout)
    tensors = tf.constant(_as_bytes(texts), tf.string)
    if pairs is not None:
        tensors = (tensors, tf.constant(_as_bytes(pairs), tf.string))
    got = _layer(tokenizer, **layout)(tensors)
    assert got.keys() == wanted.keys()
    for name, array in wanted.items():
        assert got[name].dtype == tf.int32
        np.testing.assert_array_equal(got[name], array, err_msg=name)


@pytest.mark.parametrize("load", [AlbertTokenizer.english, spelling_bytes], ids=["english", "bytes"])
@pytest.mark.parametrize("do_lower_case", [True, False])
def test_recorded_lines(load, do_lower_case):
    tokenizer = load(do_lower_case=do_lower_case)
    _assert_same(tokenizer, [line["text"] for line in read_lines("T1_tokenize")], max_length=LONG)


@pytest.mark.parametrize("reference_digit_comma", [False, True])
def test_recorded_lines_of_the_digit_comma_rule(reference_digit_comma):
    tokenizer = AlbertTokenizer.from_pretrained(TINY_MODEL, reference_digit_comma=reference_digit_comma)
    _assert_same(tokenizer, [line["text"] for line in read_lines("T1b_digit_comma")], max_length=LONG)


CLEANED_OTHERWISE = {
    "cased": AlbertTokenizer.english(do_lower_case=False),
    "accents": AlbertTokenizer.english(keep_accents=True),
}


@pytest.mark.parametrize(
    "tokenizer",
    [ENGLISH, *CLEANED_OTHERWISE.values(), spelling_bytes()],
    ids=["lower", *CLEANED_OTHERWISE, "bytes"],
)
def test_every_code_point(tokenizer):
    characters = [chr(code).encode("utf-8", "surrogatepass") for code in range(0x110000)]
    assert len(characters) == 1_114_112
    for start in range(0, len(characters), 1 << 17):
        block = [b"a" + character + b"b" for character in characters[start : start + (1 << 17)]]
        _assert_same(tokenizer, block)


@pytest.mark.parametrize("tokenizer", [ENGLISH, TINY, spelling_bytes()], ids=["english", "digit_comma", "bytes"])
def test_awkward_texts(tokenizer):
    _assert_same(tokenizer, [*AWKWARD_TEXTS, b"\xff\xfe", b"\xc0\x80a", b"\xe2\x82", "x" * 1_000_000], max_length=LONG)


@settings(max_examples=60, derandomize=True, deadline=None)
@given(st.lists(st.text(max_size=40) | st.text("19,/ 2３½é가\u1100\u1161"), min_size=8, max_size=8))
def test_any_text(texts):
    for tokenizer in (ENGLISH, TINY, spelling_bytes(), *CLEANED_OTHERWISE.values()):
        _assert_same(tokenizer, texts)


def test_pairs_and_truncation():
    texts = [line["text"] for line in read_lines("T1b_digit_comma")][:120]
    for max_length in (3, 4, 5, 8, 17, 64):
        for padding in ("longest", "max_length"):
            _assert_same(TINY, texts, max_length=max_length, padding=padding)
            _assert_same(TINY, texts, texts[::-1], max_length=max_length, padding=padding)


def test_an_empty_batch():
    _assert_same(ENGLISH, [])
    _assert_same(ENGLISH, [], [], padding="max_length", max_length=9)


@pytest.mark.parametrize("tokenizer", [ENGLISH, spelling_bytes()], ids=["english", "bytes"])
def test_equal_scores_are_rounded_alike(tokenizer):
    """Ways to split marks in a row tie, and unknown characters and bytes before them decide how sums are rounded."""
    draw = random.Random(0)
    parts = [
        b"!!!!",
        b"..",
        b"-",
        b" a",
        "가".encode(),
        "☃".encode(),
        "😀".encode(),
        b"\0",
        b"\xff",
        b"\xe2\x82",
        b"\xcc\x81",
    ]
    texts = [b"".join(draw.choices(parts, k=draw.randrange(40))) for _ in range(20_000)]
    _assert_same(tokenizer, ["굿!!!!", b"\xc4\xd9\x9d\x91", *texts], max_length=500)


def _train(folder, texts, **settings):
    (folder / "spiece.model").write_bytes(train_plainly(texts, **settings))
    return AlbertTokenizer.from_pretrained(folder)


@pytest.mark.parametrize("byte_fallback", [False, True])
@pytest.mark.parametrize(
    "settings",
    [
        {"model_type": "bpe"},
        {"add_dummy_prefix": False},
        {"treat_whitespace_as_suffix": True},
    ],
    ids=str,
)
def test_models_that_the_fast_op_gets_wrong(settings, byte_fallback):
    tokenizer = small_tokenizer(byte_fallback=byte_fallback, **settings)
    assert isinstance(tokenizer._model.in_graph()._op, _GeneralOp)
    texts = [line["lower"] for line in read_lines("T1_tokenize")[:400]]
    _assert_same(tokenizer, [" 漢", *texts, *AWKWARD_TEXTS], max_length=LONG)


def test_a_word_start_that_is_no_piece_is_spelled_in_bytes():
    model = spelling_bytes()._model
    proto = respell_pieces(model._model_proto, {model.pieces.index("▁"): "☺☺"})
    tokenizer = AlbertTokenizer(SentencePieceModel(proto))
    assert "<0xE2> <0x96> <0x81> <0xE2> <0x98> <0xBA>" in " ".join(tokenizer.tokenize("☺"))
    _assert_same(tokenizer, ["☺", "漢 a 漢", *AWKWARD_TEXTS], max_length=LONG)


@pytest.mark.parametrize("byte_fallback", [False, True])
def test_what_ends_in_a_word_start_leaves_other_texts_alone(byte_fallback):
    """The fast op gives a piece for it and the library none, where a model's own rules make no space of it."""
    tokenizer = small_tokenizer(byte_fallback=byte_fallback, normalization_rule_name="nfkc")
    for odd in ("漢▁", "é▁▁", "▁"):
        texts = ["漢 a", odd, "a漢b字cd", odd, "é 漢字 é a b c", "½ and ①"]
        got = tokenizer.as_layer(max_length=64, padding="max_length", return_offsets=True)(tf.constant(texts))
        wanted = tokenizer(_as_bytes(texts), max_length=64, padding="max_length", return_offsets=True)
        for name, array in wanted.items():
            np.testing.assert_array_equal(got[name].numpy()[[0, 2, 4, 5]], array[[0, 2, 4, 5]], err_msg=name)


def test_parts_of_pieces_that_are_spelled_in_bytes():
    """The digit-comma rule splits a piece, and what is in front of its comma is no piece."""
    tokenizer = small_tokenizer(byte_fallback=True, user_defined_symbols=["\u0663,", "@9,", "漢9,"])
    assert tokenizer.tokenize("\u0663,")[-3:] == ["<0xD9>", "<0xA3>", ","]
    draw = random.Random(0)
    parts = ["\u0663,", "@9,", "漢9,", "a", " ", "漢", "é"]
    texts = ["".join(draw.choices(parts, k=draw.randrange(12))) for _ in range(500)]
    _assert_same(tokenizer, texts)
    wanted = tokenizer(["a\u0663,b"], return_offsets=True)["offsets"][0].tolist()
    assert wanted[-6:] == [[0, 1], [1, 3], [1, 3], [1, 3], [3, 4], [0, 0]]
    _assert_same(tokenizer, _as_bytes(texts), return_offsets=True)


def test_with_byte_fallback_no_text_is_unknown():
    tokenizer = spelling_bytes()
    for allow_special in (False, True):
        row = tokenizer("<unk> \U0010fff8", allow_special=allow_special)["input_ids"][0, 1:-1]
        assert tokenizer.decode(row.tolist()) == "<unk> \U0010fff8"


def test_in_a_dataset_and_in_a_functional_model():
    texts = [line["text"] for line in read_lines("T1b_digit_comma")]
    layer = TINY.as_layer(max_length=32, padding="max_length")
    dataset = tf.data.Dataset.from_tensor_slices(texts).batch(100).map(layer)
    assert dataset.element_spec["input_ids"].shape.as_list() == [None, 32]
    wanted = TINY(texts, max_length=32, padding="max_length")["input_ids"]
    np.testing.assert_array_equal(np.concatenate([batch["input_ids"] for batch in dataset]), wanted)
    inputs = keras.Input((), dtype="string")
    model = keras.Model(inputs, layer(inputs)["input_ids"])
    np.testing.assert_array_equal(model(tf.constant(texts)), wanted)


def test_shapes_that_are_no_batch_of_texts():
    layer = ENGLISH.as_layer()
    for wrong in (tf.constant("a"), tf.constant([["a"]]), (tf.constant(["a"]),) * 3):
        with pytest.raises(ValueError, match=r"`texts` must be one or two string tensors of shape \[B\]"):
            layer(wrong)


class _Served(tf.Module):
    """What an export does with the layer: raw strings in, arrays out."""

    def __init__(self, tokenizer):
        super().__init__()
        self.layer = tokenizer.as_layer()

    @tf.function
    def __call__(self, texts):
        return self.layer(texts)


RELOAD = """
import sys
import numpy as np
import tensorflow as tf
import tensorflow_text
texts = np.load("texts.npy")
for name in sys.argv[1:]:
    served = tf.saved_model.load(name)
    for batch in (texts, texts[:1], texts[:0]):
        got = served.signatures["serving_default"](tf.constant(batch, tf.string))
        np.save(f"{name}.{len(batch)}.npy", got["input_ids"])
assert not any(name.startswith("albert_tf") for name in sys.modules)
"""


def test_saved_models_without_this_package(tmp_path):
    texts = [line["text"] for line in read_lines("T1b_digit_comma")]
    tokenizers = {"fast_op": TINY, "general_op": _train(tmp_path, texts, vocab_size=300, model_type="bpe")}
    for name, tokenizer in tokenizers.items():
        served = _Served(tokenizer)
        signature = served.__call__.get_concrete_function(tf.TensorSpec([None], tf.string, name="texts"))
        tf.saved_model.save(served, str(tmp_path / name), signatures=signature)
    np.save(tmp_path / "texts.npy", np.array(_as_bytes(texts)))
    subprocess.run([sys.executable, "-c", RELOAD, *tokenizers], check=True, cwd=tmp_path, capture_output=True)
    for name, tokenizer in tokenizers.items():
        for batch in (texts, texts[:1], []):
            got = np.load(tmp_path / f"{name}.{len(batch)}.npy")
            np.testing.assert_array_equal(got, tokenizer(batch)["input_ids"])


def _is_utf8(text):
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True


def test_utf8_is_told_from_other_bytes_as_python_tells_it():
    """All strings of up to three bytes that are borders of a rule of UTF-8, and of four with a leading F0 to F5."""
    borders = bytes.fromhex("00 0a 41 7f 80 8f 90 9f a0 bf c0 c1 c2 df e0 e1 ec ed ee ef f0 f1 f3 f4 f5 f7 f8 ff")
    short = (itertools.product(borders, repeat=length) for length in range(4))
    long = itertools.product(bytes.fromhex("f0 f1 f3 f4 f5"), *[bytes.fromhex("41 7f 80 8f 90 9f a0 bf c0 ff")] * 3)
    texts = [bytes(values) for values in itertools.chain(*short, long)]
    np.testing.assert_array_equal(is_utf8(tf.constant(texts)), [_is_utf8(text) for text in texts])


def test_a_text_of_every_character_is_utf8():
    characters = "".join(chr(code) for code in range(0x110000) if not 0xD800 <= code < 0xE000)
    assert is_utf8(tf.constant([characters.encode()])).numpy().all()
