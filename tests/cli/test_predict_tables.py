"""Proves that `albert-tf predict --data` writes a row for each row of a file or of standard input."""

import csv
import io
import json
import shutil

import pytest

import albert_tf
from albert_tf.cli import predict_tables
from albert_tf.data.finetuning.classification import Columns, read_texts
from albert_tf.export import export_onnx, export_saved_model
from tests.parameters import first_of
from tests.toy_task import change_settings, write_classifier

from .terminal import mistake, output_of, run

TEXTS = [f"text {number} " + "word " * (number % 7) for number in range(23)]


@pytest.fixture(scope="module")
def exported(exports, onnx_folders):
    """The folder of a kind of model, as a SavedModel or as ONNX files."""
    return lambda kind, form: onnx_folders[kind] if form == "onnx" else exports[kind].folder


def rows_of(command):
    return [json.loads(line) for line in output_of(*command).splitlines()]


def cells_of(command, path):
    """The header and the rows that a command writes to a path."""
    output_of(*command, "--output", path)
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.reader(file, delimiter="\t" if path.suffix == ".tsv" else ","))


@pytest.mark.parametrize("form", first_of(["onnx", "saved"]))
def test_files_of_texts(form, folders, exported, tmp_path, monkeypatch):
    monkeypatch.setattr(predict_tables, "ROWS_AT_ONCE", 5)
    texts = [*TEXTS, 'one\ttab, "a"\nline', '"two"']
    rows = [{"sentence": text, "other": number, "meta": {"by": "A"}} for number, text in enumerate(texts)]
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    expected = albert_tf.pipeline(folders["classifier"])(texts)
    command = ("predict", exported("classifier", form), "--data", tmp_path / "rows.jsonl", "--text-column", "sentence")
    for suffix in (".tsv", ".csv"):
        header, *rows = cells_of(command, tmp_path / f"labels{suffix}")
        assert header == ["index", "prediction", "probability", "line", "text"]
        given = [[str(number), one.label, str(number + 1), texts[number]] for number, one in enumerate(expected)]
        assert [[*row[:2], *row[3:]] for row in rows] == given
        assert [float(row[2]) for row in rows] == pytest.approx([one.score for one in expected], abs=1e-5)
        assert {len(row[2]) for row in rows} == {len("0.123456")}
    for number, (row, one) in enumerate(zip(rows_of(command), expected, strict=True)):
        fields = {"line": number + 1, "text": texts[number], "label": one.label}
        numbers = {"score": one.score, "probabilities": one.probabilities}
        assert row == fields | {name: pytest.approx(value, abs=1e-5) for name, value in numbers.items()}


def test_a_table_without_rows_has_the_header_of_others(folders, tmp_path):
    (tmp_path / "none.csv").write_text("text\n", encoding="utf-8")
    for kind, probabilities in (("classifier", "probability"), ("multi_label", "probability of a,probability of b")):
        output_of("predict", folders[kind], "--data", tmp_path / "none.csv", "--output", tmp_path / f"{kind}.csv")
        assert (tmp_path / f"{kind}.csv").read_text("utf-8") == f"index,prediction,{probabilities},line,text\n"
    command = ("predict", folders["classifier"], "--data", tmp_path / "none.csv", "--output")
    assert "nowhere" in mistake(*command, tmp_path / "nowhere" / "a.tsv")


def test_a_spreadsheet_is_read_as_in_fine_tuning_and_its_lines_are_named(folders, tmp_path):
    run_folder = shutil.copytree(folders["multi_label"], tmp_path / "run")
    change_settings(run_folder, text_column="Review Text")
    data, output = tmp_path / "test.csv", tmp_path / "labels.csv"
    data.write_text("\ufeffNo;Date;Review Text\r\n1;;fine\r\n;;\r\n;;\r\n4;;bad\r\n", encoding="utf-8")
    code, printed, err = run("predict", run_folder, "--data", data, "--output", output)
    assert (code, printed) == (0, f"2 predictions in {output}\n")
    assert err == "2 texts, separated by ';'\n"
    with output.open(encoding="utf-8", newline="") as file:
        header, *rows = csv.reader(file)
    probabilities = ["probability of a", "probability of b"]
    assert header == ["index", "prediction", *probabilities, "line", "text"]
    assert [[row[0], *row[-2:]] for row in rows] == [["0", "2", "fine"], ["3", "5", "bad"]]
    command = ("predict", run_folder, "--data", data)
    assert [(row["line"], row["text"]) for row in rows_of((*command, "--text-column", "No"))] == [(2, "1"), (5, "4")]
    change_settings(run_folder, text_column="2", header=False, rename_columns={"1": "label"})
    texts = [row["text"] for row in rows_of((*command, "--set", "delimiter=;"))]
    assert texts == ["Review Text", "fine", "bad"]


@pytest.mark.parametrize("form", first_of(["onnx", "saved"]))
def test_a_text_has_the_same_labels_in_every_form(form, folders, exported, tmp_path):
    path, folder = tmp_path / "texts.tsv", exported("multi_label", form)
    path.write_text("sentence\n" + "\n".join(TEXTS), encoding="utf-8")
    predictions = albert_tf.pipeline(folders["multi_label"])(TEXTS)
    expected = [[label for label, share in one.probabilities.items() if share > 0.5] for one in predictions]
    assert [] in expected
    assert ["b"] in expected
    assert [one.labels for one in albert_tf.pipeline(folder)(TEXTS)] == expected
    command = ("predict", folder, "--data", path, "--text-column", "sentence")
    for suffix in (".tsv", ".csv"):
        _, *cells = cells_of(command, tmp_path / f"labels{suffix}")
        assert [cell[1].split(",") if cell[1] else [] for cell in cells] == expected
    assert [row["labels"] for row in rows_of(command)] == expected
    answers = [row["prediction"] for row in rows_of(("predict", folder, *TEXTS[:5]))]
    assert [answer["labels"] for answer in answers] == expected[:5]
    assert all(set(answer) == {"labels", "probabilities"} for answer in answers)


def test_tables_have_the_separator_of_the_training_data(tmp_path):
    names = ["IT, science", "law", 'say "a|b"']
    folder = write_classifier(tmp_path / "model", problem="multi_label", labels=names)
    change_settings(folder, label_separator="|")
    export = export_onnx(folder, tmp_path, "onnx", precisions=["float32"], threshold={"law": 0.1, names[0]: 0.1}).folder
    (tmp_path / "a.tsv").write_text("text\na text\nanother\n", encoding="utf-8")
    output = tmp_path / "labels.csv"
    for limits, expected, cell in (
        ({names[2]: 1.0}, names[:2], "IT, science|law"),
        ({names[2]: 0.0}, names, json.dumps(names)),
    ):
        given = [f"--set=threshold.{name}={number}" for name, number in limits.items()]
        output_of("predict", export, "--data", tmp_path / "a.tsv", "--output", output, *given)
        again = read_texts(output, Columns(label="prediction", separator="|"))
        assert list(again.labels) == [cell] * 2
        assert again.label_sets() == [expected] * 2


@pytest.mark.exhaustive
def test_entities_of_files_of_texts(folders, tmp_path):
    """tests/inference/test_files.py has the files of other tasks, and of words."""
    source = change_settings(shutil.copytree(folders["tags"], tmp_path / "model"), tag_words=None)
    export = export_saved_model(source, tmp_path / "saved", "tags").folder
    contexts = ["He is the old man of Rome.", "The sun.  A garden and 서울, by the house. " * 4, "very cold rain"]
    data, output, written = tmp_path / "data.txt", tmp_path / "predictions", []
    data.write_text("\n".join(contexts))
    for folder in (source, export):
        assert output_of("predict", folder, "--data", data, "--output", output) == f"3 predictions in {output}\n"
        written.append(output.read_text("utf-8"))
    assert written[0] == written[1]
    assert len(written[0]) > 100
    assert "must be files for token_classification" in mistake("predict", export, "--data", data)


@pytest.mark.exhaustive
def test_tasks_with_files_of_their_own_take_no_tables(folders, exports, tmp_path):
    (tmp_path / "x.jsonl").write_text('{"question": "a"}')
    command = ("predict", exports["choices"].folder, "--data", tmp_path / "x.jsonl")
    assert "must be files for multiple_choice" in mistake(*command)
    for folder in (folders["choices"], exports["tags"].folder):
        command = ("predict", folder, "--data", tmp_path / "x.jsonl", "--output", tmp_path / "a.jsonl")
        assert "are of tables, which" in mistake(*command, "--text-column", "a")


@pytest.mark.parametrize(
    ("kind", "options", "message"),
    [
        ("classifier", (), "rows.jsonl, line 1, has no column 'text'"),
        ("classifier", ("--output", "a.txt"), "must end in .tsv, .csv or .jsonl"),
        ("classifier", ("--text-column", "sentence"), "rows.jsonl, line 5001, has no column 'sentence'"),
        ("pretrained", (), "needs a model that labels or embeds texts"),
    ],
)
def test_mistakes(kind, options, message, folders, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = [{"sentence": "a"}] * 5000 + [{"sentense": "b"}]
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    code, printed, err = run("predict", folders[kind], "--data", "rows.jsonl", *options)
    assert (code, printed) == (2, "")  # not a prediction before the error
    assert message in err


def test_the_data_are_not_overwritten(folders, tmp_path):
    data, soft, hard = (tmp_path / name for name in ("rows.jsonl", "soft.jsonl", "hard.jsonl"))
    data.write_text('{"text": "a", "label": "gloomy", "spans": []}')
    soft.symlink_to(data)
    hard.hardlink_to(data)
    for output in (data, soft, hard, f"{tmp_path}/../{tmp_path.name}/rows.jsonl"):
        for command, folder, option in (
            ("predict", "classifier", "--output"),
            ("evaluate", "classifier", "--predictions"),
        ):
            sentence = mistake(command, folders[folder], "--data", data, option, output)
            assert f"{option.strip('-')}` must not be a file that is read" in sentence
    assert "`output` must not be" in mistake("predict", folders["tags"], "--data", data, "--output", soft)
    assert data.read_text() == hard.read_text() == '{"text": "a", "label": "gloomy", "spans": []}'


# === Standard input ===


def types(monkeypatch, content):
    """Makes the content standard input."""
    content = content if isinstance(content, bytes) else content.encode()
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content)))


QUOTED = 'id,text,label\n1,"one, ""or"" so",x\n2,two,y\n'
TABLES = {
    "csv": (QUOTED, ()),
    "csv of another separator": (QUOTED.replace(",", ";").replace("one;", "one,"), ()),
    "tsv": ('id\ttext\tlabel\n1\tone, "or" so\tx\n2\ttwo\ty\n', ()),
    "jsonl": ('{"id": "1", "text": "one, \\"or\\" so", "label": "x"}\n{"id": "2", "text": "two", "label": "y"}\n', ()),
    "json": (
        '[\n {"id": "1", "text": "one, \\"or\\" so", "label": "x"}, {"id": "2", "text": "two", "label": "y"}]',
        (),
    ),
    "no header": (QUOTED.partition("\n")[2], ("--set", "header=false", "--text-column", "1")),
    "encoding": (QUOTED.replace("two", "셋").encode("cp949"), ("--set", "encoding=cp949")),
}


@pytest.mark.parametrize("name", TABLES)
def test_a_table_on_standard_input_is_read_as_its_file_is(name, folders, monkeypatch):
    content, options = TABLES[name]
    form = name if name in ("tsv", "jsonl", "json") else "csv"
    types(monkeypatch, content)
    rows = rows_of(("predict", folders["classifier"], "--data", "-", "--format", form, *options))
    assert [row["text"] for row in rows] == ['one, "or" so', "셋" if name == "encoding" else "two"]
    assert all(set(row) > {"label", "score"} for row in rows)


def test_standard_input_is_not_guessed_at(folders, monkeypatch):
    command = ("predict", folders["regression"], "--data", "-")
    lines = ['He said: "one, two".', "[MASK] is, {so}", "", "a,b", "id\treview", '{"a": 1}', "[" * 100_000, "5"]
    types(monkeypatch, "\n".join(lines))
    rows = rows_of((*command, "--format", "text"))
    assert [(row["line"], row["text"]) for row in rows] == list(enumerate(lines, 1))
    assert all(set(row) == {"line", "text", "score"} for row in rows)
    for options, content, message in (
        (("csv",), "id,review\n1,fine\n", "standard input, line 2, has no column 'text'; its columns are 'id'"),
        (("jsonl",), '{"review": "fine"}\n', "standard input, line 1, has no column 'text'"),
        (("csv",), 'text,label\n"a"b,c\n', "standard input, line 2, is not valid CSV"),
        (("text", "--text-column", "b"), "a\nb\n", "leave out the options of columns"),
    ):
        types(monkeypatch, content)
        assert message in mistake(*command, "--format", *options)
