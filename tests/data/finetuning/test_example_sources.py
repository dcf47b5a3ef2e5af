"""Proves that tables in memory become the file that their rows say."""

import datetime
import functools
import gzip
import http.server
import json
import pathlib
import threading

import datasets
import numpy as np
import pandas
import polars
import pyarrow
import pytest

from albert_tf.data.finetuning.class_labels import with_names
from albert_tf.data.finetuning.classification import Columns, read_texts
from albert_tf.data.finetuning.example_sources import as_file
from albert_tf.data.finetuning.table_format import TableFormat


def rows_of(data):
    return [json.loads(line) for line in pathlib.Path(as_file(data)).read_text(encoding="utf-8").splitlines()]


def test_a_path_stays_as_it_is(tmp_path):
    assert as_file("a.tsv") == "a.tsv"
    assert as_file(tmp_path) == tmp_path


def test_the_columns_of_a_frame_keep_their_values():
    frame = pandas.DataFrame(
        {
            "text": pandas.array(["하나", "two\ntwo", None], "string"),
            "label": pandas.Categorical(["b", "a", None]),
            "score": [0.1, np.nan, 1 / 3],
            "count": pandas.array([1, None, 3], "Int64"),
            "plain": [1, 2, 3],
            "flag": [True, False, True],
            "day": pandas.to_datetime(["2024-02-29", None, "2024-03-01"]),
            "several": [["x", "y"], np.array([1, 2]), []],
            7: [1.0, 2.0, 3.0],
        },
        index=[5, 5, 0],
    )
    names = ["text", "label", "score", "count", "plain", "flag", "day", "several", "7"]
    assert rows_of(frame) == [
        dict(zip(names, ["하나", "b", 0.1, 1, 1, True, "2024-02-29 00:00:00", ["x", "y"], 1.0])),
        dict(zip(names, ["two\ntwo", "a", None, None, 2, False, None, [1, 2], 2.0])),
        dict(zip(names, [None, None, 1 / 3, 3, 3, True, "2024-03-01 00:00:00", [], 3.0])),
    ]


@pytest.mark.parametrize("streamed", [False, True])
def test_the_class_labels_of_a_dataset_are_written_by_name(streamed):
    text, moods = datasets.Value("string"), datasets.ClassLabel(names=["good", "bad"])
    features = {"text": text, "label": moods, "all": datasets.List(moods), "day": datasets.Value("date32")}
    features["deep"] = datasets.List(datasets.List(moods))
    rows = [
        {"text": "하나", "label": 1, "all": [0, 1], "day": datetime.date(2024, 2, 29), "deep": [[0], [1, 1]]},
        {"text": None, "label": -1, "all": [], "day": None, "deep": []},
    ]
    named = [
        {"text": "하나", "label": "bad", "all": ["good", "bad"], "day": "2024-02-29", "deep": [["good"], ["bad"] * 2]},
        {"text": None, "label": None, "all": [], "day": None, "deep": []},
    ]
    dataset = datasets.Dataset.from_list(rows, datasets.Features(features)).with_format("numpy")
    assert rows_of(dataset.to_iterable_dataset() if streamed else dataset) == named


def test_a_transform_of_a_dataset_counts():
    dataset = datasets.Dataset.from_dict({"text": ["a b", "c"], "label": [0, 1]})
    dataset.set_transform(lambda batch: {**batch, "text": [text.upper() for text in batch["text"]]})
    assert [row["text"] for row in rows_of(dataset)] == ["A B", "C"]


def test_equal_tables_have_one_file_and_others_their_own():
    frame = pandas.DataFrame({"text": ["a", "b"], "label": [0, 1]})
    assert as_file(frame) == as_file(frame.copy()) != as_file(frame[::-1])
    assert {path.suffix for path in as_file(frame).parent.iterdir() if path.is_file()} == {".jsonl"}


@pytest.mark.parametrize("value", [b"a", {"a", "b"}, pathlib.Path("a"), np.bytes_(b"a")])
def test_what_is_no_text_or_number_is_refused(value):
    with pytest.raises(ValueError, match=r"text, numbers, dates and lists of them\. Received: .*convert that column"):
        as_file(pandas.DataFrame({"text": ["a", value], "label": [0, 1]}, dtype=object))
    folder = as_file(pandas.DataFrame({"text": ["a"]})).parent
    assert {path.suffix for path in folder.iterdir() if path.is_file()} == {".jsonl"}


def test_more_rows_than_are_written_at_once_keep_their_order():
    frame = pandas.DataFrame({"text": [str(n) for n in range(2500)], "label": range(2500)})
    for data in (frame, datasets.Dataset.from_pandas(frame)):
        texts = read_texts(as_file(data))
        assert list(texts.texts) == texts.labels == [str(n) for n in range(2500)]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (
            pandas.DataFrame({"text": ["a", None], "label": [0, 1]}),
            "^row 1 of the DataFrame: text is empty; fill it in",
        ),
        (pandas.DataFrame({"a": [1]}), "^row 0 of the DataFrame has no column 'text'; its columns .* `text_column`"),
        ([{"text": "a", "label": 1}, {"text": "b"}], "^row 1 of the examples has no column 'label'"),
    ],
)
def test_errors_name_the_row(data, message):
    with pytest.raises(ValueError, match=message):
        read_texts(as_file(data))


def nested(depth):
    value = []
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ("", "must not be empty"),
        (3, "a DataFrame, a Dataset, a DatasetDict or an iterable of dicts. Received: int"),
        (pandas.DataFrame, "Received: type"),
        (pandas.Series(["a"]), "Received: Series"),
        (["a"], r"must be dicts of columns.* Received: 'a' \(str\) as row 0"),
        ([{"text": "a"}, 5], r"Received: '5' \(int\) as row 1"),
        (datasets.DatasetDict(), "The DatasetDict has no split validation or valid"),
        ({"text": ["a"]}, "only 'text'; pass one of its splits"),
        (pandas.DataFrame([[1, 2]], columns=["a", "a"]), "two columns 'a'; rename one of them"),
        (pandas.DataFrame([[1, 2]], columns=[1, "1"]), "two columns '1'; rename one of them"),
        ([{}, {"a": nested(100_000)}], "row 1 of the examples cannot be written as JSON .*nested too deeply"),
        ([{}, {("a",): 1}], "row 1 of the examples cannot be written as JSON .*keys must be str"),
    ],
    ids=lambda value: value[:30] if isinstance(value, str) else "",
)
def test_other_objects_are_refused(data, message):
    with pytest.raises(ValueError, match=message):
        as_file(data)


@pytest.mark.parametrize("value", [5, 1.5])
def test_numbers_beyond_the_class_labels_are_named(value):
    feature = {"label": {"_type": "ClassLabel", "names": ["a", "b"]}}
    with pytest.raises(ValueError, match=rf"row 7: a class label is not the number of .* \({value}, of 2 names\)"):
        with_names({"label": value}, feature, "row 7")


ROWS = [{"text": "하나", "label": "b", "n": [1, 2]}, {"text": "two", "label": "a", "n": []}]
SAME = {
    "a list": lambda: ROWS,
    "a generator": lambda: (row for row in ROWS),
    "polars": lambda: polars.DataFrame(ROWS),
    "Arrow": lambda: pyarrow.Table.from_pylist(ROWS),
    "a Dataset": lambda: datasets.Dataset.from_list(ROWS),
    "a DatasetDict": lambda: datasets.DatasetDict(test=datasets.Dataset.from_list(ROWS)),
}


@pytest.mark.parametrize("name", SAME)
def test_equal_rows_are_equal_lines_wherever_they_come_from(name):
    assert rows_of(SAME[name]()) == ROWS


def test_a_split_is_taken_by_its_role(tmp_path):
    rows = {name: [{"text": name, "label": 1}] for name in ("train", "validation", "test")}
    data = datasets.DatasetDict({name: datasets.Dataset.from_list(own) for name, own in rows.items()})
    data.save_to_disk(tmp_path / "saved")
    folder = tmp_path / "files"
    folder.mkdir()
    for name, split in data.items():
        split.to_json(folder / f"{name}-00000.jsonl")
    data["train"].to_json(folder / "train-00001.jsonl")
    for source, count in ((data, 1), (tmp_path / "saved", 1), (folder, 2)):
        train, dev = (list(read_texts(as_file(source, role)).texts) for role in ("train", "dev"))
        assert (train, dev) == (["train"] * count, ["validation"])
    data["train"].save_to_disk(tmp_path / "one")
    assert list(read_texts(as_file(tmp_path / "one")).texts) == ["train"]
    for path in folder.glob("train-*"):
        path.unlink()
    with pytest.raises(ValueError, match=r"files has no split train, only 'test', 'validation'; pass one"):
        as_file(folder, "train")


FOLDERS = {
    "a file a split": (["train.tsv", "dev.tsv"], "train.tsv", "dev.tsv"),
    "released files": (["KorQuAD_v1.0_train.json", "dev-v1.1.json"], "KorQuAD_v1.0_train.json", "dev-v1.1.json"),
    "folders of splits": (["train/0000.parquet", "test/0000.parquet"], "train/0000.parquet", "test/0000.parquet"),
    "hidden copies": ([".ipynb_checkpoints/train-1.tsv", "train.tsv", "val.tsv"], "train.tsv", "val.tsv"),
    "CoNLL": (["train.txt", "valid.txt", "test.txt"], "train.txt", "valid.txt"),
    "RACE": (["train/high/1.txt", "train/high/2.txt", "dev/high/1.txt"], "train", "dev"),
    "other names": (["testimonials.csv", "value_counts.csv"], ".", "."),
}


def touch(folder, files):
    for file in files:
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / file).touch()


@pytest.mark.parametrize("name", FOLDERS)
def test_which_file_of_a_folder_is_a_split(tmp_path, name):
    files, *expected = FOLDERS[name]
    touch(tmp_path, files)
    assert [as_file(tmp_path, role) for role in ("train", "dev")] == [tmp_path / path for path in expected]


def test_forms_of_files_that_are_no_tables(tmp_path):
    for label, texts in {"good": ["one", "two\nthree"], "bad": ["four"]}.items():
        (tmp_path / "train" / label).mkdir(parents=True)
        for number, text in enumerate(texts):
            (tmp_path / "train" / label / f"{number}.txt").write_text(text, encoding="utf-8")
    (tmp_path / "train" / "urls.txt").touch()
    of_classes = read_texts(as_file(tmp_path, "train"))
    assert (list(of_classes.texts), of_classes.labels) == (["four", "one", "two\nthree"], ["bad", "good", "good"])
    lines = tmp_path / "fasttext.txt"
    lines.write_text("__label__good 좋은 영화\n__label__bad __label__long four\n", encoding="utf-8")
    of_lines = read_texts(as_file(lines), Columns(separator=","))
    assert (list(of_lines.texts), of_lines.label_sets()) == (["좋은 영화", "four"], [["good"], ["bad", "long"]])
    compressed = tmp_path / "b.txt.gz"
    compressed.write_bytes(gzip.compress(lines.read_bytes()))
    assert list(read_texts(as_file(compressed), Columns(separator=",")).texts) == ["좋은 영화", "four"]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.txt", b"__label__a x\nno label\n", r"a\.txt, line 2, has no label"),
        ("a.tsv.gz", gzip.compress(b"text\tlabel\nx\n"), r"a\.tsv\.gz, line 2, has 1 fields"),
        ("a.tsv.gz", gzip.compress(b"text\tlabel\nx\ty\n")[:-4], "not a complete gzip file"),
        ("a.tsv.gz", gzip.compress(bytes(10**8)), "more than 500 times its size"),
    ],
    ids=["label", "row", "incomplete", "bomb"],
)
def test_such_files_are_refused_by_their_names(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=message):
        read_texts(as_file(tmp_path / name))


@pytest.mark.parametrize("files", [["train.csv", "train.jsonl"], ["ko/train-0.jsonl", "en/train-0.jsonl"]])
def test_a_split_of_different_files_is_refused(tmp_path, files):
    touch(tmp_path, files)
    with pytest.raises(ValueError, match=r"has several files of the split 'train': .*; pass one"):
        as_file(tmp_path, "train")


def test_shards_are_read_as_their_options_say(tmp_path):
    for number in range(2):
        content = f"텍스트;label\n글{number};1\n".encode("cp949")
        (tmp_path / f"train-{number}.csv").write_bytes(content)
        (tmp_path / f"dev-{number}.csv.gz").write_bytes(gzip.compress(content))
    table = TableFormat(encoding="cp949", rename={"텍스트": "text"})
    for role in ("train", "dev"):
        assert list(read_texts(as_file(tmp_path, role, table), table=table).texts) == ["글0", "글1"]
    (tmp_path / "dev-1.csv.gz").unlink()
    assert list(read_texts(as_file(tmp_path, "dev", table), table=table).texts) == ["글0"]


def test_a_damaged_data_set_is_named(tmp_path):
    datasets.Dataset.from_list(ROWS).save_to_disk(tmp_path / "one")
    (tmp_path / "one/data-00000-of-00001.arrow").write_bytes(b"half")
    with pytest.raises(ValueError, match=r"one is not a data set, or is damaged \(.*; save it again"):
        as_file(tmp_path / "one")


@pytest.fixture
def server(tmp_path):
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=tmp_path)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_a_file_is_read_by_its_url(tmp_path, server):
    (tmp_path / "a.tsv").write_text("text\tlabel\none\t1\ntwo\n", encoding="utf-8")
    path = as_file(f"{server}/a.tsv?download=true")
    assert path.read_bytes() == (tmp_path / "a.tsv").read_bytes()
    with pytest.raises(ValueError, match=r"has 1 fields, but the header has 2"):
        read_texts(path)
    (tmp_path / "b.jsonl").write_text('{"text": 1, "label": 1}', encoding="utf-8")
    with pytest.raises(ValueError, match=rf"^{server}/b\.jsonl, line 1: text=1 is not a string"):
        read_texts(as_file(f"{server}/b.jsonl"))
    for url, reason in ((f"{server}/none.tsv", "does not exist"), ("klingon://a/b.tsv", "could not be read .*klingon")):
        with pytest.raises(ValueError, match=f"{reason}.*; check the URL"):
            as_file(url)
