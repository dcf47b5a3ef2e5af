"""Proves that pieces keep to borders of morphemes in training as in use, and that nothing of the text is lost by it."""

import json
import pickle
import re
import sys
import unicodedata

import numpy as np
import pytest

from albert_tf.files.installation import install_command
from albert_tf.tokenization import AlbertTokenizer, train_sentencepiece
from albert_tf.tokenization.korean.kiwi import BORDER, mark_borders, segmenter_version
from tests.disk import change_json
from tests.parameters import diagonal
from tests.tokenization.golden import KOREAN

# Written by hand: nouns, particles, stems and endings of the first sentences of `KOREAN`.
MORPHEMES = ["나|는 어제 친구|와 함께 밥|을 먹|었|다|.", "친구|는 오늘 학교|에 가서 책|을 읽|었|다|."]
AWKWARD = [
    *("", " ", "\0", "가" * 1200, "\u0301\u0302", "مرحبا 나는", "👨‍👩‍👧는 좋다", "[MASK]는 말이다"),
    *("a  b\u200b나는", "ㅋㅋㅋ했엌"),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("segmented")
    text = folder / "korean.txt"
    text.write_text("\n".join(KOREAN * 20), encoding="utf-8")
    train_sentencepiece(text, folder / "ko", vocab_size=50, keep_accents=True, character_coverage=1.0, segmenter="kiwi")
    return folder / "ko"


@pytest.fixture(scope="module")
def tokenizer(folder):
    return AlbertTokenizer.from_pretrained(folder)


def test_borders_stand_between_morphemes():
    marked = mark_borders(KOREAN)
    assert [text.replace(BORDER, "") for text in marked] == KOREAN
    assert [text.replace(BORDER, "|").replace("가|서", "가서") for text in marked[:2]] == MORPHEMES


@pytest.mark.exhaustive
def test_no_piece_crosses_a_border(tokenizer):
    for text, marked in zip(KOREAN, mark_borders(KOREAN), strict=True):
        pieces = tokenizer.tokenize(text)
        ends = np.cumsum([len(piece) for piece in pieces]) - 1  # the first word start is not in the text
        borders = [place - n for n, place in enumerate(i for i, c in enumerate(marked) if c == BORDER)]
        assert set(borders) <= set(ends.tolist())
        assert "".join(pieces).replace("▁", " ").strip() == text
        assert tokenizer.decode(tokenizer.encode(text)) == text
        assert [tokenizer.pieces[index] for index in tokenizer.encode(text)] == pieces


@pytest.mark.parametrize(("text", "form"), diagonal([*KOREAN, *AWKWARD, *KOREAN], ["NFC", "NFD", "NFD"]))
def test_offsets_point_into_the_text_as_it_was_given(tokenizer, text, form):
    text = unicodedata.normalize(form, text)
    inputs = tokenizer(text, return_offsets=True, max_length=5000)
    spans = inputs["offsets"][0, 1:-1].tolist()
    assert inputs["input_ids"][0, 1:-1].tolist() == tokenizer.encode(text)
    if spans:
        assert spans[0][0] == 0 or not text[: spans[0][0]].strip()
        assert "".join(text[start:end] for start, end in spans).split() == text[spans[0][0] :].split()
    in_bytes = tokenizer(text.encode(), return_offsets=True, max_length=5000)["offsets"][0, 1:-1].tolist()
    assert [text.encode()[start:end].decode() for start, end in in_bytes] == [text[start:end] for start, end in spans]


def test_decomposed_hangul_is_analysed_like_composed(tokenizer):
    for text in KOREAN:
        assert tokenizer.encode(unicodedata.normalize("NFD", text)) == tokenizer.encode(text)


def test_what_cannot_be_read_is_unknown_and_keeps_its_place(tokenizer):
    for text in ("나는\ud800 밥을", f"나는{BORDER} 밥을", "나는\ud800 밥을".encode("utf-8", "surrogatepass")):
        assert tokenizer.encode(text).count(tokenizer.unk_token_id) >= 1
    spans = tokenizer("나는\ud800 밥을", return_offsets=True)["offsets"][0].tolist()
    assert [2, 3] in spans
    assert spans[-2][1] == 6


def test_special_pieces_stay_whole_where_a_text_may_hold_them(tokenizer):
    text = "나는 어제 [MASK]을 먹었다."
    ids = tokenizer.encode(text, allow_special=True)
    pieces = [tokenizer.pieces[index] for index in ids]
    place = pieces.index("[MASK]")
    assert pieces[place + 1] == "을"  # a particle, not the start of a word
    assert ids[:place] == tokenizer.encode("나는 어제")
    assert tokenizer.mask_token_id not in tokenizer.encode(text)
    inputs = tokenizer(text, return_offsets=True, allow_special=True)
    start, end = inputs["offsets"][0, 1 + place]
    assert text[start:end].strip() == "[MASK]"


def test_long_lines_are_analysed_in_parts(tokenizer):
    text = " ".join(KOREAN * 100)  # 8,000 characters; Kiwi itself would take time quadratic in them
    assert tokenizer.encode(text).count(tokenizer.unk_token_id) == 0
    assert tokenizer.decode(tokenizer.encode(text)) == text


def test_the_folder_says_what_was_used(folder, tokenizer, tmp_path):
    config = json.loads((folder / "tokenizer_config.json").read_text())
    assert config["segmenter"] == "kiwi"
    assert config["segmenter_version"] == segmenter_version()
    tokenizer.save_pretrained(tmp_path)
    for same in (AlbertTokenizer.from_pretrained(tmp_path), pickle.loads(pickle.dumps(tokenizer))):
        assert same.vocab_hash == tokenizer.vocab_hash
        assert same.encode(KOREAN[0]) == tokenizer.encode(KOREAN[0])
    # Read without the segmenter, as Hugging Face's tokenizers would, it gives other ids.
    assert "tokenizer_class" not in config
    assert not (folder / "tokenizer.json").exists()
    del config["segmenter"]
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
    assert AlbertTokenizer.from_pretrained(tmp_path).vocab_hash != tokenizer.vocab_hash


def test_saving_takes_away_what_hugging_face_would_read_otherwise(tokenizer, tmp_path):
    AlbertTokenizer.english().save_pretrained(tmp_path)
    assert (tmp_path / "tokenizer.json").exists()
    tokenizer.save_pretrained(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["spiece.model", "tokenizer_config.json"]


def test_another_version_is_warned_of(folder, tmp_path):
    for file in folder.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    change_json(tmp_path / "tokenizer_config.json", segmenter_version="0.1.0")
    with pytest.warns(UserWarning, match=r"pip install kiwipiepy==0\.1\.0"):
        AlbertTokenizer.from_pretrained(tmp_path)
    change_json(tmp_path / "tokenizer_config.json", segmenter="mecab")
    with pytest.raises(ValueError, match=r"`segmenter` must be 'kiwi'\. Received: segmenter='mecab'"):
        AlbertTokenizer.from_pretrained(tmp_path)


def test_a_vocabulary_without_borders_is_refused(tmp_path):
    AlbertTokenizer.english().save_pretrained(tmp_path)
    change_json(tmp_path / "tokenizer_config.json", segmenter="kiwi")
    with pytest.raises(ValueError, match="must have been trained with it"):
        AlbertTokenizer.from_pretrained(tmp_path)


def test_the_graph_is_refused_in_one_sentence(tokenizer):
    with pytest.raises(ValueError, match=r"must work without a segmenter\. Received: segmenter='kiwi'"):
        tokenizer.as_layer()


def test_without_the_package_the_cure_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "kiwipiepy", None)
    with pytest.raises(ValueError, match=re.escape(install_command("korean"))):
        segmenter_version()
