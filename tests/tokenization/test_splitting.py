"""Proves that literal special pieces are plain text unless they are allowed, and then stand for their ids."""

import numpy as np
import pytest

from albert_tf.tokenization import AlbertTokenizer
from albert_tf.tokenization.files import TokenizerOptions
from albert_tf.tokenization.sentencepiece.model import SentencePieceModel
from albert_tf.tokenization.wordpiece.model import WordPieceModel
from albert_tf.tokenization.wordpiece.vocabulary import WordPieceOptions
from tests.tokenization.golden import AWKWARD_TEXTS, read_lines
from tests.tokenization.in_graph import assert_same

LITERALS = "[MASK] [CLS][SEP] <pad>x<unk> [PAD] [UNK]"
WORDS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "his", "hand", "##s", "s", ".", "[", "]", "mask", "!")


@pytest.fixture(scope="module")
def english():
    return AlbertTokenizer.english()


@pytest.fixture(scope="module")
def wordpiece():
    return AlbertTokenizer(WordPieceModel(WORDS, WordPieceOptions()))


@pytest.mark.parametrize(("allow_special", "return_offsets"), [(False, True), (True, False), (True, True)])
def test_what_is_no_text_is_named_by_its_place(english, wordpiece, allow_special, return_offsets):
    for tokenizer in (english, wordpiece):
        with pytest.raises(ValueError, match=r"Received: None \(NoneType\) at position 1"):
            tokenizer(["[MASK] a [MASK]", None], allow_special=allow_special, return_offsets=return_offsets)


def test_by_default_they_are_text_in_both_paths(english, wordpiece):
    texts = [LITERALS, "[CLS] a [SEP]", "<pad><pad>", "[ MASK ]", "[mask]", "▁[MASK]"]
    for tokenizer in (english, wordpiece):
        special = {getattr(tokenizer, f"{name}_token_id") for name in ("pad", "cls", "sep", "mask")}
        assert not special & {index for row in tokenizer.encode_batch(texts) for index in row.tolist()}
        assert_same(tokenizer, texts)
    assert english.unk_token_id not in english.encode("[MASK] [CLS] [SEP]")


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("his [MASK] sat.", ["▁his", "[MASK]", "▁sat", "."]),
        ("[MASK]", ["[MASK]"]),
        (" \t[MASK],  yes", ["[MASK]", ",", "▁yes"]),
        ("he\u3000 [MASK]s home", ["▁he", "[MASK]", "s", "▁home"]),
        ("a[CLS][SEP] <pad>b", ["▁a", "[CLS]", "[SEP]", "<pad>", "b"]),
        ("x<unk>y", ["▁x", "<unk>", "y"]),
        ("[mask] [ MASK]", None),
        ("Is it [MASK]?", ["▁is", "▁it", "[MASK]", "?"]),
        ("[MASK]漢", ["[MASK]", "<unk>"]),
    ],
)
def test_allowed_ones_stand_for_their_ids(english, text, pieces):
    ids = english.encode(text, allow_special=True)
    assert ids == ([english.pieces.index(piece) for piece in pieces] if pieces else english.encode(text))
    assert english(text, allow_special=True)["input_ids"][0, 1:-1].tolist() == ids


def test_offsets_of_special_pieces(english):
    text = "Café  [MASK]s [MASK]."
    inputs = english([text], return_offsets=True, allow_special=True)
    spans = [text[start:end] for start, end in inputs["offsets"][0, 1:-1]]
    assert spans == ["Café", "[MASK]", "s", "[MASK]", "."]


def test_texts_without_them_keep_their_ids(english):
    texts = [line["text"] for line in read_lines("T1_tokenize")] + AWKWARD_TEXTS
    texts = [text for text in texts if not any(piece in text for piece in english.pieces[:5])]
    assert len(texts) == 2686
    allowed = english.encode_batch(texts, allow_special=True)
    for row, wanted in zip(allowed, english.encode_batch(texts), strict=True):
        np.testing.assert_array_equal(row, wanted)


def test_a_cased_text_that_cleans_up_to_a_special_piece_is_none():
    model = SentencePieceModel(AlbertTokenizer.english()._model._model_proto, TokenizerOptions(do_lower_case=False))
    tokenizer = AlbertTokenizer(model)
    assert tokenizer.mask_token_id not in tokenizer.encode("［MASK］", allow_special=True)
    assert tokenizer.mask_token_id in tokenizer.encode("[MASK]", allow_special=True)


def test_between_them_a_vocabulary_file_sees_texts_of_their_own(wordpiece):
    texts = ["his [MASK]s hand.", "[MASK][SEP]", "", "hands", b"his\xff[CLS]!", "[MASK] [MASK]"]
    rows = [[WORDS[i] for i in wordpiece.encode(text, allow_special=True)] for text in texts]
    assert rows[:4] == [["his", "[MASK]", "s", "hand", "."], ["[MASK]", "[SEP]"], [], ["hand", "##s"]]
    assert rows[4][-2:] == ["[CLS]", "!"]
    inputs = wordpiece(texts[:4], return_offsets=True, allow_special=True)
    spans = [texts[0][start:end] for start, end in inputs["offsets"][0, 1:-1]]
    assert spans == ["his", "[MASK]", "s", "hand", "."]
    assert_same(wordpiece, texts, allow_special=True)
