"""Proves that texts and their ids are the same on disk as in memory, are written once, and that rows need no memory."""

import resource
import tempfile
import tracemalloc

import numpy as np
import pytest

from albert_tf.data.finetuning import stored_texts
from albert_tf.data.finetuning.classification import Columns, read_texts
from albert_tf.data.finetuning.encoded import encode_texts
from albert_tf.data.finetuning.stored_texts import StoredTexts, encode_on_disk
from albert_tf.tokenization import AlbertTokenizer
from tests.toy_task import mood_rows, tokenizer

TEXTS = ["one", "", "세 번째", "\ud800 is no text", "a\nb\0"]
PAIRS = ["x", "y", "", "z z", "y"]


def test_texts_are_what_was_stored():
    texts = StoredTexts(TEXTS[:3])
    for text in TEXTS[3:]:
        assert texts[0] == "one"  # a text is added behind the last one, whichever was read
        texts.append(text)
    assert (len(texts), list(texts), texts[1:4], texts[-1]) == (5, TEXTS, TEXTS[1:4], TEXTS[-1])
    with pytest.raises(IndexError):
        texts[5]


def test_a_digest_tells_where_texts_end():
    digests = {StoredTexts(texts).digest() for texts in (["ab", "c"], ["a", "bc"], ["abc"], ["ab", "c", ""], [])}
    assert len(digests) == 5
    assert StoredTexts(TEXTS).digest() == StoredTexts(TEXTS).digest()


def assert_same(found, expected):
    for name in ("ids", "token_types", "offsets"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name), err_msg=name)
    assert (found.max_length, found.pad_token_id) == (expected.max_length, expected.pad_token_id)


@pytest.mark.parametrize("pairs", [None, PAIRS])
def test_ids_on_disk_are_those_in_memory(tmp_path, pairs):
    stored = None if pairs is None else StoredTexts(pairs)
    expected = encode_texts(tokenizer(), TEXTS, pairs, 8)
    for folder in (tmp_path / "new/ids", tmp_path / "new/ids", None):
        assert_same(encode_on_disk(tokenizer(), StoredTexts(TEXTS), stored, 8, folder), expected)


def test_texts_are_tokenized_once_for_each_thing_that_changes_their_ids(tmp_path, monkeypatch):
    calls = []
    original = stored_texts.encoded_parts
    monkeypatch.setattr(stored_texts, "encoded_parts", lambda *given: calls.append(given) or original(*given))
    texts, other = StoredTexts(TEXTS), StoredTexts(["two", *TEXTS[1:]])
    accents = AlbertTokenizer.english(keep_accents=True)
    settings = [
        (tokenizer(), texts, None, 8),
        (tokenizer(), other, None, 8),
        (tokenizer(), texts, StoredTexts(PAIRS), 8),
        (tokenizer(), texts, StoredTexts(PAIRS[::-1]), 8),
        (tokenizer(), texts, None, 7),
        (accents, texts, None, 8),
    ]
    for number, setting in enumerate(settings, start=1):
        for _ in range(2):
            assert_same(encode_on_disk(*setting, tmp_path), encode_texts(*setting))
            assert len(calls) == number


@pytest.mark.parametrize("name", ["ids", "token_types", "lengths"])
@pytest.mark.parametrize("damage", ["cut", "empty", "missing"])
def test_incomplete_files_are_written_again(tmp_path, name, damage):
    texts, expected = StoredTexts(TEXTS), encode_texts(tokenizer(), TEXTS, None, 8)
    encode_on_disk(tokenizer(), texts, None, 8, tmp_path)
    file = next(tmp_path.glob(f"*/{name}"))
    content = file.read_bytes()
    file.unlink() if damage == "missing" else file.write_bytes(content[:-4] if damage == "cut" else b"")
    assert_same(encode_on_disk(tokenizer(), texts, None, 8, tmp_path), expected)
    assert file.read_bytes() == content


@pytest.fixture
def small_disk():
    """Files cannot grow beyond 4 kB."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, limits[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, limits)


def test_a_full_disk_is_an_error_of_the_text_that_does_not_fit(small_disk):
    texts = StoredTexts(["x" * 4000])
    with pytest.raises(OSError, match=r"could not write the file \(.*\): '/") as raised:
        texts.append("y" * 100)
    assert raised.value.filename == tempfile.gettempdir()
    texts.append("z" * 90)
    assert list(texts) == ["x" * 4000, "z" * 90]


def test_a_full_disk_is_an_error_that_names_the_ids_and_leaves_nothing(tmp_path, small_disk):
    texts = StoredTexts(["words"] * 800)
    with pytest.raises(OSError, match=r"could not write the file \(.*\)") as raised:
        encode_on_disk(tokenizer(), texts, None, 64, tmp_path)
    assert raised.value.filename.startswith(str(tmp_path))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("suffix", ["tsv", "csv", "jsonl"])
def test_memory_hardly_grows_with_rows(tmp_path, suffix):
    texts = [" ".join(text for text, _ in mood_rows(5, seed)) for seed in range(40)]
    assert min(map(len, texts)) > 100

    def peak(rows):
        file = tmp_path / f"{rows}.{suffix}"
        with file.open("w", encoding="utf-8") as lines:
            mark = "\t" if suffix == "tsv" else ","
            lines.write("" if suffix == "jsonl" else f"text{mark}label\n")
            for row in range(rows):
                text, label = texts[row % 40], row % 3
                line = f'{{"text": "{text}", "label": {label}}}' if suffix == "jsonl" else f"{text}{mark}{label}"
                lines.write(line + "\n")
        tracemalloc.start()
        try:
            examples = read_texts(file, Columns())
            encoded = encode_on_disk(tokenizer(), examples.texts, None, 64, tmp_path / "ids")
            assert len(encoded) == len(examples) == rows
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    peak(1100)  # what is made once
    # Texts of more than 100 bytes take about 36 bytes: number of the line, label, place of the text, and of its ids.
    assert (peak(12_000) - peak(4_000)) / 8_000 < 60
