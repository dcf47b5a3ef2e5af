"""Proves that texts whose sums of scores go far are split as in the graph, and that no others take that way."""

import numpy as np
import pytest
import tensorflow as tf

from albert_tf.tokenization import AlbertTokenizer
from albert_tf.tokenization.charsmap import add_rules, longest_target
from albert_tf.tokenization.joined_texts import MANY

from .golden import TINY_MODEL, small_tokenizer, spelling_bytes

LENGTH = 4_000_000
# With the ends that show a difference: runs that split in several ways with equal scores.
TEXTS = {
    "marks": "!" * 1_000_000,
    "words": "!!!! " * 60_000,
    "unknown": "!!!!가" * 60_000,
    "expanded": "ﷺ" * 2_000 + "½9, !!!! ",
    "bytes": ("!!!! " * 60_000).encode() + b"\xff!!!!",
    "surrogate": "!!!! " * 60_000 + "\ud800!!!!",
    "symbols": "–" * 550_000 + "!!!!" * 1_000,
    "special": "[MASK]!!!!" * 30_000,
}
# SentencePiece by itself gives the same of these, but something else of the others.
SAME = {"expanded"}


@pytest.fixture(scope="module")
def english():
    return AlbertTokenizer.english()


def in_graph(tokenizer, text, **options):
    layer = tokenizer.as_layer(max_length=LENGTH, return_offsets=True, **options)
    given = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
    inputs = layer(tf.constant([given]))
    return inputs["input_ids"][0, 1:-1].numpy(), inputs["offsets"][0, 1:-1].numpy()


def in_bytes(text, offsets):
    if isinstance(text, bytes):
        return offsets
    widths = [len(character.encode("utf-8", "surrogatepass")) for character in text]
    return np.cumsum([0, *widths])[offsets]


def plain(model, text):
    given = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
    return model._finish([model.processor.Encode(given, return_type="numpy")])[0]


@pytest.mark.parametrize("allow_special", [False, True])
@pytest.mark.parametrize("name", TEXTS)
def test_python_is_the_graph(english, name, allow_special):
    text = TEXTS[name]
    model = english._model.allowing_special() if allow_special else english._model
    encoded = model.encode_with_offsets(text)
    ids, offsets = in_graph(english, text, allow_special=allow_special)
    np.testing.assert_array_equal(encoded.ids, ids)
    np.testing.assert_array_equal(in_bytes(text, encoded.offsets), offsets)
    np.testing.assert_array_equal(model.encode_batch([text])[0], ids)
    assert "_op" in vars(model._long_texts)  # or the op was not asked
    if not allow_special:
        other = plain(model, text)
        assert (len(other) != len(ids) or bool((other != ids).any())) == (name not in SAME)


def test_pieces_are_those_of_the_ids(english):
    text = TEXTS["unknown"]
    pieces, ids = english.tokenize(text), english.encode(text)
    assert "".join(pieces) == "▁" + text
    known = [(piece, index) for piece, index in zip(pieces, ids, strict=True) if index != english.unk_token_id]
    assert 2 * len(known) > len(ids)
    assert all(english.pieces[index] == piece for piece, index in known)


@pytest.mark.parametrize("name", ["marks", "unknown", "bytes", "expanded"])
def test_unknown_characters_spelled_in_bytes(name):
    tokenizer, text = spelling_bytes(), TEXTS[name]
    encoded = tokenizer._model.encode_with_offsets(text)
    assert "_op" in vars(tokenizer._model._long_texts)
    ids, offsets = in_graph(tokenizer, text)
    assert tokenizer.unk_token_id not in ids
    np.testing.assert_array_equal(encoded.ids, ids)
    np.testing.assert_array_equal(in_bytes(text, encoded.offsets), offsets)


@pytest.mark.parametrize("count", [3, MANY + 1])
def test_one_among_others(english, count):
    texts = ["a cat, 1999, and"] * count
    texts[count // 2] = TEXTS["words"]
    rows = english.encode_batch(texts, num_threads=1)
    np.testing.assert_array_equal(rows[count // 2], in_graph(english, TEXTS["words"])[0])
    others = rows[: count // 2] + rows[count // 2 + 1 :]
    assert all(row.tolist() == plain(english._model, texts[-1]).tolist() for row in others)


@pytest.mark.parametrize(
    "text", ["a cat sat on the mat. " * 2_000, "가" * 3_500, "ﷺ" * 200, "x" * 5_000, "–" * 400_000, ""], ids=len
)
def test_other_texts_are_left_to_sentencepiece(english, text):
    tokenizer = AlbertTokenizer.english()
    assert tokenizer.encode(text) == plain(english._model, text).tolist()
    assert "_op" not in vars(tokenizer._model._long_texts)


# The reference's rule puts word starts into the text, which must not count as characters of it.
@pytest.mark.parametrize("reference_digit_comma", [False, True])
def test_pieces_that_are_replaced(reference_digit_comma):
    tokenizer = AlbertTokenizer.from_pretrained(TINY_MODEL, reference_digit_comma=reference_digit_comma)
    text = "a9," * 9_000
    ids = tokenizer.encode(text)
    assert "_op" in vars(tokenizer._model._long_texts)
    np.testing.assert_array_equal(ids, in_graph(tokenizer, text)[0])


def test_rules_that_make_much_of_one_character(english):
    proto = add_rules(english._model._compiled_proto, {"@": "!" * 100})
    assert (longest_target(english._model._compiled_proto), longest_target(proto)) == (18, 100)


def test_while_a_graph_is_built(english):
    tokenizer = AlbertTokenizer.english()
    counts = []

    @tf.function(autograph=False)
    def build():
        counts.append(len(tokenizer.encode(TEXTS["words"])))
        return tf.constant(0)

    build()
    assert counts == [len(tokenizer.encode(TEXTS["words"]))]


@pytest.mark.parametrize("settings", [{"model_type": "bpe"}, {"add_dummy_prefix": False}], ids=str)
def test_models_that_the_op_cannot_take(settings):
    tokenizer = small_tokenizer(**settings)
    assert tokenizer.encode(TEXTS["words"]) == plain(tokenizer._model, TEXTS["words"]).tolist()
