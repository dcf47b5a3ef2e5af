"""Proves that a `tokenizer.json` alone, as transformers 5 saves it, is read and ours is theirs; others are refused."""

import base64
import hashlib
import json
import lzma

import numpy as np
import pytest
import tensorflow as tf

from albert_tf.tokenization import AlbertTokenizer
from albert_tf.tokenization.files import TokenizerOptions
from albert_tf.tokenization.sentencepiece.model import SentencePieceModel
from albert_tf.tokenization.sentencepiece.proto import read_charsmap
from albert_tf.tokenization.wordpiece.vocabulary import WordPieceOptions
from tests.tokenization.golden import AWKWARD_TEXTS, GOLDEN, TINY_MODEL, read_lines, small_tokenizer, train_plainly

SAVED = GOLDEN / "hf_tokenizer_json"
# With this content transformers 5.23.0 (PreTrainedTokenizerFast) and 4.57.1 (AlbertTokenizerFast) gave the recorded ids
# of all 2,664 lines of T1 without a literal special piece; `make parity-peers` compares anew.
COMPARED = "6edf21a7c2f970a6ff97cca1ebdddaa2a2c0445c9199d5f4c68dee8bd48716ec"


def read(folder):
    return json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))


def load(folder, content):
    """The tokenizer of a folder with this `tokenizer.json`."""
    (folder / "tokenizer.json").write_text(content if isinstance(content, str) else json.dumps(content), "utf-8")
    return AlbertTokenizer.from_pretrained(folder)


# === Read: unigram models ===


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
    content = read(unigram)
    kept = [one for one in content["normalizer"]["normalizers"] if one["type"] in ("Replace", "Precompiled")]
    content["normalizer"]["normalizers"] = kept
    options = load(tmp_path, content).options
    assert (options.do_lower_case, options.keep_accents) == (False, True)
    assert AlbertTokenizer.from_pretrained(tmp_path, do_lower_case=True).options.do_lower_case


def test_added_tokens_that_are_not_special_are_user_defined(unigram, tmp_path):
    content = read(unigram)
    index = next(i for i, (piece, _) in enumerate(content["model"]["vocab"]) if piece == "s")
    content["model"]["vocab"][index][0] = "@User"
    content["added_tokens"].append(content["added_tokens"][0] | {"id": index, "content": "@User", "special": False})
    assert "@User" in load(tmp_path, content).tokenize("a@Users")


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
    content = read(unigram)
    assert content["normalizer"]["normalizers"][-1]["type"] == "Precompiled"
    change(content)
    with pytest.raises(ValueError, match=r"tokenizer\.json"):
        load(tmp_path, content)


SPECIAL = ("<pad>", "<unk>", "[CLS]", "[SEP]", "[MASK]")


# === Read: WordPiece ===


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


def test_words_are_as_long_as_the_file_lets_them_be(tmp_path):
    published = AlbertTokenizer.from_pretrained(SAVED / "wordpiece")
    piece = next(piece for piece in published.pieces if len(piece) == 1 and f"##{piece}" in published.pieces)
    content = read(SAVED / "wordpiece")
    content["model"]["max_input_chars_per_word"] = 5
    tokenizer, texts = load(tmp_path, content), [5 * piece, 6 * piece]
    assert [published.unk_token_id in ids for ids in published.encode_batch(texts)] == [False, False]
    assert [ids.tolist() == [tokenizer.unk_token_id] for ids in tokenizer.encode_batch(texts)] == [False, True]
    np.testing.assert_array_equal(tokenizer.as_layer()(tf.constant(texts))["input_ids"], tokenizer(texts)["input_ids"])
    tokenizer.save_pretrained(tmp_path / "saved")
    again = AlbertTokenizer.from_pretrained(tmp_path / "saved")
    assert again.vocab_hash == tokenizer.vocab_hash != published.vocab_hash
    assert read(tmp_path / "saved")["model"]["max_input_chars_per_word"] == 5


REPLACE = {"type": "Replace", "pattern": {"String": "a"}, "content": "b"}
STEPS = "the steps BertNormalizer, {} with the prefix '##' cannot"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda content: content["normalizer"]["normalizers"].append(REPLACE),
            STEPS.format("Replace, BertPreTokenizer"),
        ),
        (lambda content: content.update(pre_tokenizer={"type": "Whitespace"}), STEPS.format("Whitespace")),
        (
            lambda content: content["normalizer"]["normalizers"][0].update(clean_text=False),
            r"\(clean_text = false\) cannot be",
        ),
    ],
    ids=["normalizer", "pre-tokenizer", "not cleaned"],
)
def test_steps_of_wordpiece_that_are_not_berts_are_refused(change, message, tmp_path):
    """They would change ids in silence."""
    (tmp_path / "vocab.txt").write_text("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "##b"]))
    AlbertTokenizer.from_pretrained(tmp_path).save_pretrained(tmp_path)
    (tmp_path / "vocab.txt").unlink()
    content = read(tmp_path)
    change(content)
    with pytest.raises(ValueError, match=message):
        load(tmp_path, content)


WORDPIECE = {"type": "WordPiece", "continuing_subword_prefix": "##", "vocab": {"[UNK]": 0}}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "tokenizer.json is not valid JSON"),
        ("[]", "tokenizer.json holds list where an object"),
        ("[" * 100_000, "tokenizer.json is not valid JSON"),
        ({}, "tokenizer.json has a model of type None"),
        ({"model": {"type": "BPE"}}, "tokenizer.json has a model of type 'BPE'"),
        ({"model": {"type": "Unigram"}}, "tokenizer.json is no tokenizer of the tokenizers library"),
        ({"model": WORDPIECE}, "tokenizer.json is no WordPiece tokenizer .*normalizer"),
        ({"model": WORDPIECE | {"vocab": {"a": 5}}}, "the ids of its pieces have gaps"),
        ({"model": WORDPIECE | {"vocab": [1]}}, "tokenizer.json is no WordPiece tokenizer"),
    ],
)
def test_damaged_files_are_named(tmp_path, content, message):
    with pytest.raises(ValueError, match=message):
        load(tmp_path, content)


# === Written ===


def test_content_is_what_was_compared(tmp_path):
    AlbertTokenizer.english().save_pretrained(tmp_path)
    content = json.dumps(read(tmp_path), sort_keys=True)
    assert hashlib.sha256(content.encode()).hexdigest() == COMPARED


def test_vocabulary_clean_up_and_special_pieces(tmp_path):
    tokenizer = AlbertTokenizer.from_pretrained(TINY_MODEL)
    tokenizer.save_pretrained(tmp_path)
    content, model = read(tmp_path), tokenizer._model
    assert tuple(piece for piece, _ in content["model"]["vocab"]) == tokenizer.pieces
    split = [piece for piece, score in content["model"]["vocab"] if score < -100]
    assert split == [piece for piece in tokenizer.pieces if len(piece) > 1 and piece[-1] == "," and piece[-2].isdigit()]
    assert base64.b64decode(content["normalizer"]["precompiled_charsmap"]) == read_charsmap(model._compiled_proto)
    assert {token["id"]: token["content"] for token in content["added_tokens"]} == dict(enumerate(SPECIAL))
    config = json.loads((tmp_path / "tokenizer_config.json").read_text())
    assert config["model_input_names"] == ["input_ids", "token_type_ids", "attention_mask"]


def test_user_defined_pieces_weigh_what_sentencepiece_counts_them_with(tmp_path):
    small_tokenizer(user_defined_symbols=["한", "@usr"]).save_pretrained(tmp_path)
    scores = dict(read(tmp_path)["model"]["vocab"])
    assert (scores["@usr"], scores["한"]) == pytest.approx((0.3, 0.2))


@pytest.mark.exhaustive
# Compared with transformers on all lines of a Korean corpus; tools/parity/README.md has the counts.
@pytest.mark.parametrize("rules", ["nmt_nfkc", "identity"])
def test_loose_letters_are_put_together_where_they_are_here(tmp_path, rules):
    texts = ["밥을 먹었다 ㅋㅋㅋ", "그래 ㅋㅣ", "나는 밥을 먹는다"] * 20
    proto = train_plainly(texts, vocab_size=20, normalization_rule_name=rules)
    tokenizer = AlbertTokenizer(SentencePieceModel(proto, TokenizerOptions(keep_accents=True)))
    tokenizer.save_pretrained(tmp_path)
    together = tokenizer.tokenize("ㅋㅣ") == ["▁", "키"]
    normalizer = read(tmp_path)["normalizer"]
    assert together == (rules == "nmt_nfkc")
    assert (normalizer["type"] == "Sequence" and normalizer["normalizers"][1] == {"type": "NFC"}) == together


# transformers lowers capital letters everywhere, and so would miss "[E1]".
@pytest.mark.parametrize("settings", [{"model_type": "bpe"}, {"user_defined_symbols": ["[E1]"]}], ids=str)
def test_other_kinds_of_models_leave_no_old_file(tmp_path, settings):
    (tmp_path / "tokenizer.json").write_text("{}")
    small_tokenizer(**settings).save_pretrained(tmp_path)
    assert not (tmp_path / "tokenizer.json").exists()
    assert "tokenizer_class" not in json.loads((tmp_path / "tokenizer_config.json").read_text())
