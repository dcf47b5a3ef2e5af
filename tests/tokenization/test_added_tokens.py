"""Proves that added tokens are those of transformers, in Python and in graphs, and that all other texts stay."""

import json
import lzma
import pickle

import numpy as np
import pytest

from albert_tf.tokenization import AlbertTokenizer
from tests.parameters import MadeOnce, diagonal, first_of
from tests.tokenization.golden import AWKWARD_TEXTS, GOLDEN, read_lines, spelling_bytes
from tests.tokenization.in_graph import assert_same
from tests.tokenization.wordpiece_golden import korean, word_end

TOKENS = ["[E1]", "[/E1]", "covid", "New York", "Café", "myocardial infarction", "infarction", "😀", "각", "the quick"]
TOKENS += ["▁foo", "[E1"]
EXACT = ["US", "NaN"]
VARIANTS = [
    *("COVID", "us", "café", "CAFE\u0301", "new york", "[e1]", "new  york"),
    *("c\u0301ovid", "ﬁcovidﬁ", "ｃｏｖｉｄ"),
]


def extended(tokenizer: AlbertTokenizer) -> AlbertTokenizer:
    """A copy with the tokens added."""
    tokenizer = pickle.loads(pickle.dumps(tokenizer))
    tokenizer.add_tokens(TOKENS)
    tokenizer.add_tokens(EXACT, normalized=False)
    return tokenizer


PLAIN = {
    "sentencepiece": AlbertTokenizer.english,
    "byte_fallback": spelling_bytes,
    "wordpiece": korean,
    "cased": lambda: korean(do_lower_case=False, keep_accents=True),
    "word_end": word_end,
}
TOKENIZERS = MadeOnce({name: lambda make=make: extended(make()) for name, make in PLAIN.items()})


def golden(name: str) -> list[dict]:
    with lzma.open(GOLDEN / "added_tokens" / f"{name}.jsonl.xz", "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def texts_with_tokens() -> list[str]:
    """Recorded lines, and awkward texts around and between every token."""
    written = [*TOKENS, *EXACT, *VARIANTS]
    around = [
        f"{text[:50]}{token}{text[:9]} {token}"
        for text, token in zip(AWKWARD_TEXTS * 2, written, strict=False)
        if "\ud800" not in text and "xx" not in text  # splits of "xxx" have equal scores
    ]
    return [line["text"] for name in ("sentencepiece", "wordpiece") for line in golden(name)[:120]] + around + written


@pytest.mark.parametrize(("name", "count"), [("sentencepiece", 500), ("wordpiece", 250)])
def test_ids_are_those_of_transformers(name, count):
    lines = golden(name)
    assert len(lines) == count
    rows = TOKENIZERS[name].encode_batch([line["text"] for line in lines])
    assert [row.tolist() for row in rows] == [line["ids"] for line in lines]


@pytest.mark.parametrize("name", ["sentencepiece", "wordpiece", "word_end"])
def test_texts_without_them_keep_ids_and_offsets(name):
    tokenizer = TOKENIZERS[name]
    texts = [line["text"] for line in read_lines("T1_tokenize")[:120]] + AWKWARD_TEXTS
    texts = [text for text in texts if not set(tokenizer.encode(text)) & set(tokenizer.added_tokens.values())]
    assert len(texts) > 100
    before = PLAIN[name]()(texts, return_offsets=True)
    for key, array in tokenizer(texts, return_offsets=True).items():
        np.testing.assert_array_equal(array, before[key], err_msg=key)


@pytest.mark.parametrize(("name", "allow_special"), first_of(diagonal([*PLAIN], [True, False])))
def test_the_graph_gives_the_same(name, allow_special):
    texts = [*texts_with_tokens(), b"\xff[E1]\xe2\x82 US\xf0", b"covid\xff"]
    assert_same(TOKENIZERS[name], texts, return_offsets=True, allow_special=allow_special)


@pytest.mark.parametrize("name", PLAIN)
def test_the_span_of_a_token_is_its_own_characters(name):
    tokenizer = TOKENIZERS[name]
    text = "é [E1]New York[/E1], NaN ab covid"
    inputs = tokenizer(text, return_offsets=True)
    added = {index: token for token, index in tokenizer.added_tokens.items()}
    spans = zip(inputs["input_ids"][0].tolist(), inputs["offsets"][0].tolist(), strict=True)
    cut = [text[start:end] for index, (start, end) in spans if index in added]
    assert cut == ["[E1]", "New York", "[/E1]", "NaN", "covid"]


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("[E1]Bill[/E1], in NEW YORK", ["[E1]", "▁bill", "[/E1]", "▁", ",", "▁in", "New York"]),
        ("Covid19 c\u0301ovid", ["covid", "▁19", "covid"]),
        ("Café CAFE\u0301s", ["Café", "Café", "▁", "s"]),
        ("US us [E1 [E", ["US", "▁us", "[E1", "▁[", "e"]),
        ("myocardial infarction infarction", ["myocardial infarction", "infarction"]),
        ("[E1] [E1][E1]", ["[E1]", "[E1]", "[E1]"]),
        ("", []),
    ],
)
def test_pieces(text, pieces):
    tokenizer = TOKENIZERS["sentencepiece"]
    assert tokenizer.tokenize(text) == pieces
    assert tokenizer.convert_tokens_to_ids(pieces) == tokenizer.encode(text)
    assert tokenizer.encode(tokenizer.decode(tokenizer.encode(text))) == tokenizer.encode(text)


def test_a_token_is_made_of_whole_characters():
    tokenizer, plain = AlbertTokenizer.english(), AlbertTokenizer.english()
    tokenizer.add_tokens("inance")
    assert tokenizer.encode("ﬁnance") == plain.encode("ﬁnance")  # "ﬁ" is one character
    assert tokenizer.tokenize("finance") == ["▁f", "inance"]


def test_those_that_exist_are_left_out():
    tokenizer = AlbertTokenizer.english()
    plain_hash = tokenizer.vocab_hash
    assert tokenizer.add_tokens(["▁the", "the", "[MASK]"]) == 0
    assert tokenizer.vocab_hash == plain_hash
    assert tokenizer.add_tokens(["[E1]", "[E1]", "▁the", "x y"]) == 2
    assert tokenizer.add_tokens("[E1]") == 0
    assert (len(tokenizer), tokenizer.added_tokens) == (30002, {"[E1]": 30000, "x y": 30001})
    assert tokenizer.vocab_hash != plain_hash
    assert len(tokenizer.start_of_word) == len(tokenizer.end_of_word) == 30002
    assert tokenizer.start_of_word[30000:].all()


@pytest.mark.parametrize("token", ["", " \u3000", "a\nb", "\0", "a\u2028b", "\ud800", None, 5, b"x"], ids=repr)
def test_what_cannot_be_a_token_is_named(token):
    tokenizer = AlbertTokenizer.english()
    for tokens in ([token], token):
        with pytest.raises(ValueError, match=r"An added token must be a string.*leave it out"):
            tokenizer.add_tokens(tokens)
    assert len(tokenizer) == 30000


def test_a_token_must_be_left_after_the_clean_up():
    tokenizer = AlbertTokenizer.english()
    with pytest.raises(ValueError, match=r"Something must be left.*'\u0301'.*normalized=False"):
        tokenizer.add_tokens("\u0301")
    tokenizer.add_tokens("[E1]")
    with pytest.raises(ValueError, match=r"must differ after the clean-up.*'\[e1\]'.*normalized=False"):
        tokenizer.add_tokens("[e1]")
    assert tokenizer.add_tokens("[e1]", normalized=False) == 1
    assert tokenizer.tokenize("[E1][e1]") == ["[E1]", "[e1]"]
