"""Proves that a trained WordPiece vocabulary has BERT's layout, joins the most frequent pairs and fits its text."""

from collections import Counter

import numpy as np
import pytest

from albert_tf.tokenization import AlbertTokenizer, train_sentencepiece, train_wordpiece
from tests.small_pipeline import NOVEL

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    path = tmp_path_factory.mktemp("corpus") / "text.txt"
    path.write_text(NOVEL.read_text(encoding="utf-8")[:120_000], encoding="utf-8")
    return path


def test_layout_and_round_trip(corpus, tmp_path):
    report = train_wordpiece([corpus], tmp_path, vocab_size=900)
    tokenizer = AlbertTokenizer.from_pretrained(tmp_path)
    assert (report.model_type, report.vocab_size, tokenizer.vocab_size) == ("wordpiece", 900, 900)
    assert tokenizer.pieces[:5] == SPECIAL
    assert len(set(tokenizer.pieces)) == 900
    assert tokenizer.decode(tokenizer.encode("The captain had been struck")) == "the captain had been struck"
    assert not any(any(map(str.isupper, piece)) for piece in tokenizer.pieces[5:])
    lines = corpus.read_text(encoding="utf-8").split("\n")
    assert (np.concatenate(tokenizer.encode_batch(lines)) == tokenizer.unk_token_id).mean() < 1e-3
    assert report.unknown_rate < 0.01
    assert 2 < report.characters_per_token < 5


def test_the_most_frequent_pairs_are_joined_first(tmp_path):
    words = Counter({"hug": 40, "pug": 21, "pun": 13, "bun": 7, "hugs": 5})
    path = tmp_path / "text.txt"
    path.write_text("\n".join([" ".join(words.elements())] * 2), encoding="utf-8")
    train_wordpiece(path, tmp_path, vocab_size=18, heldout_share=0)
    pieces = (tmp_path / "vocab.txt").read_text(encoding="utf-8").split()
    # u and g stand together 66 times, then h and ug 45 times, p and ug 21, u and n 20, p and un 13, b and un 7.
    joined = ["##ug", "hug", "pug", "##un", "pun", "bun"]
    assert pieces == [*SPECIAL, *joined, "##u", "##g", "h", "p", "##n", "b", "##s"]


@pytest.mark.parametrize("settings", [{}, {"input_sentence_size": 300}], ids=str)
def test_the_same_text_gives_the_same_vocabulary(corpus, tmp_path, settings):
    for name in ("a", "b"):
        train_wordpiece(corpus, tmp_path / name, vocab_size=400, **settings)
    assert (tmp_path / "a" / "vocab.txt").read_bytes() == (tmp_path / "b" / "vocab.txt").read_bytes()


def test_hangul_stays_whole_with_and_without_accents(tmp_path):
    path = tmp_path / "ko.txt"
    path.write_text("나는 어제 친구와 밥을 먹었다.\n친구는 café에서 책을 읽었다.\n" * 9, encoding="utf-8")
    for keep_accents in (True, False):
        report = train_wordpiece(path, tmp_path, 50, keep_accents=keep_accents, heldout_share=0.2)
        tokenizer = AlbertTokenizer.from_pretrained(tmp_path)
        assert report.unknown_rate == 0
        assert tokenizer.options.keep_accents is keep_accents
        text = "친구는 café에서 밥을 먹었다"
        assert tokenizer.decode(tokenizer.encode(text)) == (text if keep_accents else text.replace("é", "e"))


def test_user_defined_symbols_are_pieces_once(corpus, tmp_path):
    # "the" would be learnt anyway, "treasur" is a part of a word, "zzz" is not in the text.
    symbols = ["the", "treasur", "zzz"]
    train_wordpiece(corpus, tmp_path, vocab_size=500, user_defined_symbols=symbols)
    tokenizer = AlbertTokenizer.from_pretrained(tmp_path)
    assert tokenizer.pieces[5:8] == tuple(symbols)
    assert len(set(tokenizer.pieces)) == 500
    assert tokenizer.tokenize("the zzz") == ["the", "zzz"]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"user_defined_symbols": ["ok", "[E1]"]}, r"one word after the clean-up. .* becomes \['\[', 'e1', '\]'\]"),
        ({"user_defined_symbols": ["[PAD]"]}, r"must not name special pieces, .* with '\[PAD\]'"),
        ({"vocab_size": 3}, "`vocab_size` must be an integer"),  # fewer than the special ones
    ],
)
def test_options_that_cannot_be(corpus, tmp_path, wrong, message):
    with pytest.raises(ValueError, match=message):
        train_wordpiece(corpus, tmp_path / "out", **wrong)


def test_awkward_text_does_no_harm(tmp_path):
    path = tmp_path / "text.txt"
    odd = f"a▁b ▁ \u2047 <unk> [UNK] a\tb {'x' * 300} \U000f0000\U000f0001 ##b 日本 👩\u200d👩\u200d👧"
    path.write_text(f"{odd}\n" * 9, encoding="utf-8")
    report = train_wordpiece(path, tmp_path, 36, heldout_share=0.3, character_coverage=1.0)
    tokenizer = AlbertTokenizer.from_pretrained(tmp_path)
    assert tokenizer.pieces[:5] == SPECIAL
    # All but the word of 300 characters.
    assert tokenizer.encode(odd).count(tokenizer.unk_token_id) == 1
    assert report.num_heldout_lines == 2


def test_a_folder_holds_one_vocabulary(corpus, tmp_path):
    train_sentencepiece(corpus, tmp_path / "pieces", 300)
    train_wordpiece(corpus, tmp_path / "words", 300)
    with pytest.raises(ValueError, match=r"already has the vocabulary spiece.model, so vocab.txt cannot"):
        train_wordpiece("not read", tmp_path / "pieces")
    with pytest.raises(ValueError, match=r"already has the vocabulary vocab.txt, so spiece.model cannot"):
        train_sentencepiece("not read", tmp_path / "words")
    with pytest.raises(ValueError, match="already has the vocabulary"):
        AlbertTokenizer.from_pretrained(tmp_path / "words").save_pretrained(tmp_path / "pieces")
    train_wordpiece(corpus, tmp_path / "words", 310)
    assert AlbertTokenizer.from_pretrained(tmp_path / "words").vocab_size == 310
