"""Proves that examples on disk are the same as in memory, are tokenized once, and that rows need no memory."""

import contextlib
import json
import sys
import tempfile
import tracemalloc

import numpy as np
import pytest

from albert_tf.data.finetuning import encoded, stored_arrays, stored_rows
from albert_tf.data.finetuning.classification import Columns, read_texts
from albert_tf.data.finetuning.encoded import encode_texts
from albert_tf.data.finetuning.stored_rows import StoredRows
from albert_tf.tasks.multiple_choice.choices import ChoiceQuestion, encode_choices
from albert_tf.tasks.multiple_choice.files import read_choices
from albert_tf.tasks.question_answering.files import read_questions
from albert_tf.tasks.question_answering.questions import Question, encode_questions
from albert_tf.tasks.token_classification.files import read_tagged
from albert_tf.tasks.token_classification.tagged import TaggedText, encode_tagged
from albert_tf.tokenization import AlbertTokenizer
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
# For each kind of example: rows, how they are tokenized, and other settings.
KINDS = {
    "texts": (TEXTS, lambda rows, *given, **on: encode_texts(tokenizer(), rows, None, *given, **on), (8,), [(7,)]),
    "choices": (CHOICES, lambda *given, **on: encode_choices(tokenizer(), *given, **on), (40, 8), [(39, 8), (40, 5)]),
    "questions": (
        QUESTIONS,
        lambda *given, **on: encode_questions(tokenizer(), *given, **on),
        (40, 8, 5),
        [(39, 8, 5), (40, 9, 5), (40, 8, 4)],
    ),
    "tags": (
        TAGGED,
        lambda *given, **on: encode_tagged(tokenizer(), *given, **on),
        (["O", "B-X", "I-X"], 20, 8),
        [(["O", "I-X", "B-X"], 20, 8), (["O", "B-X", "I-X"], 21, 8), (["O", "B-X", "I-X"], 20, 9)],
    ),
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


@pytest.mark.parametrize("rows", [TEXTS, [1, ("two", None)], TAGGED, CHOICES, QUESTIONS, []])
def test_rows_are_what_was_stored(monkeypatch, rows):
    for rows_at_once in (3, 1024):
        monkeypatch.setattr(stored_rows, "_ROWS_AT_ONCE", rows_at_once)
        stored = StoredRows(rows[:1])
        for row in rows[1:]:
            stored.append(row)
        assert (len(stored), list(stored)) == (len(rows), rows)
        assert ([stored[n] for n in range(-len(rows), len(rows))], stored[1:-1]) == (rows + rows, rows[1:-1])
        with pytest.raises(IndexError):
            stored[len(rows)]


def write_files(folder, rows):
    """Files of questions, choices and tagged words, with a passage for three rows."""
    passages = [" ".join(text for text, _ in mood_rows(5, seed)) for seed in range(40)]
    texts = [f"{row // 3} {passages[row // 3 % 40]}" for row in range(rows)]
    asked = [
        {
            "context": texts[row],
            "qas": [{"id": f"q{row}", "question": "Who?", "answers": [{"text": "", "answer_start": 0}]}],
        }
        for row in range(rows)
    ]
    (folder / "questions.json").write_text(json.dumps({"data": [{"paragraphs": asked}]}))
    lines = (json.dumps({"context": text, "question": "Who?", "choices": ["a", "b"], "label": 1}) for text in texts)
    (folder / "choices.jsonl").write_text("\n".join(lines))
    words = [text.split()[:12] for text in texts]
    lines = (json.dumps({"words": own, "tags": ["O"] * len(own)}) for own in words)
    (folder / "tags.jsonl").write_text("\n".join(lines))


@pytest.mark.parametrize("kind", list(KINDS)[1:])
def test_ids_do_not_depend_on_the_place_of_a_file(tmp_path, written, kind):
    name, read = {
        "questions": ("questions.json", lambda file: read_questions(file, "drop")),
        "choices": ("choices.jsonl", read_choices),
        "tags": ("tags.jsonl", read_tagged),
    }[kind]
    write_files(tmp_path, 5)
    _, encode, settings, _ = KINDS[kind]
    encode(read(tmp_path / name), *settings, folder=tmp_path / "ids")
    encode(read((tmp_path / name).rename(tmp_path / f"other-{name}")), *settings, folder=tmp_path / "ids")
    assert len(written) == 1


@pytest.mark.parametrize("kind", KINDS)
def test_ids_on_disk_are_those_in_memory(tmp_path, monkeypatch, kind):
    rows, encode, settings, _ = KINDS[kind]
    expected = encode(rows, *settings)
    for name in ("_TEXTS_AT_ONCE", "_ROWS_AT_ONCE"):
        monkeypatch.setattr(encoded, name, 4)
    for given in (rows, StoredRows(rows)):
        for folder in (tmp_path / kind / "ids", None):
            assert_same(encode(given, *settings, folder=folder), expected)


@pytest.mark.parametrize("kind", KINDS)
def test_lists_of_texts_are_tokenized_without_arrow(monkeypatch, kind):
    """As servers do for each request."""
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    rows, encode, settings, _ = KINDS[kind]
    assert encode(rows, *settings)


def test_parts_are_limited_in_rows_and_characters(monkeypatch):
    monkeypatch.setattr(encoded, "_ROWS_AT_ONCE", 3)
    monkeypatch.setattr(encoded, "_CHARACTERS_AT_ONCE", 10)
    texts = ["a", "bb", "c", "d", "e" * 9, "f", "g" * 30, "", "h" * 9]
    parts = list(encoded.parts_of(texts, str))
    assert parts == [["a", "bb", "c"], ["d", "e" * 9], ["f"], ["g" * 30], ["", "h" * 9]]


@pytest.mark.parametrize("kind", ["choices", "questions"])
def test_passages_are_tokenized_once_for_neighbouring_rows(monkeypatch, kind):
    passages = []

    def counted(original):
        return lambda self, texts, *given, **options: passages.extend(texts) or original(self, texts, *given, **options)

    for name in ("encode_batch", "__call__"):
        monkeypatch.setattr(AlbertTokenizer, name, counted(getattr(AlbertTokenizer, name)))
    monkeypatch.setattr(encoded, "_ROWS_AT_ONCE", 2)
    rows, encode, settings, _ = KINDS[kind]
    encode(rows, *settings)
    assert [text for text in passages if text in LONG] == LONG


@pytest.mark.parametrize("kind", KINDS)
def test_texts_are_tokenized_once_for_each_thing_that_changes_their_ids(tmp_path, written, kind):
    rows, encode, first, others = KINDS[kind]
    cases = [(rows, first), (rows[::-1], first), (rows[:-1], first), *((rows, settings) for settings in others)]
    for number, (given, settings) in enumerate(cases, start=1):
        for _ in range(2):
            assert_same(encode(given, *settings, folder=tmp_path), encode(given, *settings))
            assert len(written) == number


def test_pairs_and_the_vocabulary_change_ids(tmp_path, written):
    accents = AlbertTokenizer.english(keep_accents=True)
    cases = [(tokenizer(), None), (tokenizer(), PAIRS), (tokenizer(), PAIRS[::-1]), (accents, None)]
    for number, (vocabulary, pairs) in enumerate(cases, start=1):
        for _ in range(2):
            found = encode_texts(vocabulary, TEXTS, pairs, 8, tmp_path)
            assert_same(found, encode_texts(vocabulary, TEXTS, pairs, 8))
            assert len(written) == number
    for kind in list(KINDS)[1:]:
        rows, encode, settings, _ = KINDS[kind]
        encode(rows, *settings, folder=tmp_path)
        number = len(written)
        {"choices": encode_choices, "questions": encode_questions, "tags": encode_tagged}[kind](
            accents, rows, *settings, folder=tmp_path
        )
        assert len(written) == number + 1


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


@pytest.mark.parametrize("rows", [["x" * 5000], ["x"] * 1000])
def test_a_full_disk_is_an_error_that_names_the_folder_of_rows(rows):
    with pytest.raises(OSError, match=r"could not write the file \(.*\): '/") as raised, full_disk(4096):
        list(StoredRows(rows))
    assert raised.value.filename == tempfile.gettempdir()


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
        file = tmp_path / f"{rows}.{suffix}"
        with file.open("w", encoding="utf-8") as lines:
            mark = "\t" if suffix == "tsv" else ","
            lines.write("" if suffix == "jsonl" else f"text{mark}label\n")
            for row in range(rows):
                text, label = texts[row % 40], row % 3
                line = f'{{"text": "{text}", "label": {label}}}' if suffix == "jsonl" else f"{text}{mark}{label}"
                lines.write(line + "\n")
        with peak_memory() as used:
            examples = read_texts(file, Columns())
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
        write_files(tmp_path, rows)
        with peak_memory() as used:
            if kind == "choices":
                given = read_choices(tmp_path / "choices.jsonl")
                encode_choices(tokenizer(), given, 64, folder=tmp_path / "ids")
            elif kind == "tags":
                given = read_tagged(tmp_path / "tags.jsonl")
                encode_tagged(tokenizer(), given, ["O"], 64, folder=tmp_path / "ids")
            else:
                # A file in SQuAD's format is one JSON document, which is parsed as a whole before.
                given = StoredRows(Question(f"q{row}", "Who?", f"{row // 3} {LONG[0]}") for row in range(rows))
                encode_questions(tokenizer(), given, 64, folder=tmp_path / "ids").labels()
        assert len(given) == rows
        return used[0]

    peak(300)  # what is made once
    # In memory, rows take 500 bytes or more. Some of the 100 are objects that Python keeps for reuse.
    assert (peak(6_000) - peak(1_000)) / 5_000 < 100
