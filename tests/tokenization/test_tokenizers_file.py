"""Proves that the `tokenizer.json` of a saved vocabulary is the one that Hugging Face's library gave our ids with."""

import base64
import hashlib
import json

import pytest

from albert_tf.tokenization import AlbertTokenizer
from albert_tf.tokenization.files import TokenizerOptions
from albert_tf.tokenization.sentencepiece.model import SentencePieceModel
from albert_tf.tokenization.sentencepiece.proto import read_charsmap

from .golden import TINY_MODEL, small_tokenizer, train_plainly

# With this content transformers 5.23.0 (PreTrainedTokenizerFast) and 4.57.1 (AlbertTokenizerFast) gave the recorded ids
# of all 2,664 lines of T1 without a literal special piece; `make parity-peers` compares anew.
COMPARED = "6edf21a7c2f970a6ff97cca1ebdddaa2a2c0445c9199d5f4c68dee8bd48716ec"


def _read(folder):
    return json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))


def test_content_is_what_was_compared(tmp_path):
    AlbertTokenizer.english().save_pretrained(tmp_path)
    content = json.dumps(_read(tmp_path), sort_keys=True)
    assert hashlib.sha256(content.encode()).hexdigest() == COMPARED


def test_vocabulary_clean_up_and_special_pieces(tmp_path):
    tokenizer = AlbertTokenizer.from_pretrained(TINY_MODEL)
    tokenizer.save_pretrained(tmp_path)
    content, model = _read(tmp_path), tokenizer._model
    assert tuple(piece for piece, _ in content["model"]["vocab"]) == tokenizer.pieces
    split = [piece for piece, score in content["model"]["vocab"] if score < -100]
    assert split == [piece for piece in tokenizer.pieces if len(piece) > 1 and piece[-1] == "," and piece[-2].isdigit()]
    assert base64.b64decode(content["normalizer"]["precompiled_charsmap"]) == read_charsmap(model._compiled_proto)
    added = {token["id"]: token["content"] for token in content["added_tokens"]}
    assert added == dict(enumerate(["<pad>", "<unk>", "[CLS]", "[SEP]", "[MASK]"]))
    config = json.loads((tmp_path / "tokenizer_config.json").read_text())
    assert config["model_input_names"] == ["input_ids", "token_type_ids", "attention_mask"]


def test_user_defined_pieces_weigh_what_sentencepiece_counts_them_with(tmp_path):
    small_tokenizer(user_defined_symbols=["한", "@usr"]).save_pretrained(tmp_path)
    scores = dict(_read(tmp_path)["model"]["vocab"])
    assert (scores["@usr"], scores["한"]) == pytest.approx((0.3, 0.2))


@pytest.mark.exhaustive
# Compared with transformers on all lines of a Korean corpus; tools/parity/README.md has the counts.
@pytest.mark.parametrize("rules", ["nmt_nfkc", "identity"])
def test_loose_letters_are_put_together_where_they_are_here(tmp_path, rules):
    texts = ["밥을 먹었다 ㅋㅋㅋ", "그래 ㅋㅣ", "나는 밥을 먹는다"] * 20
    proto = train_plainly(texts, vocab_size=20, normalization_rule_name=rules)
    options = TokenizerOptions(keep_accents=True)
    tokenizer = AlbertTokenizer(SentencePieceModel(proto, options))
    tokenizer.save_pretrained(tmp_path)
    together = tokenizer.tokenize("ㅋㅣ") == ["▁", "키"]
    normalizer = _read(tmp_path)["normalizer"]
    assert together == (rules == "nmt_nfkc")
    assert (normalizer["type"] == "Sequence" and normalizer["normalizers"][1] == {"type": "NFC"}) == together


# transformers lowers capital letters everywhere, and so would miss "[E1]".
@pytest.mark.parametrize("settings", [{"model_type": "bpe"}, {"user_defined_symbols": ["[E1]"]}], ids=str)
def test_other_kinds_of_models_leave_no_old_file(tmp_path, settings):
    tokenizer = small_tokenizer(**settings)
    (tmp_path / "tokenizer.json").write_text("{}")
    tokenizer.save_pretrained(tmp_path)
    assert not (tmp_path / "tokenizer.json").exists()
    assert "tokenizer_class" not in json.loads((tmp_path / "tokenizer_config.json").read_text())
