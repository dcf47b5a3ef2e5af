"""Proves that a trained vocabulary has ALBERT's layout, is reproducible and fits its text; bad corpora are named."""

import unicodedata

import numpy as np
import pytest
import tensorflow as tf

from albert_tf.tokenization import AlbertTokenizer, train_sentencepiece

from .golden import read_lines

SPECIAL = ("<pad>", "<unk>", "[CLS]", "[SEP]", "[MASK]")
USER_DEFINED = ("(", ")", '"', "-", ".", "–", "£", "€")
KOREAN = [
    "나는 어제 친구와 함께 밥을 먹었다.",
    "친구는 오늘 학교에 가서 책을 읽었다.",
    "어제 먹은 밥은 맛있었고 오늘 읽은 책은 재미있었다.",
    "학교에서 친구와 영화를 보았다. 영화는 재미있었다!",
]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    path = tmp_path_factory.mktemp("corpus") / "text, with comma.txt"
    texts = [line["text"] for line in read_lines("T1_tokenize")]
    path.write_text("\n".join(text for text in texts if text.isascii()), encoding="utf-8")
    return path


def test_layout_and_round_trip(corpus, tmp_path):
    report = train_sentencepiece([corpus], tmp_path, vocab_size=1000)
    tokenizer = AlbertTokenizer.from_pretrained(tmp_path)
    assert report.folder == tmp_path
    assert report.vocab_size == tokenizer.vocab_size == 1000
    assert report.num_lines == sum(bool(line.strip()) for line in corpus.read_bytes().split(b"\n"))
    assert tokenizer.pieces[:5] == SPECIAL
    assert tokenizer.pieces[5:13] == USER_DEFINED
    assert tokenizer.decode(tokenizer.encode("The Old Man (and) the sea.")) == "the old man (and) the sea."
    texts = corpus.read_text().split("\n")[:200]
    layer = tokenizer.as_layer()
    np.testing.assert_array_equal(layer(tf.constant(texts))["input_ids"], tokenizer(texts)["input_ids"])


def test_pieces_fit_the_cleaned_text(corpus, tmp_path):
    train_sentencepiece([corpus], tmp_path / "lower", vocab_size=800)
    train_sentencepiece([corpus], tmp_path / "cased", vocab_size=800, do_lower_case=False)
    lower, cased = (AlbertTokenizer.from_pretrained(tmp_path / name) for name in ("lower", "cased"))
    assert not any(any(map(str.isupper, piece)) for piece in lower.pieces[5:])
    assert any(any(map(str.isupper, piece)) for piece in cased.pieces[5:])
    assert cased.options.do_lower_case is False
    texts = corpus.read_text().split("\n")
    assert (np.concatenate(lower.encode_batch(texts)) == lower.unk_token_id).mean() < 1e-3
    assert cased.decode(cased.encode("The Man")) == "The Man"


@pytest.mark.parametrize("settings", [{}, {"model_type": "bpe"}, {"input_sentence_size": 500}], ids=str)
def test_the_same_text_gives_the_same_vocabulary(corpus, tmp_path, settings):
    for name in ("a", "b"):
        train_sentencepiece([corpus], tmp_path / name, vocab_size=600, **settings)
    assert (tmp_path / "a" / "spiece.model").read_bytes() == (tmp_path / "b" / "spiece.model").read_bytes()


@pytest.mark.parametrize("keep_accents", [False, True])
def test_korean(tmp_path, keep_accents):
    path = tmp_path / "korean.txt"
    path.write_text("\n".join(KOREAN * 20), encoding="utf-8")
    train_sentencepiece(path, tmp_path / "ko", vocab_size=54, keep_accents=keep_accents, character_coverage=1.0)
    tokenizer = AlbertTokenizer.from_pretrained(tmp_path / "ko")
    for text in KOREAN:
        assert tokenizer.decode(tokenizer.encode(text)) == text
        assert tokenizer.encode(unicodedata.normalize("NFD", text)) == tokenizer.encode(text)
        assert tokenizer.unk_token_id not in tokenizer.encode(text)


def test_training_is_quiet(corpus, tmp_path, capfd):
    train_sentencepiece([corpus], tmp_path, vocab_size=300)
    AlbertTokenizer.from_pretrained(tmp_path, keep_accents=True)
    captured = capfd.readouterr()
    assert captured.out + captured.err == ""


def test_the_largest_vocabulary_is_named_and_fits(tmp_path):
    path = tmp_path / "small.txt"
    path.write_text("one two three four five six seven eight nine ten\n" * 5)
    with pytest.raises(ValueError, match=r"vocab_size=30000; the largest that fits is (\d+)\.") as raised:
        train_sentencepiece([path], tmp_path / "out")
    largest = int(str(raised.value).rstrip(".").split()[-1])
    assert train_sentencepiece([path], tmp_path / "out", vocab_size=largest).vocab_size == largest
    with pytest.raises(ValueError, match="the smallest that fits is"):
        train_sentencepiece([path], tmp_path / "out", vocab_size=15)


def test_a_file_that_is_not_utf8_is_named_with_the_byte(tmp_path):
    (tmp_path / "good.txt").write_text("good\n", encoding="utf-8")
    (tmp_path / "bad.txt").write_bytes("first é\n".encode() + b"se\xffcond\n")
    with pytest.raises(ValueError, match=r"bad.txt', where byte 11 is no UTF-8"):
        train_sentencepiece([tmp_path / "good.txt", tmp_path / "bad.txt"], tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("content", [b"", b"\n \n\t\n", b"x" * 5000 + b"\n", b"a\0b\n"])
def test_nothing_to_learn_from(tmp_path, content):
    (tmp_path / "text.txt").write_bytes(content)
    with pytest.raises(ValueError, match="must hold text to learn from"):
        train_sentencepiece([tmp_path / "text.txt"], tmp_path / "out")


def test_only_characters_that_the_clean_up_drops(tmp_path):
    (tmp_path / "text.txt").write_text("\u0301\u0302\n" * 9, encoding="utf-8")
    with pytest.raises(ValueError, match="could not train on this text"):
        train_sentencepiece([tmp_path / "text.txt"], tmp_path / "out")


def test_skipped_lines_are_reported(corpus, tmp_path):
    path = tmp_path / "long.txt"
    path.write_bytes(corpus.read_bytes() + b"\n" + b"y" * 5000 + b"\na\0b\n")
    before, after = (train_sentencepiece([file], tmp_path / "out", vocab_size=300) for file in (corpus, path))
    assert after.num_lines - before.num_lines == after.num_skipped_lines - before.num_skipped_lines == 2


def test_arguments_that_cannot_be(tmp_path):
    with pytest.raises(ValueError, match=r"`model_type` must be one of unigram, bpe"):
        train_sentencepiece([], tmp_path, model_type="wordpiece")
    with pytest.raises(ValueError, match=r"must be files that exist. Received: 'nothing.txt'"):
        train_sentencepiece(["nothing.txt"], tmp_path)
