"""Proves that Hangul comes through SentencePiece whole, with accents kept or dropped, in Python and in the graph."""

import itertools
import unicodedata

import numpy as np
import pytest
import sentencepiece
import tensorflow as tf

from albert_tf.tokenization import AlbertTokenizer, train_sentencepiece

from .test_training import KOREAN

SYLLABLES = "".join(map(chr, range(0xAC00, 0xD7A4)))
OPTIONS = list(itertools.product([False, True], repeat=2))
SETTINGS = {"pad_id": 0, "unk_id": 1, "bos_id": -1, "eos_id": -1, "control_symbols": ["[CLS]", "[SEP]", "[MASK]"]}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("hangul")
    (folder / "korean.txt").write_text("\n".join(KOREAN * 20), encoding="utf-8")
    train_sentencepiece(
        folder / "korean.txt", folder / "ko", vocab_size=54, keep_accents=True, character_coverage=1.0, heldout_share=0
    )
    return folder


@pytest.mark.parametrize(("lower", "accents"), OPTIONS)
@pytest.mark.parametrize("form", ["NFC", "NFD"])
def test_every_syllable_comes_through_the_clean_up(lower, accents, form):
    tokenizer = AlbertTokenizer.english(do_lower_case=lower, keep_accents=accents)
    cleaned = "".join(tokenizer.tokenize(unicodedata.normalize(form, SYLLABLES)))  # unknown text shows as it is
    assert cleaned == "▁" + SYLLABLES


@pytest.mark.parametrize(("lower", "accents"), OPTIONS)
def test_switches_change_no_korean_id_in_python_or_in_the_graph(folder, lower, accents):
    tokenizer = AlbertTokenizer.from_pretrained(folder / "ko", do_lower_case=lower, keep_accents=accents)
    expected = AlbertTokenizer.from_pretrained(folder / "ko").encode_batch(KOREAN)
    layer = tokenizer.as_layer()
    for form in ("NFC", "NFD"):
        texts = [unicodedata.normalize(form, text) for text in KOREAN]
        inputs = tokenizer(texts, return_offsets=True)
        np.testing.assert_array_equal(layer(tf.constant(texts))["input_ids"], inputs["input_ids"])
        for text, row, spans, ids in zip(texts, inputs["input_ids"], inputs["offsets"], expected, strict=True):
            assert row[1 : len(ids) + 1].tolist() == ids.tolist()
            assert tokenizer.unk_token_id not in row
            assert "".join(text[start:end] for start, end in spans) == text


def test_a_vocabulary_that_cannot_put_syllables_together_is_warned_of(folder):
    sentencepiece.SentencePieceTrainer.Train(
        input=str(folder / "korean.txt"), model_prefix=str(folder / "identity"), vocab_size=47, character_coverage=1.0,
        normalization_rule_name="identity", minloglevel=2, **SETTINGS,
    )  # fmt: skip
    with pytest.warns(
        UserWarning, match=r"`keep_accents` should be True .* Received: keep_accents=False for .*identity"
    ):
        broken = AlbertTokenizer.from_pretrained(folder / "identity.model")
    assert broken.unk_token_id in broken.encode(KOREAN[0])
    whole = AlbertTokenizer.from_pretrained(folder / "identity.model", keep_accents=True)
    assert whole.unk_token_id not in whole.encode(KOREAN[0])
