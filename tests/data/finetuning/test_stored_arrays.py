"""Proves that ids on disk are those in memory, are made once, and that neither they nor rows need memory."""

import contextlib
import itertools
import sys
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
from albert_tf.tasks.question_answering.files import read_questions
from albert_tf.tasks.question_answering.questions import Question, encode_questions
from albert_tf.tasks.token_classification.files import read_tagged
from albert_tf.tasks.token_classification.tagged import TaggedText, encode_tagged
from albert_tf.tokenization import AlbertTokenizer
from tests.data.written import write_rows
from tests.disk import full_disk
from tests.parameters import first_of
from tests.toy_task import mood_rows, tokenizer

TEXTS = ["one", "", "세 번째", "\ud800 is no text", "a\nb\0"]
PAIRS = ["x", "y", "", "z z", "y"]
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
# For each kind of example: rows, how they are tokenized, settings, and others.
KINDS = {
    "texts": (
        TEXTS,
        lambda vocabulary, rows, *given, **on: encode_texts(vocabulary, rows, None, *given, **on),
        (8,),
        [(7,)],
    ),
    "choices": (CHOICES, encode_choices, (40, 8), [(39, 8), (40, 5)]),
    "questions": (QUESTIONS, encode_questions, (40, 8, 5), [(39, 8, 5), (40, 9, 5), (40, 8, 4)]),
    "tags": (
        *(TAGGED, encode_tagged, (["O", "B-X", "I-X"], 20, 8)),
        [(["O", "I-X", "B-X"], 20, 8), (["O", "B-X", "I-X"], 21, 8), (["O", "B-X", "I-X"], 20, 9)],
    ),
}
# For each kind of example that is read from a file: how, and a row of a passage.
FILES = {
    "questions": (read_questions, lambda text: {"context": text, "question": "Who?", "answers": []}),
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


@pytest.fixture
def written(monkeypatch):
    """The folders of ids that were written so far."""
    paths = []
    original = stored_arrays._write
    monkeypatch.setattr(stored_arrays, "_write", lambda path, *given: paths.append(path) or original(path, *given))
    return paths


def write_passages(folder, kind, rows):
    """A file with a passage for three rows."""
    passages = [" ".join(text for text, _ in mood_rows(5, seed)) for seed in range(40)]
    return write_rows(folder, [FILES[kind][1](f"{row // 3} {passages[row // 3 % 40]}") for row in range(rows)])


@pytest.mark.parametrize("kind", FILES)
def test_ids_do_not_depend_on_the_place_of_a_file(tmp_path, written, kind):
    read, path = FILES[kind][0], write_passages(tmp_path, kind, 5)
    _, encode, settings, _ = KINDS[kind]
    encode(tokenizer(), read(path), *settings, folder=tmp_path / "ids")
    encode(tokenizer(), read(path.rename(tmp_path / "other.jsonl")), *settings, folder=tmp_path / "ids")
    assert len(written) == 1


@pytest.mark.parametrize("kind", KINDS)
def test_ids_on_disk_are_those_in_memory(tmp_path, monkeypatch, kind):
    rows, encode, settings, _ = KINDS[kind]
    expected = encode(tokenizer(), rows, *settings)
    for name in ("_TEXTS_AT_ONCE", "_ROWS_AT_ONCE"):
        monkeypatch.setattr(encoded, name, 4)
    for given in (rows, StoredRows(rows)):
        for folder in (tmp_path / kind / "ids", None):
            assert_same(encode(tokenizer(), given, *settings, folder=folder), expected)


@pytest.mark.parametrize("kind", KINDS)
def test_lists_of_texts_are_tokenized_without_arrow(monkeypatch, kind):
    """As servers do for each request."""
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    rows, encode, settings, _ = KINDS[kind]
    assert encode(tokenizer(), rows, *settings)


@pytest.mark.parametrize("kind", ["choices", "questions"])
def test_passages_are_tokenized_once_for_neighbouring_rows(monkeypatch, kind):
    passages = []

    def counted(original):
        return lambda self, texts, *given, **options: passages.extend(texts) or original(self, texts, *given, **options)

    for name in ("encode_batch", "__call__"):
        monkeypatch.setattr(AlbertTokenizer, name, counted(getattr(AlbertTokenizer, name)))
    monkeypatch.setattr(encoded, "_ROWS_AT_ONCE", 2)
    rows, encode, settings, _ = KINDS[kind]
    encode(tokenizer(), rows, *settings)
    assert [text for text in passages if text in LONG] == LONG


@pytest.mark.parametrize("kind", KINDS)
def test_texts_are_tokenized_once_for_each_thing_that_changes_their_ids(tmp_path, written, kind):
    rows, encode, first, others = KINDS[kind]
    cases = [(tokenizer(), given, first) for given in (rows, rows[::-1], rows[:-1])]
    cases += [(tokenizer(), rows, settings) for settings in others]
    cases.append((AlbertTokenizer.english(keep_accents=True), rows, first))
    for number, (vocabulary, given, settings) in enumerate(cases, start=1):
        for _ in range(2):
            assert_same(encode(vocabulary, given, *settings, folder=tmp_path), encode(vocabulary, given, *settings))
            assert len(written) == number


def test_pairs_change_ids(tmp_path, written):
    for number, pairs in enumerate((None, PAIRS, PAIRS[::-1]), start=1):
        for _ in range(2):
            assert_same(
                encode_texts(tokenizer(), TEXTS, pairs, 8, tmp_path), encode_texts(tokenizer(), TEXTS, pairs, 8)
            )
            assert len(written) == number


DAMAGED = {
    "cut": lambda content: content[:-4],
    "cut at the end of a part": lambda content: content[: content.rindex(b"\xff\xff\xff\xff")],
    "half": lambda content: content[: len(content) // 2],
    "empty": lambda content: b"",
    "other": lambda content: b"[1, 2]" * 100,
    "missing": None,
}


@pytest.mark.parametrize("damage", DAMAGED)
def test_incomplete_files_are_written_again(tmp_path, monkeypatch, damage):
    monkeypatch.setattr(encoded, "_TEXTS_AT_ONCE", 2)  # several parts
    expected = encode_texts(tokenizer(), TEXTS, None, 8)
    encode_texts(tokenizer(), TEXTS, None, 8, tmp_path)
    (file,) = (path for path in tmp_path.rglob("*") if path.is_file())
    content = file.read_bytes()
    file.unlink() if damage == "missing" else file.write_bytes(DAMAGED[damage](content))
    assert_same(encode_texts(tokenizer(), TEXTS, None, 8, tmp_path), expected)
    assert file.read_bytes() == content


def test_ids_that_another_worker_has_just_written_are_kept(tmp_path):
    def parts():
        (other,) = tmp_path.iterdir()  # the temporary folder
        found = stored_arrays.gather([{"ids": np.arange(3)}], tmp_path, [TEXTS], [8])
        (file,) = next(path for path in tmp_path.iterdir() if path != other).iterdir()
        written.append((file, file.stat().st_ino))
        yield {"ids": found["ids"][0]}

    written = []
    found = stored_arrays.gather(parts(), tmp_path, [TEXTS], [8])
    assert [part.tolist() for part in found["ids"]] == [[0, 1, 2]]
    ((file, inode),) = written
    assert file.stat().st_ino == inode
    assert list(tmp_path.iterdir()) == [file.parent]


def test_a_full_disk_is_an_error_that_names_the_ids_and_leaves_nothing(tmp_path):
    texts = ["words"] * 800
    with pytest.raises(OSError, match=r"could not write the file \(.*\)") as raised, full_disk(4096):
        encode_texts(tokenizer(), texts, None, 64, tmp_path)
    assert raised.value.filename.startswith(str(tmp_path))
    assert not list(tmp_path.iterdir())


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


@pytest.mark.parametrize("suffix", first_of(["tsv", "csv", "jsonl"]))
def test_memory_hardly_grows_with_rows_of_tables(tmp_path, suffix):
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
            ids = encode_texts(tokenizer(), examples.texts, None, 64, tmp_path / "ids")
            assert len(ids) == len(examples) == rows
        return used[0]

    peak(1100)  # what is made once
    # Texts of more than 100 bytes take about 36 bytes: number of the line, label, place of the text, and of its ids.
    assert (peak(12_000) - peak(4_000)) / 8_000 < 60


@pytest.mark.parametrize(
    "kind", ["choices", *(pytest.param(kind, marks=pytest.mark.exhaustive) for kind in ("tags", "questions"))]
)
def test_memory_hardly_grows_with_rows(tmp_path, kind):
    def peak(rows):
        path = write_passages(tmp_path, kind, rows)
        with peak_memory() as used:
            if kind == "questions":  # of a file, their ids are kept in memory, to compare them
                given = StoredRows(Question(f"q{row}", "Who?", f"{row // 3} {LONG[0]}") for row in range(rows))
                encode_questions(tokenizer(), given, 64, folder=tmp_path / "ids").labels()
            else:
                given = FILES[kind][0](path)
                KINDS[kind][1](tokenizer(), given, *([["O"]] if kind == "tags" else []), 64, folder=tmp_path / "ids")
        assert len(given) == rows
        return used[0]

    peak(300)  # what is made once
    # In memory, rows take 500 bytes or more. Some of the 100 are objects that Python keeps for reuse.
    assert (peak(6_000) - peak(1_000)) / 5_000 < 100
