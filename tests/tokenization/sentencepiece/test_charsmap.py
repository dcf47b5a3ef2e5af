"""Proves that the clean-up compiled into the model gives the ids of clean-up in Python followed by the model."""

import functools
import itertools
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from albert_tf.tokenization import AlbertTokenizer
from albert_tf.tokenization.files import TokenizerOptions, english_model_file
from albert_tf.tokenization.sentencepiece.charsmap import compile_charsmap, read_shipped
from albert_tf.tokenization.sentencepiece.model import SentencePieceModel
from albert_tf.tokenization.sentencepiece.proto import read_charsmap, replace_charsmap
from tests.parameters import first_of
from tests.tokenization.golden import AWKWARD_TEXTS, TwoStepEncoder, clean_text
from tests.tokenization.in_graph import assigned_code_points

SHIPPED_UNICODE = "14.0.0"
OPTIONS = [
    TokenizerOptions(do_lower_case=lower, keep_accents=keep)
    for lower, keep in itertools.product([True, False], repeat=2)
]
# Known to the Unicode version of every Python; without capital sigma, whose lower case looks at neighbours.
KNOWN_CHARACTERS = st.characters(exclude_categories=["Cs"]).filter(
    lambda character: (
        unicodedata.ucd_3_2_0.category(character) != "Cn" and "Σ" not in unicodedata.normalize("NFKD", character)
    )
)


@functools.cache
def _encoders(options):
    return AlbertTokenizer(SentencePieceModel(english_model_file().read_bytes(), options)), TwoStepEncoder(options)


@pytest.fixture(scope="module", params=first_of(OPTIONS), ids=str)
def encoders(request):
    return _encoders(request.param)


def _assert_same_ids(encoders, texts):
    tokenizer, two_steps = encoders
    # Without the digit-comma rule, which has tests of its own.
    one_step = tokenizer._model.processor.Encode(texts, return_type=int)
    for text, got, wanted in zip(texts, one_step, two_steps.encode(texts), strict=True):
        if got != wanted:
            assert _new_to_one_unicode_version(tokenizer, text), (text, got, wanted)


def _new_to_one_unicode_version(tokenizer, text):
    """Under another Unicode version than the shipped rules', one side may not know a character and leave it be."""
    left_as_they_are = (clean_text(text), tokenizer._model.processor.Normalize(text).removeprefix("▁"))
    return unicodedata.unidata_version != SHIPPED_UNICODE and text in left_as_they_are


def _assert_same_around(encoders, characters):
    for start in range(0, len(characters), 1 << 17):
        block = characters[start : start + (1 << 17)]
        _assert_same_ids(encoders, block)
        _assert_same_ids(encoders, [f"a{character}b" for character in block])


def test_some_code_points_alone_and_between_letters():
    characters = [chr(code) for code in (*range(0x3200), *range(0x3200, 0x110000, 97)) if not 0xD800 <= code < 0xE000]
    _assert_same_around(_encoders(OPTIONS[0]), characters)


@pytest.mark.exhaustive
def test_assigned_code_points_alone_and_between_letters(encoders):
    characters = [chr(code) for code in assigned_code_points() if not 0xD800 <= code < 0xE000]
    assert len(characters) > 140_000
    _assert_same_around(encoders, characters)


def test_syllables_in_parts(encoders):
    initials = ["\u1100", "ㄱ", "ﾡ", "㉠", "가", "각", "㉮"]
    vowels = ["\u1161", "ㅏ", "ￂ"]
    finals = ["\u11a8", "\u11aa", "ㄳ", "ﾣ", "ㄱ", ""]
    others = ["\u09c7\u09be", "\u0b92\u0bd7", "\u0dd9\u0dcf", "\u0dda\u0dcf", "\u1025\u102e"]
    others += ["か\u3099", "ｶﾞ", "E\u0301"]
    texts = ["".join(parts) for parts in itertools.product(initials, [*vowels, ""], finals)] + others
    _assert_same_ids(encoders, [f"{before}{text}{after}" for text in texts for before, after in ("  ", "가a", "ㄱㅏ")])


def test_awkward_texts(encoders):
    _assert_same_ids(encoders, [text for text in AWKWARD_TEXTS if not any("\ud800" <= c <= "\udfff" for c in text)])


@settings(max_examples=40, derandomize=True, deadline=None)
@given(st.lists(st.text(KNOWN_CHARACTERS, max_size=30), min_size=20, max_size=20))
def test_any_text(encoders, texts):
    _assert_same_ids(encoders, texts)


def test_final_sigma_is_the_known_limit():
    tokenizer = AlbertTokenizer.english()
    assert clean_text("ΛΌΓΟΣ") == "λογος"
    assert tokenizer._model.processor.Normalize("ΛΌΓΟΣ") == "▁λογοσ"


@pytest.mark.exhaustive
@pytest.mark.skipif(unicodedata.unidata_version != SHIPPED_UNICODE, reason="compiled under another Unicode version")
@pytest.mark.parametrize("do_lower_case", [True, False])
def test_shipped_rules_are_what_compiling_gives(do_lower_case):
    base = read_charsmap(english_model_file().read_bytes())
    assert read_shipped(base, do_lower_case, False) == compile_charsmap(base, do_lower_case, False)


def test_a_model_without_rules_of_its_own_gets_the_clean_up():
    plain = replace_charsmap(english_model_file().read_bytes(), b"")
    assert AlbertTokenizer(SentencePieceModel(plain)).tokenize("The Café") == ["▁the", "▁cafe"]
