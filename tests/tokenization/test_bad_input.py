"""Proves that no input crashes SentencePiece or is silently lost, that both paths agree, and that time is linear."""

import time

import numpy as np
import pandas
import pytest
import tensorflow as tf

from albert_tf.tokenization import AlbertTokenizer
from tests.parameters import first_of

from .golden import is_tie

MAX_LENGTH = 2_000_000
UNKNOWN, START = 1, 13

# Each with what it must at least give: ids that something unknown, or something known, is there.
CASES = {
    "bytes that are no UTF-8": (b"a\xff\xfe\xc0\x80b", [21, UNKNOWN, 220]),
    "a character that breaks off": (b"a\xe2\x82", [21, UNKNOWN]),
    "a lone surrogate": ("a\ud800".encode("utf-8", "surrogatepass"), [21, UNKNOWN]),
    "NUL": (b"a\0b", [21, UNKNOWN, 220]),
    "nothing": (b"", []),
    "white space alone": (" \t\r\n\u3000\u2028".encode(), []),
    "combining marks alone": ("\u0301\u0302 \u0323".encode(), []),
    "right to left": ("שלום عربي".encode(), [START, UNKNOWN, START, UNKNOWN]),
    "emoji with joiners": (
        "👩\u200d👩\u200d👧 🇰🇷".encode(),
        [START, UNKNOWN, START, UNKNOWN, START, UNKNOWN, START, UNKNOWN],
    ),
}


@pytest.fixture(scope="module")
def tokenizer():
    return AlbertTokenizer.english()


@pytest.fixture(scope="module")
def layer(tokenizer):
    return tokenizer.as_layer(max_length=MAX_LENGTH, return_offsets=True)


@pytest.mark.parametrize("name", CASES)
def test_both_paths_give_what_is_there(tokenizer, layer, name):
    text, ids = CASES[name]
    assert tokenizer.encode(text) == ids
    wanted = tokenizer([text], max_length=MAX_LENGTH, return_offsets=True)
    for key, array in layer(tf.constant([text])).items():
        np.testing.assert_array_equal(array, wanted[key])


# Runs of a million bytes, but for characters that the vocabulary does not know: SentencePiece copies a run of them once
# for each of them.
@pytest.mark.parametrize(("unit", "size"), first_of([("x", 10**6), ("9,", 10**6), ("\u0301", 10**6), ("가", 10**5)]))
def test_long_runs(tokenizer, layer, unit, size):
    text = (unit * (size // len(unit.encode()))).encode()
    start = time.process_time()
    wanted = tokenizer([text], max_length=MAX_LENGTH, return_offsets=True)
    in_python = time.process_time() - start
    inputs = layer(tf.constant([text]))
    in_graph = time.process_time() - start - in_python
    ids, others = inputs["input_ids"].numpy()[0], wanted["input_ids"][0]
    assert ids.tolist() == others.tolist() or is_tie(tokenizer, ids, others)
    assert tokenizer.encode(text) == wanted["input_ids"][0, 1:-1].tolist()
    assert wanted["offsets"][0, -2, 1] == (0 if unit == "\u0301" else len(text.rstrip()))  # the clean-up drops marks
    # Linear takes a second or two on a slow machine; anything quadratic takes many minutes.
    assert (in_python < 20, in_graph < 20) == (True, True)


def test_tensors_are_told_of_the_layer(tokenizer):
    dataset = tf.data.Dataset.from_tensor_slices(["a", "b"]).batch(2)
    with pytest.raises(ValueError, match=r"`texts` must be strings.*SymbolicTensor.*as_layer"):
        dataset.map(lambda texts: tokenizer(texts)["input_ids"])
    with pytest.raises(ValueError, match=r"`texts` must be strings.*EagerTensor.*as_layer"):
        tokenizer(["a"], tf.constant(["b"]))


@pytest.mark.parametrize("table", [{"text": ["a"]}, pandas.DataFrame({"text": ["a"]})], ids=["dict", "DataFrame"])
def test_the_names_of_columns_are_no_texts(tokenizer, table):
    for encode in (tokenizer, tokenizer.encode_batch):
        with pytest.raises(ValueError, match=rf"`texts` must be .* a {type(table).__name__}; pass one of its columns"):
            encode(table)
    assert tokenizer(table["text"])["input_ids"].shape == (1, 3)


@pytest.mark.parametrize("method", ["encode", "tokenize"])
def test_a_list_is_not_one_text(tokenizer, method):
    with pytest.raises(ValueError, match=r"must be a string\. Received: \['a', 'b'\] \(list\) at position 0"):
        getattr(tokenizer, method)(["a", "b"])


@pytest.mark.parametrize("ids", ["53", [53.7], [[53]]])
def test_what_is_not_ids_is_not_decoded(tokenizer, ids):
    with pytest.raises(ValueError, match=r"`ids` must be the ids of one text.* Received: "):
        tokenizer.decode(ids)
    assert tokenizer.decode(tf.constant([53])) == tokenizer.decode(np.array([53])) == "one"


@pytest.mark.parametrize("value", [None, 5, float("nan")])
def test_what_is_neither_a_text_nor_texts_is_named(tokenizer, value):
    for encode in (tokenizer, tokenizer.encode_batch):
        with pytest.raises(ValueError, match=rf"`texts` must be a string or a list of strings\. Received: {value}\."):
            encode(value)
