"""Comparisons of the layer in the graph with the Python tokenizer, and code points to try them on."""

import functools
import re
import unicodedata

import numpy as np
import tensorflow as tf

from tests.tokenization.golden import is_tie


def as_bytes(texts):
    """What a tensor holds of texts; in place of lone surrogates it has what Python's tokenizer reads."""
    return [text if isinstance(text, bytes) else re.sub("[\ud800-\udfff]", "\ufdd1", text).encode() for text in texts]


@functools.cache
def _layer(tokenizer, **layout):
    return tokenizer.as_layer(**layout)


def assert_same(tokenizer, texts, pairs=None, **layout):
    """Equal arrays, but for rows of a single text where two ways to split it have exactly equal scores.

    Offsets are compared in bytes.
    """
    given = [column for column in (texts, pairs) if column is not None]
    tensors = tuple(tf.constant(as_bytes(column), tf.string) for column in given)
    wanted = tokenizer(*map(as_bytes, given) if layout.get("return_offsets") else given, **layout)
    got = _layer(tokenizer, **layout)(tensors if pairs is not None else tensors[0])
    assert got.keys() == wanted.keys()
    assert all(array.dtype == tf.int32 for array in got.values())
    same = np.ones(len(texts), bool)
    if pairs is None and "overflow_to_sample_mapping" not in wanted:
        rows = [_unpadded(arrays["input_ids"], arrays["attention_mask"]) for arrays in (got, wanted)]
        same = np.array([row == other for row, other in zip(*rows, strict=True)], bool)
        for row, other in (pair for pair, is_same in zip(zip(*rows), same) if not is_same):
            assert is_tie(tokenizer, row, other)
    for name, array in wanted.items():
        if same.all():
            np.testing.assert_array_equal(got[name], array, err_msg=name)
        elif got[name].shape == array.shape:
            np.testing.assert_array_equal(got[name].numpy()[same], array[same], err_msg=name)


def _unpadded(ids, mask):
    return [row[: int(count)].tolist() for row, count in zip(np.asarray(ids), np.sum(mask, axis=1))]


@functools.cache
def assigned_code_points() -> list[int]:
    """All that Unicode assigns, surrogates included, and one in 97 of the others, which no rule tells apart."""
    return [code for code in range(0x110000) if code % 97 == 0 or unicodedata.category(chr(code)) not in ("Cn", "Co")]
