"""Proves that ids of vocabulary files are the reference's, that Hangul survives, and what is said of wrong files."""

import json
import pickle
import time
import unicodedata

import numpy as np
import pytest

from albert_tf.tokenization import AlbertTokenizer
from albert_tf.tokenization.wordpiece.vocabulary import WordPieceOptions
from tests.tokenization.golden import AWKWARD_TEXTS, TINY_MODEL, read_lines
from tests.tokenization.wordpiece_golden import TOKENIZERS, WORD_END_PIECES, korean, korean_pieces, word_end


def _write_vocabulary(folder, pieces):
    (folder / "vocab.txt").write_text("".join(piece + "\n" for piece in pieces), encoding="utf-8")
    return folder


@pytest.mark.parametrize(("kind", "suffix"), [("reference", "lower"), ("reference_cased", "cased")])
def test_pieces_and_ids_of_every_line(kind, suffix):
    tokenizer, lines = TOKENIZERS[kind], read_lines("W1_wordpiece")
    assert len(lines) == 1102
    for line, row in zip(lines, tokenizer.encode_batch([line["text"] for line in lines]), strict=True):
        assert row.tolist() == line["ids_" + suffix]
        assert tokenizer.tokenize(line["text"]) == line["tokens_" + suffix]


@pytest.mark.parametrize(
    ("kind", "suffix", "touched", "unknown", "reference"),
    [("lower", "lower", 516, 109, 4825), ("cased", "cased", 12, 15, 25)],
)
def test_hangul_is_left_whole_and_put_together(kind, suffix, touched, unknown, reference):
    tokenizer, hangul = TOKENIZERS[kind], []
    for line in read_lines("W1_wordpiece"):
        composed = unicodedata.normalize("NFC", line["text"])
        syllables = {character for character in composed if "가" <= character <= "힣"}
        if syllables if kind == "lower" else syllables - set(line["text"]):
            hangul.append(line)
        else:
            assert tokenizer.encode(line["text"]) == line["ids_" + suffix]
    assert len(hangul) == touched
    assert sum(tokenizer.encode(line["text"]).count(1) for line in hangul) == unknown
    assert sum(line["ids_" + suffix].count(1) for line in hangul) == reference


def test_accents_are_dropped_beside_hangul():
    assert korean().tokenize("Café를") == korean().tokenize("cafe를")


def test_starts_of_words():
    starts = korean().start_of_word
    assert (~starts).sum() == 10034
    assert [bool(starts[korean().pieces.index(piece)]) for piece in ("먹", "##었다", "[MASK]")] == [True, False, True]


@pytest.mark.parametrize(
    ("text", "pieces", "bare"),
    [
        ("나는 밥을 먹었다.", "나 는_ 밥 을_ 먹었다 ._", "나 는_ 밥 을_ 먹었다 ."),
        ("먹었다", "먹었다_", "먹었다"),
        ("한글... ㅋㅋㅋ", "[UNK] ㅋㅋㅋ_", "[UNK] ㅋㅋ ㅋ"),
        ("나는", "나 는_", "나 는"),
        ("ABC É", "abc_ é_", "abc_ [UNK]"),
        ("[MASK] [UNK] a [CLS]", "[UNK] [UNK] a_ [UNK]", "[UNK] [UNK] a_ [UNK]"),
        (" ", "", ""),
    ],
)
def test_words_with_marked_ends(text, pieces, bare):
    assert " ".join(word_end().tokenize(text)) == pieces
    assert " ".join(word_end(bare_final=True).tokenize(text)) == bare


def test_padding_without_a_pad_piece_is_hidden_by_the_mask():
    inputs = word_end()(["나는 밥", "나는"])
    assert inputs["input_ids"].tolist() == [[0, 4, 5, 15, 1], [0, 4, 5, 1, 0]]
    assert inputs["attention_mask"].tolist() == [[1] * 5, [1, 1, 1, 1, 0]]
    assert word_end().pad_token_id == 0


def test_decode():
    assert korean().decode(korean()("Unaffable 먹었다!")["input_ids"][0]) == "unaffable 먹었다 !"
    for tokenizer in (word_end(), word_end(bare_final=True)):
        assert tokenizer.decode(tokenizer("나는 밥을 먹었다.")["input_ids"][0]) == "나는 밥을 먹었다."


@pytest.fixture(params=TOKENIZERS, scope="module")
def tokenizer(request):
    return TOKENIZERS[request.param]


def test_awkward_texts(tokenizer):
    special = set(np.flatnonzero(np.isin(tokenizer.pieces, ["[CLS]", "[SEP]", "[MASK]", "[PAD]"])))
    for text in AWKWARD_TEXTS:
        ids = tokenizer.encode(text)
        assert not special & set(ids)
        assert ids == [index for row in tokenizer.encode_batch([text]) for index in row.tolist()]
    for text in ("a\ud800b", b"a\xff", b"\xe2\x82"):
        assert tokenizer.encode(text) == [tokenizer.unk_token_id]


def test_a_megabyte_without_a_space_is_one_unknown_word(tokenizer):
    start = time.process_time()
    assert tokenizer.encode("x" * 1_000_000) == [tokenizer.unk_token_id]
    assert time.process_time() - start < 2.0


def test_saved_folders_and_pickles_keep_everything(tmp_path, tokenizer):
    tokenizer.save_pretrained(tmp_path)
    for copy in (AlbertTokenizer.from_pretrained(tmp_path), pickle.loads(pickle.dumps(tokenizer))):
        assert copy.vocab_hash == tokenizer.vocab_hash
        assert copy.options == tokenizer.options
        assert copy.pieces == tokenizer.pieces
    for_others = ["tokenizer.json"] if tokenizer.options.scheme == "wordpiece" else []
    assert sorted(path.name for path in tmp_path.iterdir()) == [*for_others, "tokenizer_config.json", "vocab.txt"]


def test_hash_tells_options_apart():
    assert len({tokenizer.vocab_hash for tokenizer in TOKENIZERS.values()}) == len(TOKENIZERS)


def test_what_hugging_face_reads(tmp_path):
    korean(do_lower_case=False, keep_accents=True).save_pretrained(tmp_path)
    config = json.loads((tmp_path / "tokenizer_config.json").read_text())
    assert config["tokenizer_class"] == "BertTokenizer"
    assert (config["do_lower_case"], config["strip_accents"], config["tokenize_chinese_chars"]) == (False, False, True)
    assert (config["pad_token"], config["mask_token"]) == ("[PAD]", "[MASK]")
    (tmp_path / "tokenizer_config.json").write_text(
        '{"do_lower_case": true, "strip_accents": false, "tokenize_chinese_chars": false}'
    )
    options = AlbertTokenizer.from_pretrained(tmp_path).options
    assert options == WordPieceOptions(keep_accents=True, tokenize_chinese_chars=False)


@pytest.mark.parametrize(
    ("pieces", "given", "options"),
    [
        (korean_pieces(), {}, WordPieceOptions()),
        (korean_pieces(), {"do_lower_case": False}, WordPieceOptions(do_lower_case=False, keep_accents=True)),
        (korean_pieces(), {"reference_accents": True}, WordPieceOptions(reference_accents=True)),
        (WORD_END_PIECES, {}, WordPieceOptions("word_end", keep_accents=True)),
        (WORD_END_PIECES, {"bare_final": True}, WordPieceOptions("word_end", keep_accents=True, bare_final=True)),
        (WORD_END_PIECES, {"scheme": "wordpiece"}, WordPieceOptions()),
    ],
)
def test_options_that_nobody_recorded(tmp_path, pieces, given, options):
    file = _write_vocabulary(tmp_path, pieces) / "vocab.txt"
    assert AlbertTokenizer.from_pretrained(file, **given).options == options
    assert AlbertTokenizer.from_pretrained(tmp_path, **given).options == options


def test_the_reference_keeps_accents_where_it_keeps_capital_letters(tmp_path):
    _write_vocabulary(tmp_path, ["[CLS]", "[SEP]", "[MASK]", "[UNK]", "Café", "Cafe", "cafe"])
    for options, piece in (
        ({"do_lower_case": False}, "Café"),
        ({"do_lower_case": False, "reference_accents": True}, "Café"),
        ({"reference_accents": True}, "cafe"),
    ):
        assert AlbertTokenizer.from_pretrained(tmp_path, **options).tokenize("Café") == [piece]


def test_a_byte_order_mark_is_no_part_of_the_first_piece(tmp_path):
    file = _write_vocabulary(tmp_path, WORD_END_PIECES) / "vocab.txt"
    file.write_bytes(b"\xef\xbb\xbf" + file.read_bytes())
    assert AlbertTokenizer.from_pretrained(file).pieces == WORD_END_PIECES


@pytest.mark.parametrize(
    ("content", "message"),
    [
        *(
            ("\n".join(sorted({*WORD_END_PIECES} - {name})).encode(), rf"lacks \{name[:-1]}\]")
            for name in WORD_END_PIECES[:4]
        ),
        (b"[CLS]\n[SEP]\n[MASK]\n[UNK]\na\nb\na\n", "'a' is at 4 and 6"),
        (b"", "is empty"),
        (b"[CLS]\na\xff\n", "not valid UTF-8 at byte 7"),
        (b"\xef\xbb\xbf[CLS]\na\xff\n", "not valid UTF-8 at byte 10"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_files_that_are_no_vocabulary(tmp_path, content, message):
    (tmp_path / "vocab.txt").write_bytes(content)
    with pytest.raises(ValueError, match=message):
        AlbertTokenizer.from_pretrained(tmp_path)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"scheme": "words"}, "`scheme` must be one of wordpiece, word_end"),
        ({"bare_final": True}, "`bare_final` requires scheme='word_end'"),
        ({"do_lower_case": "yes"}, "`do_lower_case` must be True or False"),
    ],
)
def test_options_that_cannot_be(tmp_path, options, message):
    _write_vocabulary(tmp_path, korean_pieces())
    with pytest.raises(ValueError, match=message):
        AlbertTokenizer.from_pretrained(tmp_path, **options)
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(options))
    with pytest.raises(ValueError, match=message):
        AlbertTokenizer.from_pretrained(tmp_path)


def test_options_of_the_other_kind(tmp_path):
    _write_vocabulary(tmp_path, WORD_END_PIECES)
    with pytest.raises(ValueError, match="Received: `reference_digit_comma` for a vocabulary file"):
        AlbertTokenizer.from_pretrained(tmp_path, reference_digit_comma=True)
    with pytest.raises(ValueError, match="Received: `scheme` for a SentencePiece model"):
        AlbertTokenizer.from_pretrained(TINY_MODEL, scheme="wordpiece")
