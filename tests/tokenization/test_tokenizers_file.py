"""Proves that the `tokenizer.json` of a saved vocabulary is the one that Hugging Face's library gave our ids with."""

import base64
import hashlib
import json

import pytest

from albert_tf.tokenization import AlbertTokenizer
from albert_tf.tokenization.model_proto import read_charsmap

from .golden import TINY_MODEL, small_tokenizer

# With this content transformers 5.23.0 (PreTrainedTokenizerFast) and 4.57.1 (AlbertTokenizerFast) gave the recorded ids
# of all 2,664 lines of T1 without a literal special piece; `make parity-peers` compares anew.
COMPARED = "f9891e84f89efad896950320e3f22223d47080dbb258c91a562a735e5b1de8f1"


def _read(folder):
    return json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))


def test_content_is_what_was_compared(tmp_path):
    AlbertTokenizer.english().save_pretrained(tmp_path)
    assert hashlib.sha256((tmp_path / "tokenizer.json").read_bytes()).hexdigest() == COMPARED


def test_vocabulary_clean_up_and_special_pieces(tmp_path):
    tokenizer = AlbertTokenizer.from_pretrained(TINY_MODEL)
    tokenizer.save_pretrained(tmp_path)
    content, model = _read(tmp_path), tokenizer._model
    assert tuple(piece for piece, _ in content["model"]["vocab"]) == tokenizer.pieces
    split = [piece for piece, score in content["model"]["vocab"] if score < -100]
    assert split == [piece for piece in tokenizer.pieces if len(piece) > 1 and piece[-1] == "," and piece[-2].isdigit()]
    rules, composition = content["normalizer"]["normalizers"]
    assert base64.b64decode(rules["precompiled_charsmap"]) == read_charsmap(model._compiled_proto)
    assert composition == {"type": "NFC"}
    added = {token["id"]: token["content"] for token in content["added_tokens"]}
    assert added == dict(enumerate(["<pad>", "<unk>", "[CLS]", "[SEP]", "[MASK]"]))
    config = json.loads((tmp_path / "tokenizer_config.json").read_text())
    assert config["model_input_names"] == ["input_ids", "token_type_ids", "attention_mask"]


def test_user_defined_pieces_weigh_what_sentencepiece_counts_them_with(tmp_path):
    small_tokenizer(user_defined_symbols=["한", "@usr"]).save_pretrained(tmp_path)
    scores = dict(_read(tmp_path)["model"]["vocab"])
    assert (scores["@usr"], scores["한"]) == pytest.approx((0.3, 0.2))


def test_rules_that_leave_letters_apart_are_no_composition(tmp_path):
    small_tokenizer(normalization_rule_name="identity").save_pretrained(tmp_path)
    assert [rule["type"] for rule in _read(tmp_path)["normalizer"]["normalizers"]] == ["Precompiled"]


# transformers lowers capital letters everywhere, and so would miss "[E1]".
@pytest.mark.parametrize("settings", [{"model_type": "bpe"}, {"user_defined_symbols": ["[E1]"]}], ids=str)
def test_other_kinds_of_models_leave_no_old_file(tmp_path, settings):
    tokenizer = small_tokenizer(**settings)
    (tmp_path / "tokenizer.json").write_text("{}")
    tokenizer.save_pretrained(tmp_path)
    assert not (tmp_path / "tokenizer.json").exists()
    assert "tokenizer_class" not in json.loads((tmp_path / "tokenizer_config.json").read_text())
