"""Proves that added tokens are those of transformers, in Python and in graphs, and that all other texts stay."""

import json
import lzma
import pickle

import keras
import numpy as np
import pytest
import tensorflow as tf

from albert_tf.tokenization import AlbertTokenizer
from albert_tf.tokenization.files import CONFIG_FILE, TOKENIZERS_FILE
from tests.disk import change_json
from tests.parameters import MadeOnce, diagonal, first_of

from .golden import AWKWARD_TEXTS, GOLDEN, read_lines, spelling_bytes
from .wordpiece_golden import korean, word_end

TOKENS = ["[E1]", "[/E1]", "covid", "New York", "Café", "myocardial infarction", "infarction", "😀", "각", "the quick"]
TOKENS += ["▁foo", "[E1"]
EXACT = ["US", "NaN"]
VARIANTS = [
    "COVID",
    "us",
    "café",
    "CAFE\u0301",
    "new york",
    "[e1]",
    "new  york",
    "c\u0301ovid",
    "ﬁcovidﬁ",
    "ｃｏｖｉｄ",
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
    tokenizer, texts = TOKENIZERS[name], texts_with_tokens()
    raw = [text.encode("utf-8", "surrogatepass") for text in texts] + [b"\xff[E1]\xe2\x82 US\xf0", b"covid\xff"]
    expected = tokenizer(raw, return_offsets=True, allow_special=allow_special)
    layer = tokenizer.as_layer(return_offsets=True, allow_special=allow_special)
    for key, array in layer(tf.constant(raw)).items():
        np.testing.assert_array_equal(array, expected[key], err_msg=key)


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


@pytest.mark.parametrize("name", first_of(PLAIN))
def test_they_are_saved(name, tmp_path):
    tokenizer, texts = TOKENIZERS[name], texts_with_tokens()
    tokenizer.save_pretrained(tmp_path / "a")
    expected = [row.tolist() for row in tokenizer.encode_batch(texts)]
    folders = [tmp_path / "a"]
    if (tmp_path / "a" / TOKENIZERS_FILE).is_file():  # as transformers 5 saves them
        folders.append(tmp_path / "b")
        folders[1].mkdir()
        (folders[1] / TOKENIZERS_FILE).write_bytes((tmp_path / "a" / TOKENIZERS_FILE).read_bytes())
    for folder in folders:
        restored = AlbertTokenizer.from_pretrained(folder)
        assert restored.added_tokens == tokenizer.added_tokens
        # A `tokenizer.json` has other scores for the pieces that the digit-comma rule splits.
        assert restored.vocab_hash == tokenizer.vocab_hash or folder.name == "b"
        assert [row.tolist() for row in restored.encode_batch(texts)] == expected


def test_layers_are_saved_with_them(tmp_path):
    tokenizer = TOKENIZERS["sentencepiece"]
    texts = tf.constant(["[E1]Bill[/E1] COVID", "none"])
    text = keras.Input((), dtype="string")
    keras.Model(text, tokenizer.as_layer(max_length=12, padding="max_length")(text)).save(tmp_path / "m.keras")
    restored = keras.saving.load_model(tmp_path / "m.keras")
    expected = tokenizer(["[E1]Bill[/E1] COVID", "none"], max_length=12, padding="max_length")["input_ids"]
    np.testing.assert_array_equal(restored(texts)["input_ids"], expected)


def test_a_piece_that_is_an_added_token_too_is_named(tmp_path):
    AlbertTokenizer.english().save_pretrained(tmp_path)
    entries = {"124": _entries(content="the"), "4": _entries(content="[MASK]", normalized=False, special=True)}
    change_json(tmp_path / CONFIG_FILE, added_tokens_decoder=entries)
    with pytest.warns(UserWarning, match="the piece 'the' as an added token too.*ids of texts with it may differ"):
        assert AlbertTokenizer.from_pretrained(tmp_path).added_tokens == {}


def _entries(**changes):
    return {"content": "[X]", "normalized": True, **changes}


@pytest.mark.parametrize(
    ("config", "ids", "sentence"),
    [
        ({"30000": _entries(), "2": _entries(content="[CLS]", normalized=False)}, None, None),
        ({}, {"[X]": 30000, "[CLS]": 2}, None),
        ({"30001": _entries()}, None, r"must follow those of the pieces, 30000.*\[30001\]"),
        ({"30000": _entries(lstrip=True)}, None, r"'\[X\]' has lstrip, which is not supported"),
        ({"30000": _entries(content="")}, None, "must be a string with visible characters"),
        ({"x": _entries()}, None, "cannot be read.*save the tokenizer again"),
        ({}, {"[X]": None}, "cannot be read.*save the tokenizer again"),
        ([5], None, "cannot be read.*save the tokenizer again"),
    ],
    ids=str,
)
def test_files_of_transformers(tmp_path, config, ids, sentence):
    AlbertTokenizer.english().save_pretrained(tmp_path)
    change_json(tmp_path / CONFIG_FILE, added_tokens_decoder=config)
    if ids is not None:
        (tmp_path / "added_tokens.json").write_text(json.dumps(ids))
    if sentence is None:
        assert AlbertTokenizer.from_pretrained(tmp_path).added_tokens == {"[X]": 30000}
    else:
        with pytest.raises(ValueError, match=sentence):
            AlbertTokenizer.from_pretrained(tmp_path)
