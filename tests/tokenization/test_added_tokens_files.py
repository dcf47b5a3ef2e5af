"""Proves that added tokens are saved and read again, as this package and as transformers write them."""

import json
import pathlib

import pytest

from albert_tf.tokenization import AlbertTokenizer
from albert_tf.tokenization.files import CONFIG_FILE, TOKENIZERS_FILE
from tests.disk import change_json
from tests.parameters import first_of
from tests.tokenization.test_added_tokens import PLAIN, TOKENIZERS, texts_with_tokens


@pytest.mark.parametrize("name", first_of(PLAIN))
def test_they_are_saved(name, tmp_path):
    tokenizer, texts = TOKENIZERS[name], texts_with_tokens()
    expected = [row.tolist() for row in tokenizer.encode_batch(texts)]
    folders = [tmp_path / "a", tmp_path / "b"]
    tokenizer.save_pretrained(folders[0])
    if (folders[0] / TOKENIZERS_FILE).is_file():  # as transformers 5 saves them
        folders[1].mkdir()
        (folders[1] / TOKENIZERS_FILE).write_bytes((folders[0] / TOKENIZERS_FILE).read_bytes())
    for folder in filter(pathlib.Path.exists, folders):
        restored = AlbertTokenizer.from_pretrained(folder)
        assert restored.added_tokens == tokenizer.added_tokens
        # A `tokenizer.json` has other scores for the pieces that the digit-comma rule splits.
        assert restored.vocab_hash == tokenizer.vocab_hash or folder.name == "b"
        assert [row.tolist() for row in restored.encode_batch(texts)] == expected


def entry(**changes):
    return {"content": "[X]", "normalized": True, **changes}


def test_a_piece_that_is_an_added_token_too_is_named(tmp_path):
    AlbertTokenizer.english().save_pretrained(tmp_path)
    entries = {"124": entry(content="the"), "4": entry(content="[MASK]", normalized=False, special=True)}
    change_json(tmp_path / CONFIG_FILE, added_tokens_decoder=entries)
    with pytest.warns(UserWarning, match="the piece 'the' as an added token too.*ids of texts with it may differ"):
        assert AlbertTokenizer.from_pretrained(tmp_path).added_tokens == {}


@pytest.mark.parametrize(
    ("config", "ids", "sentence"),
    [
        ({"30000": entry(), "2": entry(content="[CLS]", normalized=False)}, None, None),
        ({}, {"[X]": 30000, "[CLS]": 2}, None),
        ({"30001": entry()}, None, r"must follow those of the pieces, 30000.*\[30001\]"),
        ({"30000": entry(lstrip=True)}, None, r"'\[X\]' has lstrip, which is not supported"),
        ({"30000": entry(content="")}, None, "must be a string with visible characters"),
        ({"x": entry()}, None, "cannot be read.*save the tokenizer again"),
        ({}, {"[X]": None}, "cannot be read.*save the tokenizer again"),
        ([5], None, "cannot be read.*save the tokenizer again"),
    ],
    ids=str,
)
def test_files_of_transformers(tmp_path, config, ids, sentence):
    AlbertTokenizer.english().save_pretrained(tmp_path)
    change_json(tmp_path / CONFIG_FILE, added_tokens_decoder=config)
    if ids is not None:
        (tmp_path / "added_tokens.json").write_text(json.dumps(ids))
    if sentence is None:
        assert AlbertTokenizer.from_pretrained(tmp_path).added_tokens == {"[X]": 30000}
    else:
        with pytest.raises(ValueError, match=sentence):
            AlbertTokenizer.from_pretrained(tmp_path)
