"""Proves which vocabulary of a folder is taken with which settings, and what is said of folders without one."""

import json

import pytest
import sentencepiece

from albert_tf.tokenization import AlbertTokenizer
from albert_tf.tokenization.files import TokenizerOptions, english_model_file
from tests.tokenization.golden import TINY_MODEL
from tests.tokenization.wordpiece_golden import WORD_END_PIECES


def test_saved_folder(tmp_path):
    folder = tmp_path / "new" / "folder"
    AlbertTokenizer.english(do_lower_case=False, keep_accents=True).save_pretrained(folder)
    assert sorted(path.name for path in folder.iterdir()) == ["spiece.model", "tokenizer.json", "tokenizer_config.json"]
    assert (folder / "spiece.model").read_bytes() == english_model_file().read_bytes()
    config = json.loads((folder / "tokenizer_config.json").read_text())
    assert config["tokenizer_class"] == "AlbertTokenizer"
    assert (config["do_lower_case"], config["keep_accents"], config["remove_space"]) == (False, True, True)
    loaded = AlbertTokenizer.from_pretrained(folder)
    assert loaded.options == TokenizerOptions(do_lower_case=False, keep_accents=True)
    assert AlbertTokenizer.from_pretrained(folder, do_lower_case=True).options.do_lower_case is True


@pytest.mark.parametrize("name", ["spiece.model", "30k-clean.model", "anything.model"])
def test_folder_with_one_model(tmp_path, name):
    (tmp_path / name).write_bytes(TINY_MODEL.read_bytes())
    (tmp_path / "tokenizer_config.json").write_text('{"model_max_length": 512}')
    assert AlbertTokenizer.from_pretrained(tmp_path).options == TokenizerOptions()
    assert AlbertTokenizer.from_pretrained(str(tmp_path / name)).vocab_size == 500


def test_of_several_vocabularies_the_model_comes_first(tmp_path):
    (tmp_path / "tokenizer.json").write_text("{")
    (tmp_path / "vocab_chinese.txt").write_text("\n".join(WORD_END_PIECES), encoding="utf-8")
    assert AlbertTokenizer.from_pretrained(tmp_path).vocab_size == len(WORD_END_PIECES)
    (tmp_path / "spiece.model").write_bytes(TINY_MODEL.read_bytes())
    assert AlbertTokenizer.from_pretrained(tmp_path).vocab_size == 500


def test_path_without_a_model(tmp_path):
    with pytest.raises(ValueError, match=r"There is no vocabulary at .*nothing; pass a SentencePiece file"):
        AlbertTokenizer.from_pretrained(tmp_path / "nothing")
    with pytest.raises(ValueError, match=r"no \*.model, \*vocab"):
        AlbertTokenizer.from_pretrained(tmp_path)
    for name in ("a.model", "b.model"):
        (tmp_path / name).write_bytes(TINY_MODEL.read_bytes())
    with pytest.raises(ValueError, match=r"a.model, b.model"):
        AlbertTokenizer.from_pretrained(tmp_path)


@pytest.mark.parametrize(
    ("symbols", "message"),
    [
        ({}, r"lacks <pad>, \[CLS\], \[SEP\], \[MASK\]"),
        (  # a word of the text
            {"pad_id": 0, "unk_id": 1, "control_symbols": ["[SEP]", "[MASK]"], "model_type": "word"}
            | {"add_dummy_prefix": False},
            r"where \[CLS\] are not",
        ),
    ],
)
def test_model_without_albert_s_special_pieces(tmp_path, symbols, message):
    settings = {"bos_id": -1, "eos_id": -1, "minloglevel": 2, "vocab_size": 30, "hard_vocab_limit": False} | symbols
    sentencepiece.SentencePieceTrainer.Train(
        sentence_iterator=iter(["[CLS] one two three four five six"] * 9), model_prefix=str(tmp_path / "m"), **settings
    )
    with pytest.raises(ValueError, match=message):
        AlbertTokenizer.from_pretrained(tmp_path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "is not valid JSON"),
        ("[]", "holds list"),
        ('{"do_lower_case": 1}', "`do_lower_case` must be True or False"),
        *((f'{{"segmenter": {value}}}', "`segmenter` must be") for value in ("5", '["kiwi"]')),
    ],
)
def test_settings_are_refused(tmp_path, content, message):
    (tmp_path / "spiece.model").write_bytes(TINY_MODEL.read_bytes())
    (tmp_path / "tokenizer_config.json").write_text(content)
    with pytest.raises(ValueError, match=message):
        AlbertTokenizer.from_pretrained(tmp_path)


@pytest.mark.parametrize("name", ["spiece.model", "vocab.txt", "tokenizer.json"])
def test_what_is_too_large_is_not_read(name, tmp_path):
    with (tmp_path / name).open("wb") as sparse:
        sparse.truncate(1 << 40)
    with pytest.raises(ValueError, match=rf"{name} is larger than"):
        AlbertTokenizer.from_pretrained(tmp_path / name)
