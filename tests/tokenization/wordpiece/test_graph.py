"""Proves that vocabulary files give the Python tokenizer's ids and spans inside a TensorFlow graph."""

import functools
import itertools

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.parameters import first_of
from tests.tokenization.golden import AWKWARD_TEXTS, read_lines
from tests.tokenization.in_graph import as_bytes, assigned_code_points
from tests.tokenization.wordpiece_golden import TOKENIZERS

MORE_TEXTS = [
    *("a\ud800", "b c\udfff漢", "x" * 200, "x" * 201, "가" * 200, "가" * 201, "나" * 199 + "는", "[UNK]_", "[UNK] _"),
    *("a\x1cb\x85c\u2028d\u3000e", "\U0010ffff", "\U0010fffe_", "\ufffd", "a\ufffdb", "\u1fef \u037e"),
    *(b"\xff\xfe", b"\xc0\x80a", b"\xe2\x82 a", b"\xff_", "x" * 1_000_000, "." * 1000, "\ufa6e漢字a"),
    "a\u0301\u200b b",
]
TEXTS = st.text(max_size=40) | st.text(
    "나는 밥을먹었다.._\u1107\u1161\u11b8ab\u0301É漢#\u200b\ud800\U0010ffff\ufa6e1\t", max_size=40
)


@functools.cache
def _pieces(kind):
    pieces = TOKENIZERS[kind]._model.in_graph(with_offsets=True)

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
    def run(texts):
        spanned = pieces.tokenize_with_offsets(texts)
        return pieces.tokenize(texts), spanned.ids, spanned.offsets

    return run


def _assert_same(kind, texts):
    given = tf.constant(as_bytes(texts), tf.string)
    ids, same_ids, offsets = _pieces(kind)(given)
    wanted = TOKENIZERS[kind].encode_batch(texts)
    np.testing.assert_array_equal(ids.row_lengths(), [len(row) for row in wanted])
    np.testing.assert_array_equal(ids.values, np.concatenate([*wanted, np.zeros(0, np.int32)]))
    assert ids.dtype == same_ids.dtype == offsets.dtype == tf.int32
    np.testing.assert_array_equal(same_ids.values, ids.values)
    np.testing.assert_array_equal(offsets.row_splits, ids.row_splits)
    return offsets


def _assert_same_spans(kind, texts):
    offsets = _assert_same(kind, texts)
    spans = offsets.values.numpy()
    for text, (start, end) in zip(texts, itertools.pairwise(offsets.row_splits.numpy()), strict=True):
        encoded = TOKENIZERS[kind]._model.encode_with_offsets(text)
        borders = np.arange(len(text) + 1)
        if isinstance(text, str):
            borders = np.cumsum([0, *map(len, as_bytes(text))])
        np.testing.assert_array_equal(borders[encoded.offsets], spans[start:end], err_msg=repr(text))


@pytest.mark.parametrize(("kind", "step"), first_of([("lower", 25), *((kind, 3) for kind in TOKENIZERS)]))
def test_recorded_lines(kind, step):
    _assert_same_spans(kind, [line["text"] for line in read_lines("W1_wordpiece")[::step]])


@pytest.mark.parametrize("kind", first_of(TOKENIZERS))
def test_awkward_texts(kind):
    _assert_same_spans(kind, [*AWKWARD_TEXTS, *MORE_TEXTS])
    _assert_same_spans(kind, [])


def _assert_same_around(kind, codes):
    words = [f"a{chr(code)}b" for code in codes]
    texts = [" ".join(words[start : start + 64]) for start in range(0, len(words), 64)]
    for start in range(0, len(texts), 2048):
        _assert_same(kind, as_bytes(texts[start : start + 2048]))


def test_some_code_points():
    _assert_same_around("lower", [*range(0x3200), *range(0x3200, 0x110000, 97)])


@pytest.mark.exhaustive
@pytest.mark.parametrize("kind", ["lower", "word_end"])
def test_assigned_code_points(kind):
    _assert_same_around(kind, assigned_code_points())


@pytest.mark.parametrize("kind", first_of(TOKENIZERS))
@settings(max_examples=60, derandomize=True, deadline=None)
@given(texts=st.lists(TEXTS, min_size=8, max_size=8))
def test_any_text(kind, texts):
    _assert_same_spans(kind, texts)
