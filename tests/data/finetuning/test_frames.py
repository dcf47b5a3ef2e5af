"""Proves that tables in memory become the file that their rows say."""

import datetime
import json
import pathlib

import datasets
import numpy as np
import pandas
import pytest

from albert_tf.data.finetuning.classification import Columns, read_texts
from albert_tf.data.finetuning.frames import as_file


def rows_of(data):
    return [json.loads(line) for line in pathlib.Path(as_file(data)).read_text(encoding="utf-8").splitlines()]


def test_a_path_stays_as_it_is(tmp_path):
    assert as_file("a.tsv") == "a.tsv"
    assert as_file(tmp_path) is tmp_path


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
    moods = datasets.ClassLabel(names=["good", "bad"])
    features = datasets.Features(
        {"text": datasets.Value("string"), "label": moods, "all": datasets.List(moods), "day": datasets.Value("date32")}
    )
    columns = {
        "text": ["하나", "둘", None],
        "label": [1, -1, None],
        "all": [[0, 1], [], [1]],
        "day": [datetime.date(2024, 2, 29), None, None],
    }
    dataset = datasets.Dataset.from_dict(columns, features).with_format("numpy")
    assert rows_of(dataset.to_iterable_dataset() if streamed else dataset) == [
        {"text": "하나", "label": "bad", "all": ["good", "bad"], "day": "2024-02-29"},
        {"text": "둘", "label": None, "all": [], "day": None},
        {"text": None, "label": None, "all": ["bad"], "day": None},
    ]


def test_class_labels_are_named_wherever_they_are():
    moods = datasets.ClassLabel(names=["good", "bad"])
    features = datasets.Features(
        {
            "meta": {"label": moods, "who": datasets.Value("string")},
            "rows": datasets.List({"label": moods}),
            "deep": datasets.List(datasets.List(moods)),
        }
    )
    row = {"meta": {"label": 1, "who": "a"}, "rows": [{"label": 0}, {"label": -1}], "deep": [[0], [1, 1]]}
    named = {
        "meta": {"label": "bad", "who": "a"},
        "rows": [{"label": "good"}, {"label": None}],
        "deep": [["good"], ["bad"] * 2],
    }
    assert rows_of(datasets.Dataset.from_list([row], features)) == [named]


def test_a_transform_of_a_dataset_counts():
    dataset = datasets.Dataset.from_dict({"text": ["a b", "c"], "label": [0, 1]})
    dataset.set_transform(lambda batch: {**batch, "text": [text.upper() for text in batch["text"]]})
    assert [row["text"] for row in rows_of(dataset)] == ["A B", "C"]


def test_equal_tables_have_one_file_and_others_their_own():
    frame = pandas.DataFrame({"text": ["a", "b"], "label": [0, 1]})
    assert as_file(frame) == as_file(frame.copy()) != as_file(frame[::-1])
    assert {path.suffix for path in as_file(frame).parent.iterdir()} == {".jsonl"}


@pytest.mark.parametrize("value", [b"a", {"a", "b"}, pathlib.Path("a"), np.bytes_(b"a")])
def test_what_is_no_text_or_number_is_refused(value):
    with pytest.raises(ValueError, match=r"text, numbers, dates and lists of them\. Received: .*convert that column"):
        as_file(pandas.DataFrame({"text": ["a", value], "label": [0, 1]}, dtype=object))
    folder = as_file(pandas.DataFrame({"text": ["a"]})).parent
    assert {path.suffix for path in folder.iterdir()} == {".jsonl"}


def test_more_rows_than_are_written_at_once_keep_their_order():
    frame = pandas.DataFrame({"text": [str(n) for n in range(2500)], "label": range(2500)})
    for data in (frame, datasets.Dataset.from_pandas(frame)):
        texts = read_texts(as_file(data))
        assert list(texts.texts) == texts.labels == [str(n) for n in range(2500)]


def test_errors_name_the_row():
    frame = pandas.DataFrame({"sentence": ["a", None], "label": [0, 1]})
    with pytest.raises(ValueError, match=r"DataFrame-\w+\.jsonl, line 2: sentence=None is not a string"):
        read_texts(as_file(frame), Columns(text="sentence"))
    with pytest.raises(ValueError, match=r"line 1, has no column 'text'; its columns are 'sentence', 'label'"):
        read_texts(as_file(frame))
    with pytest.raises(ValueError, match="two columns 'a'; rename one of them"):
        as_file(pandas.DataFrame([[1, 2]], columns=["a", "a"]))
    with pytest.raises(ValueError, match="two columns '1'; rename one of them"):
        as_file(pandas.DataFrame([[1, 2]], columns=[1, "1"]))


@pytest.mark.parametrize(
    "data", [[{"text": "a"}], {"text": ["a"]}, 3, datasets.DatasetDict(), pandas.Series(["a"]), pandas.DataFrame]
)
def test_other_objects_are_refused(data):
    with pytest.raises(ValueError, match=r"a pandas DataFrame or a Dataset, such as dataset\['train'\]. Received: "):
        as_file(data)
