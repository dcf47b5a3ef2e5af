"""Proves that ids on disk are those in memory, and that neither they nor rows need memory."""

import contextlib
import itertools
import tempfile
import tracemalloc

import numpy as np
import pandas
import pytest

from albert_tf.data.finetuning import encoded, stored_arrays
from albert_tf.data.finetuning.classification import read_texts
from albert_tf.data.finetuning.encoded import encode_texts
from albert_tf.data.finetuning.stored_rows import StoredRows
from albert_tf.tasks.multiple_choice.choices import ChoiceQuestion, encode_choices
from albert_tf.tasks.multiple_choice.files import read_choices
from albert_tf.tasks.question_answering.questions import Question, encode_questions
from albert_tf.tasks.token_classification.files import read_tagged
from albert_tf.tasks.token_classification.tagged import TaggedText, encode_tagged
from albert_tf.tokenization import AlbertTokenizer
from tests.data.written import write_rows
from tests.disk import full_disk
from tests.toy_task import mood_rows, tokenizer

TEXTS = ["one", "", "세 번째", "\ud800 is no text", "a\nb\0"]
# Texts of several windows.
LONG = [" ".join(text for text, _ in mood_rows(length, seed)) for seed, length in enumerate((3, 1, 2, 3))]
CHOICES = [
    ChoiceQuestion(f"q{n}", LONG[n // 3], "Who _ ?", (f"a{n}", "b"), n % 2, "middle" if n else "") for n in range(12)
]
QUESTIONS = [
    Question(f"q{n}", f"Who is {n}?", LONG[n // 3], (LONG[n // 3][:3],) * (n % 2), (0,) * (n % 2)) for n in range(12)
]
TAGGED = [
    TaggedText("1", "one two", ((0, 3), (4, 7)), ("B-X", "O")),
    TaggedText("2", ""),
    *(TaggedText(str(n), text, spans=((4, 9, "X"),)) for n, text in enumerate(LONG)),
]
# For each kind of example: rows, how they are tokenized, and settings.
KINDS = {
    "texts": (TEXTS, lambda vocabulary, rows, length: encode_texts(vocabulary, rows, None, length), (8,)),
    "choices": (CHOICES, encode_choices, (40, 8)),
    "questions": (QUESTIONS, encode_questions, (40, 8, 5)),
    "tags": (TAGGED, encode_tagged, (["O", "B-X", "I-X"], 20, 8)),
}
# For each kind of example that is read from a file: how, and a row of a passage.
FILES = {
    "choices": (read_choices, lambda text: {"context": text, "question": "Who?", "choices": ["a", "b"], "label": 1}),
    "tags": (read_tagged, lambda text: {"words": text.split()[:12], "tags": ["O"] * len(text.split()[:12])}),
}


def assert_same(found, expected):
    """Compares all fields of dataclasses."""
    for name, value in vars(expected).items():
        own = getattr(found, name)
        if isinstance(value, encoded.EncodedTexts):
            assert_same(own, value)
        elif name in ("questions", "texts"):
            assert list(own) == list(value)
        elif isinstance(value, stored_arrays.Ragged):
            assert [(row.dtype, row.tolist()) for row in own] == [(row.dtype, row.tolist()) for row in value], name
        else:
            np.testing.assert_array_equal(own, value, err_msg=name)


def write_passages(folder, kind, rows):
    """A file with a passage for three rows."""
    passages = [" ".join(text for text, _ in mood_rows(5, seed)) for seed in range(40)]
    return write_rows(folder, [FILES[kind][1](f"{row // 3} {passages[row // 3 % 40]}") for row in range(rows)])


@pytest.fixture
def on_disk(monkeypatch):
    """Puts small arrays on disk, too."""
    monkeypatch.setattr(stored_arrays, "_IN_MEMORY", 0)


@pytest.mark.parametrize("kind", KINDS)
def test_ids_on_disk_are_those_in_memory(monkeypatch, kind):
    rows, encode, settings = KINDS[kind]
    expected = encode(tokenizer(), rows, *settings)
    for name in ("_TEXTS_AT_ONCE", "_ROWS_AT_ONCE"):
        monkeypatch.setattr(encoded, name, 4)
    for limit in (1 << 24, 0):
        monkeypatch.setattr(stored_arrays, "_IN_MEMORY", limit)
        for given in (rows, StoredRows(rows)):
            assert_same(encode(tokenizer(), given, *settings), expected)


@pytest.mark.parametrize("kind", ["choices", "questions"])
def test_passages_are_tokenized_once_for_neighbouring_rows(monkeypatch, kind):
    passages = []

    def counted(original):
        return lambda self, texts, *given, **options: passages.extend(texts) or original(self, texts, *given, **options)

    for name in ("encode_batch", "__call__"):
        monkeypatch.setattr(AlbertTokenizer, name, counted(getattr(AlbertTokenizer, name)))
    monkeypatch.setattr(encoded, "_ROWS_AT_ONCE", 2)
    rows, encode, settings = KINDS[kind]
    encode(tokenizer(), rows, *settings)
    assert [text for text in passages if text in LONG] == LONG


def test_a_full_disk_is_an_error_that_names_the_folder(on_disk):
    with pytest.raises(OSError, match=r"could not write the file \(.*\)") as raised, full_disk(4096):
        encode_texts(tokenizer(), ["words"] * 2000, None, 64)
    assert raised.value.filename == tempfile.gettempdir()


@contextlib.contextmanager
def peak_memory():
    """Appends the most bytes that Python's objects and arrays took."""
    used = []
    tracemalloc.start()
    try:
        yield used
        used.append(tracemalloc.get_traced_memory()[1])
    finally:
        tracemalloc.stop()


@pytest.mark.exhaustive
@pytest.mark.parametrize("suffix", ["tsv", "csv", "jsonl"])
def test_memory_hardly_grows_with_rows_of_tables(tmp_path, on_disk, suffix):
    texts = [" ".join(text for text, _ in mood_rows(5, seed)) for seed in range(40)]
    assert min(map(len, texts)) > 100

    def peak(rows):
        table = pandas.DataFrame({"text": itertools.islice(itertools.cycle(texts), rows), "label": 1})
        if suffix == "jsonl":
            table.to_json(tmp_path / "a.jsonl", orient="records", lines=True)
        else:
            table.to_csv(tmp_path / f"a.{suffix}", index=False, sep="\t" if suffix == "tsv" else ",")
        with peak_memory() as used:
            examples = read_texts(tmp_path / f"a.{suffix}")
            ids = encode_texts(tokenizer(), examples.texts, None, 64)
            assert len(ids) == len(examples) == rows
        return used[0]

    peak(1100)  # what is made once
    # Texts of more than 100 bytes take about 36 bytes: number of the line, label, place of the text, and of its ids.
    assert (peak(12_000) - peak(4_000)) / 8_000 < 60


@pytest.mark.exhaustive
@pytest.mark.parametrize("kind", ["choices", "tags"])
def test_memory_hardly_grows_with_rows(tmp_path, on_disk, kind):
    def peak(rows):
        path = write_passages(tmp_path, kind, rows)
        with peak_memory() as used:
            given = FILES[kind][0](path)
            KINDS[kind][1](tokenizer(), given, *([["O"]] if kind == "tags" else []), 64)
        assert len(given) == rows
        return used[0]

    peak(300)  # what is made once
    # In memory, rows take 500 bytes or more. Some of the 100 are objects that Python keeps for reuse.
    assert (peak(6_000) - peak(1_000)) / 5_000 < 100
