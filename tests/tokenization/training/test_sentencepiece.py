"""Proves that a trained vocabulary has ALBERT's layout, is reproducible and fits its text; bad corpora are named."""

import itertools
import json
import re
import unicodedata
from dataclasses import asdict
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest

from albert_tf.tokenization import AlbertTokenizer, train_sentencepiece
from albert_tf.tokenization.files import english_model_file
from albert_tf.tokenization.sentencepiece.model import SentencePieceModel
from albert_tf.tokenization.training.sentencepiece import report_vocabulary
from tests.parameters import first_of
from tests.tokenization.golden import KOREAN, read_lines
from tests.tokenization.in_graph import assert_same

SPECIAL = ("<pad>", "<unk>", "[CLS]", "[SEP]", "[MASK]")
USER_DEFINED = ("(", ")", '"', "-", ".", "–", "£", "€")


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    path = tmp_path_factory.mktemp("corpus") / "text, with comma.txt"
    texts = [line["text"] for line in read_lines("T1_tokenize")]
    path.write_text("\n".join(text for text in texts if text.isascii()), encoding="utf-8")
    return path


def test_layout_and_round_trip(corpus, tmp_path):
    report = train_sentencepiece([corpus], tmp_path, vocab_size=1000)
    tokenizer = AlbertTokenizer.from_pretrained(tmp_path)
    assert (report.folder, report.model_type) == (tmp_path, "unigram")
    assert report.vocab_size == tokenizer.vocab_size == 1000
    assert report.num_lines == sum(bool(line.strip()) for line in corpus.read_bytes().decode().split("\n"))
    assert report.num_training_lines + report.num_heldout_lines == report.num_lines - report.num_skipped_lines
    assert 2 < report.characters_per_token < 5
    assert report.unknown_rate < 1e-3
    written = json.loads((tmp_path / "vocabulary_report.json").read_text())
    assert written == {name: value for name, value in asdict(report).items() if name != "folder"}
    assert tokenizer.pieces[:5] == SPECIAL
    assert tokenizer.pieces[5:13] == USER_DEFINED
    assert tokenizer.decode(tokenizer.encode("The Old Man (and) the sea.")) == "the old man (and) the sea."
    assert_same(tokenizer, corpus.read_text().split("\n")[:200])


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


@pytest.mark.parametrize("settings", first_of([{"input_sentence_size": 500}, {"model_type": "bpe"}]), ids=str)
def test_the_same_text_gives_the_same_vocabulary(corpus, tmp_path, settings):
    for name in ("a", "b"):
        train_sentencepiece([corpus], tmp_path / name, vocab_size=600, **settings)
    assert (tmp_path / "a" / "spiece.model").read_bytes() == (tmp_path / "b" / "spiece.model").read_bytes()


def test_sums_of_scores_are_exact(corpus, tmp_path):
    train_sentencepiece([corpus], tmp_path, vocab_size=600)
    scores = np.array(AlbertTokenizer.from_pretrained(tmp_path)._model._scores(), np.float32)
    assert scores.min() < -8
    assert len(np.unique(scores)) > 100
    drawn = np.random.default_rng(0).choice(scores, 5000)
    assert np.cumsum(drawn, dtype=np.float32)[-1] == drawn.astype(float).sum()


def test_a_seed_draws_the_lines(corpus, tmp_path):
    for seed in (1, 2):
        train_sentencepiece(corpus, tmp_path / str(seed), vocab_size=300, input_sentence_size=300, seed=seed)
    first, second = (AlbertTokenizer.from_pretrained(tmp_path / str(seed)) for seed in (1, 2))
    assert first.vocab_hash != second.vocab_hash


# Symbols that the clean-up would change, that it would not, that begin alike, and of another script.
SYMBOLS = ["[E1]", "[e2]", "@usr", "@usr2", "covid", "É!", "ㅋㅋ"]
WITH_SYMBOLS = ["hi [E1] there", "x[E1]y", "[e1] [E2]z", "COVID, covid19", "@usr @usr2 @usr23", "caf É! É", "ㅋㅋㅋ ㅋ"]


@pytest.mark.parametrize(("model_type", "symbols"), first_of([("unigram", SYMBOLS), ("bpe", SYMBOLS[1:5])]))
def test_user_defined_symbols_stay_whole(corpus, tmp_path, model_type, symbols):
    train_sentencepiece(corpus, tmp_path, vocab_size=500, model_type=model_type, user_defined_symbols=symbols)
    tokenizer = AlbertTokenizer.from_pretrained(tmp_path)
    assert tokenizer.pieces[5 : 13 + len(symbols)] == (*USER_DEFINED, *symbols)
    for symbol in symbols:
        text = f"the man {symbol} sat{symbol} by {symbol}."
        assert tokenizer.tokenize(text).count(symbol) == 3
        spans = tokenizer(text, return_offsets=True)
        at = spans["offsets"][spans["input_ids"] == tokenizer.pieces.index(symbol)]
        assert [text[start:end] for start, end in at] == [symbol] * 3
    assert "@usr2" in tokenizer.tokenize("an @usr23")
    assert_same(tokenizer, [*WITH_SYMBOLS, *map(" ".join, itertools.permutations(WITH_SYMBOLS, 2))])


BYTES = ["a 😀 b", "x👩‍👩‍👧y", "한글 é", "\u0301", "", "~^`", "日本語", "𝒳"]


@pytest.mark.parametrize("model_type", ["unigram", "bpe"])
def test_byte_fallback_leaves_nothing_unknown(corpus, tmp_path, model_type):
    options = {"model_type": model_type, "byte_fallback": True, "keep_accents": True, "heldout_files": corpus}
    report = train_sentencepiece(corpus, tmp_path, vocab_size=600, **options)
    tokenizer = AlbertTokenizer.from_pretrained(tmp_path)
    assert report.unknown_rate == 0
    assert sum(piece.startswith("<0x") for piece in tokenizer.pieces) == 256
    assert tokenizer.tokenize("a 😀")[-4:] == ["<0xF0>", "<0x9F>", "<0x98>", "<0x80>"]
    for text in ("a 😀 b", "한글 é", "日本語"):
        assert tokenizer.decode(tokenizer.encode(text)) == text
    assert tokenizer.unk_token_id not in np.concatenate(tokenizer.encode_batch([*BYTES, b"a\xff", "\ud800"]))
    assert_same(tokenizer, BYTES)
    # Bytes of a character share its span and its word.
    text = "man😀글 x"
    encoded = tokenizer(text, return_offsets=True)
    ids, spans = encoded["input_ids"][0, 1:-1], encoded["offsets"][0, 1:-1]
    of_bytes = np.flatnonzero([tokenizer.pieces[index].startswith("<0x") for index in ids])
    first = of_bytes[0]
    assert list(of_bytes) == list(range(first, first + 7))
    assert spans[of_bytes].tolist() == [[3, 4]] * 4 + [[4, 5]] * 3
    assert tokenizer.start_of_word[ids[of_bytes]].tolist() == [True, False, False, False, True, False, False]


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


def test_what_coverage_leaves_out_is_no_piece(tmp_path):
    path = tmp_path / "text.txt"
    path.write_text("the old man and the sea\n" * 100 + "漢\n", encoding="utf-8")
    for coverage, covered in ((0.98, False), (1.0, True)):
        train_sentencepiece(path, tmp_path / str(coverage), vocab_size=25, character_coverage=coverage)
        pieces = AlbertTokenizer.from_pretrained(tmp_path / str(coverage)).pieces
        assert any("漢" in piece for piece in pieces) == covered
        assert any("m" in piece for piece in pieces)


def test_training_is_quiet(corpus, tmp_path, capfd):
    train_sentencepiece([corpus], tmp_path, vocab_size=300)
    AlbertTokenizer.from_pretrained(tmp_path, keep_accents=True)
    captured = capfd.readouterr()
    assert captured.out + captured.err == ""


def test_the_largest_and_the_smallest_vocabulary_are_named_and_fit(tmp_path):
    path = tmp_path / "small.txt"
    path.write_text("one two three four five six seven eight nine ten\n" * 5)
    for size, named in (
        (30000, r"vocab_size=30000; the largest that fits is (\d+)\."),
        (15, r"the smallest that fits is (\d+), or"),
    ):
        with pytest.raises(ValueError, match=named) as raised:
            train_sentencepiece([path], tmp_path / "out", vocab_size=size)
        fits = int(re.search(named, str(raised.value))[1])
        assert train_sentencepiece([path], tmp_path / "out", vocab_size=fits).vocab_size == fits


@pytest.mark.parametrize(
    ("lines", "figures"),
    [
        # "▁hello", "▁world" and "▁" and one unknown token for both characters of Hangul.
        (["Hello world", "hello 한글"] * 600, (1200, 1 / 5, 19 / 5)),
        ([], (0, None, None)),
        (["\u0301"], (1, None, None)),  # it becomes no token
    ],
)
def test_unknown_tokens_and_their_length_are_counted(lines, figures, tmp_path):
    model = SentencePieceModel(english_model_file().read_bytes())
    text = SimpleNamespace(num_lines=3, num_skipped_lines=1, num_training_lines=2, heldout=lines)
    report = report_vocabulary(tmp_path, "unigram", model, text)
    assert (report.num_heldout_lines, report.unknown_rate, report.characters_per_token) == figures


def test_a_folder_holds_one_vocabulary(tmp_path):
    (tmp_path / "vocab.txt").write_text("\n".join(("[CLS]", "[SEP]", "[MASK]", "[UNK]")))
    for write in (partial(train_sentencepiece, "not read"), AlbertTokenizer.english().save_pretrained):
        with pytest.raises(ValueError, match=r"already has the vocabulary vocab.txt, so spiece.model cannot"):
            write(tmp_path)
    AlbertTokenizer.english().save_pretrained(tmp_path / "pieces")
    with pytest.raises(ValueError, match=r"already has the vocabulary spiece.model, so vocab.txt cannot"):
        AlbertTokenizer.from_pretrained(tmp_path).save_pretrained(tmp_path / "pieces")


NOT_UTF8 = "first é\n".encode() + b"se\xffcond\n"
NO_LINE = "without a line to learn from"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (NOT_UTF8, "bad.txt is not UTF-8: byte 0xff at byte offset 11"),
        *((content, NO_LINE) for content in (b"", b"\n \n\t\n", b"x" * 5000 + b"\n", b"a\0b\n")),
        ("\u0301\u0302\n".encode() * 9, "could not train on this text"),  # the clean-up drops them
    ],
)
def test_texts_that_cannot_be_learnt_from(tmp_path, content, message):
    (tmp_path / "good.txt").write_text("good\n", encoding="utf-8")
    (tmp_path / "bad.txt").write_bytes(content)
    names = ["good.txt", "bad.txt"] if content == NOT_UTF8 else ["bad.txt"]
    with pytest.raises(ValueError, match=message):
        train_sentencepiece([tmp_path / name for name in names], tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        *(({"character_coverage": value}, f"between 0.98 and 1.0. Received: .*={value}") for value in (0.5, 1.5)),
        ({"user_defined_symbols": ["@a", "[CLS]"]}, r"must not name special pieces, .* with '\[CLS\]'; leave it out"),
        ({"user_defined_symbols": ["@a", "<unk>"]}, r"must not name special pieces, .* with '<unk>'"),
        ({"user_defined_symbols": ["a b"]}, r"must be text without white space. Received: .* with 'a b'"),
        ({"user_defined_symbols": [""]}, r"must be text without white space. Received: .* with ''"),
        *(({"vocab_size": size}, rf"must be an integer .* Received: vocab_size={size}\.") for size in (0, 2**31)),
        ({"byte_fallback": True}, r"`vocab_size` must be large enough .* the smallest that fits is \d+, or lower"),
        ({"model_type": "wordpiece"}, "`model_type` must be one of unigram, bpe"),
        ({"input_files": ["nothing.txt"]}, "must be files that exist. Received: 'nothing.txt'"),
    ],
    ids=str,
)
def test_options_that_cannot_be(corpus, tmp_path, wrong, message):
    with pytest.raises(ValueError, match=message):
        train_sentencepiece(**{"input_files": corpus, "folder": tmp_path / "out", "vocab_size": 250, **wrong})
    assert not (tmp_path / "out").exists()
