"""Proves that folders with a `tokenizer.json` alone, as transformers 5 saves them, are read, damaged ones refused."""

import json
import lzma

import numpy as np
import pytest
import tensorflow as tf

from albert_tf.tokenization import AlbertTokenizer
from albert_tf.tokenization.wordpiece.vocabulary import WordPieceOptions

from .golden import AWKWARD_TEXTS, GOLDEN, TINY_MODEL, read_lines

SAVED = GOLDEN / "hf_tokenizer_json"


@pytest.fixture(scope="module")
def unigram(tmp_path_factory):
    folder = tmp_path_factory.mktemp("unigram")
    packed = (SAVED / "unigram" / "tokenizer.json.xz").read_bytes()
    (folder / "tokenizer.json").write_bytes(lzma.decompress(packed))
    (folder / "tokenizer_config.json").write_bytes((SAVED / "unigram" / "tokenizer_config.json").read_bytes())
    return folder


def test_a_unigram_tokenizer_is_the_model_that_it_was_made_of(unigram, tmp_path):
    tokenizer, published = AlbertTokenizer.from_pretrained(unigram), AlbertTokenizer.from_pretrained(TINY_MODEL)
    assert tokenizer.vocab_hash == published.vocab_hash
    texts = [line["text"] for line in read_lines("T1b_digit_comma")] + AWKWARD_TEXTS
    for row, wanted in zip(tokenizer.encode_batch(texts), published.encode_batch(texts), strict=True):
        assert row.tolist() == wanted.tolist()
    tokenizer.save_pretrained(tmp_path)
    assert (tmp_path / "spiece.model").is_file()
    assert AlbertTokenizer.from_pretrained(tmp_path).vocab_hash == published.vocab_hash


@pytest.mark.exhaustive
def test_options_come_from_the_normaliser_and_can_be_given(unigram, tmp_path):
    content = json.loads((unigram / "tokenizer.json").read_text("utf-8"))
    kept = [one for one in content["normalizer"]["normalizers"] if one["type"] in ("Replace", "Precompiled")]
    content["normalizer"]["normalizers"] = kept
    (tmp_path / "tokenizer.json").write_text(json.dumps(content), "utf-8")
    options = AlbertTokenizer.from_pretrained(tmp_path).options
    assert (options.do_lower_case, options.keep_accents) == (False, True)
    assert AlbertTokenizer.from_pretrained(tmp_path, do_lower_case=True).options.do_lower_case


def test_added_tokens_that_are_not_special_are_user_defined(unigram, tmp_path):
    content = json.loads((unigram / "tokenizer.json").read_text("utf-8"))
    index = next(i for i, (piece, _) in enumerate(content["model"]["vocab"]) if piece == "s")
    content["model"]["vocab"][index][0] = "@User"
    content["added_tokens"].append(content["added_tokens"][0] | {"id": index, "content": "@User", "special": False})
    (tmp_path / "tokenizer.json").write_text(json.dumps(content), "utf-8")
    assert "@User" in AlbertTokenizer.from_pretrained(tmp_path).tokenize("a@Users")


@pytest.mark.parametrize(
    ("name", "options", "pieces"),
    [
        ("wordpiece", WordPieceOptions(max_word_length=100), ["caf", "##e", "밥", "##을", "!"]),
        ("wordpiece_accents", WordPieceOptions(keep_accents=True, tokenize_chinese_chars=False, max_word_length=100),
         ["caf", "##é", "밥", "##을", "!"]),
    ],
)  # fmt: skip
def test_wordpiece(name, options, pieces, tmp_path):
    tokenizer = AlbertTokenizer.from_pretrained(SAVED / name)
    assert tokenizer.options == options
    assert tokenizer.tokenize("Café 밥을!") == pieces
    tokenizer.save_pretrained(tmp_path)
    assert AlbertTokenizer.from_pretrained(tmp_path).vocab_hash == tokenizer.vocab_hash


def test_other_vocabularies_of_the_folder_come_first(tmp_path):
    AlbertTokenizer.from_pretrained(TINY_MODEL).save_pretrained(tmp_path)
    (tmp_path / "tokenizer.json").write_text("{")
    assert AlbertTokenizer.from_pretrained(tmp_path).vocab_size == 500


WORDPIECE = {"type": "WordPiece", "continuing_subword_prefix": "##", "vocab": {"[UNK]": 0}}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "tokenizer.json is not valid JSON"),
        ("[]", "tokenizer.json holds list where an object"),
        ("[" * 100_000, "tokenizer.json is not valid JSON"),
        ("{}", "tokenizer.json has a model of type None"),
        (json.dumps({"model": {"type": "WordLevel"}}), "tokenizer.json has a model of type 'WordLevel'"),
        (json.dumps({"model": {"type": "Unigram"}}), "tokenizer.json is no tokenizer of the tokenizers library"),
        (json.dumps({"model": WORDPIECE}), "tokenizer.json is no WordPiece tokenizer .*normalizer"),
        (json.dumps({"model": WORDPIECE | {"vocab": {"a": 5}}}), "the ids of its pieces have gaps"),
        (json.dumps({"model": WORDPIECE | {"vocab": [1]}}), "tokenizer.json is no WordPiece tokenizer"),
    ],
)
def test_damaged_files_are_named(tmp_path, content, message):
    (tmp_path / "tokenizer.json").write_text(content)
    with pytest.raises(ValueError, match=message):
        AlbertTokenizer.from_pretrained(tmp_path)


FOREIGN_STEPS = {
    "BertNormalizer, Replace, BertPreTokenizer": lambda content: content["normalizer"]["normalizers"].append(
        {"type": "Replace", "pattern": {"String": "a"}, "content": "b"}
    ),
    "BertNormalizer, Whitespace": lambda content: content.update(pre_tokenizer={"type": "Whitespace"}),
}


@pytest.mark.parametrize("steps", FOREIGN_STEPS)
def test_steps_of_wordpiece_that_are_not_berts_are_refused(steps, tmp_path):
    """They would change ids in silence."""
    (tmp_path / "vocab.txt").write_text("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "##b"]))
    AlbertTokenizer.from_pretrained(tmp_path).save_pretrained(tmp_path)
    content = json.loads((tmp_path / "tokenizer.json").read_text())
    FOREIGN_STEPS[steps](content)
    (tmp_path / "tokenizer.json").write_text(json.dumps(content))
    with pytest.raises(ValueError, match=rf"tokenizer\.json .*the steps {steps} with the prefix '##' cannot"):
        AlbertTokenizer.from_pretrained(tmp_path / "tokenizer.json")


@pytest.mark.parametrize(
    "change",
    [
        lambda content: content["model"].update(vocab=5),
        lambda content: content["model"]["vocab"].append(["x"]),
        lambda content: content["model"]["vocab"].append(["x", "y"]),
        lambda content: content["model"]["vocab"].append(["xyzzy", 1e300]),
        lambda content: content["model"]["vocab"].append(["xyzzy", float("nan")]),
        lambda content: content["model"]["vocab"].append(["\ud800", 0.0]),
        lambda content: content["model"].update(unk_id=None),
        lambda content: content["model"].update(unk_id=10**30),
        lambda content: content["model"].update(unk_id=4),
        lambda content: content.update(added_tokens=3),
        lambda content: content.update(normalizer="x"),
        lambda content: content["normalizer"]["normalizers"].append({"type": "Prepend", "prepend": "x"}),
        lambda content: content.update(pre_tokenizer={"type": "Digits", "individual_digits": True}),
        lambda content: content.update(pre_tokenizer={"type": "Metaspace", "prepend_scheme": "never"}),
        lambda content: content["normalizer"]["normalizers"].append({"type": "Precompiled", "precompiled_charsmap": 5}),
        lambda content: content["normalizer"]["normalizers"][-1].update(precompiled_charsmap="AAAA"),
        lambda content: content["model"].pop("vocab"),
        lambda content: content.pop("added_tokens"),
    ],
)
def test_one_wrong_value_is_an_error_that_names_the_file(unigram, tmp_path, change):
    content = json.loads((unigram / "tokenizer.json").read_text("utf-8"))
    last = content["normalizer"]["normalizers"][-1]
    assert last["type"] == "Precompiled"
    change(content)
    (tmp_path / "tokenizer.json").write_text(json.dumps(content))
    with pytest.raises(ValueError, match=r"tokenizer\.json"):
        AlbertTokenizer.from_pretrained(tmp_path)


def test_words_are_as_long_as_the_file_lets_them_be(tmp_path):
    content = json.loads((SAVED / "wordpiece" / "tokenizer.json").read_text(encoding="utf-8"))
    published = AlbertTokenizer.from_pretrained(SAVED / "wordpiece")
    piece = next(piece for piece in published.pieces if len(piece) == 1 and f"##{piece}" in published.pieces)
    content["model"]["max_input_chars_per_word"] = 5
    (tmp_path / "tokenizer.json").write_text(json.dumps(content), encoding="utf-8")
    tokenizer, texts = AlbertTokenizer.from_pretrained(tmp_path), [5 * piece, 6 * piece]
    assert [published.unk_token_id in ids for ids in published.encode_batch(texts)] == [False, False]
    assert [ids.tolist() == [tokenizer.unk_token_id] for ids in tokenizer.encode_batch(texts)] == [False, True]
    np.testing.assert_array_equal(tokenizer.as_layer()(tf.constant(texts))["input_ids"], tokenizer(texts)["input_ids"])
    tokenizer.save_pretrained(tmp_path / "saved")
    again = AlbertTokenizer.from_pretrained(tmp_path / "saved")
    assert again.vocab_hash == tokenizer.vocab_hash != published.vocab_hash
    saved = json.loads((tmp_path / "saved" / "tokenizer.json").read_text(encoding="utf-8"))
    assert saved["model"]["max_input_chars_per_word"] == 5


def test_texts_that_are_not_cleaned_are_refused(tmp_path):
    content = json.loads((SAVED / "wordpiece" / "tokenizer.json").read_text(encoding="utf-8"))
    normalizer = content["normalizer"]
    normalizer.get("normalizers", [normalizer])[0]["clean_text"] = False
    (tmp_path / "tokenizer.json").write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(ValueError, match=r"tokenizer\.json .* not cleaned \(clean_text = false\) cannot be reproduced"):
        AlbertTokenizer.from_pretrained(tmp_path)
