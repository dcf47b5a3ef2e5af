"""Proves that `albert-tf predict` shows what a model says, whatever it was trained for, in memory or exported."""

import csv
import json
import shutil
from unittest.mock import ANY

import pytest

import albert_tf
from albert_tf.cli import predict_tables
from albert_tf.data.finetuning.classification import Columns, read_texts
from albert_tf.export import export_onnx, export_saved_model
from tests.parameters import first_of
from tests.toy_task import change_settings, write_classifier

from .terminal import mistake, output_of, run


@pytest.fixture(scope="module")
def folder_of(folders, exports, onnx_folders):
    """The folder of a kind of model, as weights, as a SavedModel or as ONNX files."""
    forms = {
        "weights": folders.__getitem__,
        "saved": lambda kind: exports[kind].folder,
        "onnx": onnx_folders.__getitem__,
    }
    return lambda kind, form="weights": forms[form](kind)


def answers(*arguments):
    """The predictions that the command prints for texts, a line of JSON each."""
    return [json.loads(line)["prediction"] for line in output_of("predict", *arguments).splitlines()]


@pytest.mark.parametrize("form", first_of(["onnx", "saved"]))
def test_labels_with_probabilities(folder_of, form):
    texts = ["a [first] text", "another"]
    found = answers(folder_of("classifier", form), *texts)
    for one, prediction in zip(found, albert_tf.pipeline(folder_of("classifier"))(texts), strict=True):
        assert one["label"] == prediction.label
        assert one["probabilities"] == pytest.approx(prediction.probabilities, abs=1e-4)


@pytest.mark.parametrize(("form", "engine"), [("weights", "keras"), ("saved", "tensorflow"), ("onnx", "onnxruntime")])
def test_the_engine_can_be_chosen(folder_of, form, engine):
    folder = folder_of("classifier", form)
    (shown,) = answers(folder, "a text", "--engine", engine)
    expected = albert_tf.pipeline(folder_of("classifier"))("a text")
    assert shown["probabilities"] == pytest.approx(expected.probabilities, abs=1e-4)
    wrong = "tensorflow" if form != "saved" else "openvino"
    assert "choose another engine" in mistake("predict", folder, "a text", "--engine", wrong)


def test_runs_of_several_seeds_are_named(tmp_path):
    """A loop over seeds leaves a folder of them."""
    for seed in (0, 2, 10):
        write_classifier(tmp_path / "runs" / f"seed-{seed}")
    listed = ", ".join(f"{tmp_path}/runs/seed-{seed}" for seed in (0, 2, 10))
    assert mistake("predict", tmp_path / "runs", "a text").endswith(f"give one of them: {listed}.")


@pytest.mark.parametrize(
    ("kind", "arguments", "field"),
    [
        ("classifier", ("a text",), "probabilities"),
        ("pretrained", ("the [MASK].",), None),
        ("questions", ("Who?", "--pair", "The old man."), "text"),
        ("tags", ("The old man.",), None),
        ("choices", ("one", "--pair", "a", "--pair", "b"), None),
    ],
)
def test_a_line_has_the_texts_and_the_prediction(folders, kind, arguments, field):
    row = json.loads(output_of("predict", folders[kind], *arguments))
    assert row["text"] == arguments[0]
    assert ("pair" in row) == ("--pair" in arguments)
    assert row["prediction"] is not None
    assert field is None or field in row["prediction"]


@pytest.mark.exhaustive
@pytest.mark.parametrize("form", ["weights", "saved"])
def test_pieces_and_orders(folder_of, form):
    folder = folder_of("pretrained", form)
    assert "must contain [MASK]" in mistake("predict", folder, "text")
    predictor = albert_tf.pipeline(folder_of("pretrained"))
    (guess,) = predictor("the old [MASK].")
    ((shown,),) = answers(folder, "the old [MASK].")
    assert tuple(shown["pieces"]) == tuple(guess.pieces)
    assert shown["probabilities"] == pytest.approx(list(guess.probabilities), abs=1e-4)
    assert [len(masks) for masks in answers(folder, "the [MASK] old [MASK].", "a [MASK].")] == [2, 1]
    assert answers(folder, "one", "--pair", "two") == pytest.approx([predictor("one", "two")], abs=1e-4)


def test_choices_of_one_context(folders):
    (found,) = answers(folders["choices"], "He left.", "--pair", "He is away.", "--pair", "He is here.")
    expected = albert_tf.pipeline(folders["choices"])("He left.", ["He is away.", "He is here."])
    assert found == pytest.approx(list(expected), abs=1e-6)
    assert "`--pair` for each of its choices" in mistake("predict", folders["choices"], "a", "b", "--pair", "c")


@pytest.mark.exhaustive
def test_answers_and_entities(folders):
    (found,) = answers(folders["questions"], "Who is he?", "--pair", "He is the old man.")
    answer = albert_tf.pipeline(folders["questions"])("Who is he?", "He is the old man.")
    assert (found["text"], found["score"]) == (answer.text, pytest.approx(answer.score))
    (found,) = answers(folders["tags"], "He went to Rome")
    entities = albert_tf.pipeline(folders["tags"])("He went to Rome")
    assert [(one["text"], one["label"]) for one in found] == [(entity.text, entity.label) for entity in entities]
    assert "the passage that has the answer" in mistake("predict", folders["questions"], "Who is he?")


def test_control_characters_are_escaped(folders):
    printed = output_of("predict", folders["classifier"], "a\x1b[2Jb")
    assert "\x1b" not in printed
    assert json.loads(printed)["text"] == "a\x1b[2Jb"


def test_mistakes(folder_of, tmp_path):
    pretrained = folder_of("pretrained")
    assert "must contain [MASK]" in mistake("predict", pretrained, "text")
    assert "must be given once for each text" in mistake("predict", pretrained, "a", "b", "--pair", "c")
    for form in ("weights", "saved"):
        assert "was trained on single texts" in mistake("predict", folder_of("classifier", form), "a", "--pair", "c")
    assert "check the spelling" in mistake("predict", tmp_path / "nowhere", "a")


# === Files ===


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    rows = [{"sentence": f"text {number} " + "word " * (number % 7), "other": number} for number in range(23)]
    path = tmp_path_factory.mktemp("tables") / "rows.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    return path, [row["sentence"] for row in rows]


@pytest.mark.parametrize("form", first_of(["onnx", "saved"]))
def test_files_of_texts(form, folder_of, table, tmp_path, monkeypatch):
    monkeypatch.setattr(predict_tables, "ROWS_AT_ONCE", 5)
    path, texts = table
    expected = albert_tf.pipeline(folder_of("classifier"))(texts)
    command = ("predict", folder_of("classifier", form), "--data", path, "--text-column", "sentence")
    output_of(*command, "--output", tmp_path / "labels.tsv")
    lines = (tmp_path / "labels.tsv").read_text("utf-8").splitlines()
    header, *rows = (line.split("\t") for line in lines)
    assert header == ["index", "prediction", "probability", "line", "text"]
    given = [[str(number), one.label, str(number + 1), texts[number]] for number, one in enumerate(expected)]
    assert [[*row[:2], *row[3:]] for row in rows] == given
    assert [float(row[2]) for row in rows] == pytest.approx([one.score for one in expected], abs=1e-5)
    rows = [json.loads(line) for line in output_of(*command).splitlines()]
    assert [row["text"] for row in rows] == texts
    for row, one in zip(rows, expected, strict=True):
        assert row["label"] == one.label
        assert row["probabilities"] == pytest.approx(one.probabilities, abs=1e-5)


def test_a_table_without_rows_has_the_header_of_others(folders, tmp_path):
    (tmp_path / "none.csv").write_text("text\n", encoding="utf-8")
    for kind, probabilities in (("classifier", "probability"), ("multi_label", "probability of a,probability of b")):
        output_of("predict", folders[kind], "--data", tmp_path / "none.csv", "--output", tmp_path / f"{kind}.csv")
        assert (tmp_path / f"{kind}.csv").read_text("utf-8") == f"index,prediction,{probabilities},line,text\n"


def test_a_spreadsheet_is_read_as_in_fine_tuning_and_its_lines_are_named(folders, tmp_path):
    run_folder = shutil.copytree(folders["multi_label"], tmp_path / "run")
    change_settings(run_folder, text_column="Review Text")
    data, output = tmp_path / "test.csv", tmp_path / "labels.csv"
    data.write_text("\ufeffNo;Date;Review Text\r\n1;;fine\r\n;;\r\n;;\r\n4;;bad\r\n", encoding="utf-8")
    code, printed, err = run("predict", run_folder, "--data", data, "--output", output)
    assert (code, printed) == (0, f"2 predictions in {output}\n")
    assert err == "2 texts, separated by ';', 2 empty rows left out\n"
    with output.open(encoding="utf-8", newline="") as file:
        header, *rows = csv.reader(file)
    probabilities = ["probability of a", "probability of b"]
    assert header == ["index", "prediction", *probabilities, "line", "text"]
    assert [[row[0], *row[-2:]] for row in rows] == [["0", "2", "fine"], ["3", "5", "bad"]]
    lines = output_of("predict", run_folder, "--data", data, "--text-column", "No").splitlines()
    assert [(row["line"], row["text"]) for row in map(json.loads, lines)] == [(2, "1"), (5, "4")]
    change_settings(run_folder, text_column="2", header=False, rename_columns={"1": "label"})
    lines = output_of("predict", run_folder, "--data", data, "--set", "delimiter=;").splitlines()
    assert [json.loads(line)["text"] for line in lines] == ["Review Text", "fine", "bad"]


@pytest.mark.parametrize("form", first_of(["onnx", "saved"]))
def test_a_text_has_the_same_labels_in_every_form(form, folder_of, tmp_path):
    texts = [f"text {number} " + "word " * (number % 7) for number in range(23)]
    path, folder = tmp_path / "texts.tsv", folder_of("multi_label", form)
    path.write_text("sentence\n" + "\n".join(texts), encoding="utf-8")
    expected = [
        [label for label, share in one.probabilities.items() if share > 0.5]
        for one in albert_tf.pipeline(folder_of("multi_label"))(texts)
    ]
    assert [] in expected
    assert ["b"] in expected
    assert [one.labels for one in albert_tf.pipeline(folder)(texts)] == expected
    command = ("predict", folder, "--data", path, "--text-column", "sentence")
    for suffix in (".tsv", ".csv"):
        output_of(*command, "--output", tmp_path / f"labels{suffix}")
        lines = (tmp_path / f"labels{suffix}").read_text("utf-8").splitlines()[1:]
        cells = list(csv.reader(lines, delimiter="\t" if suffix == ".tsv" else ","))
        assert [cell[1].split(",") if cell[1] else [] for cell in cells] == expected
    assert [json.loads(line)["labels"] for line in output_of(*command).splitlines()] == expected
    found = answers(folder, *texts[:5])
    assert [answer["labels"] for answer in found] == expected[:5]
    assert all(set(answer) == {"labels", "probabilities"} for answer in found)


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


def test_texts_without_a_label_are_shown(folders):
    shares = albert_tf.pipeline(folders["multi_label"])("a text").probabilities
    first, second = sorted(shares.values())
    command = ("predict", folders["multi_label"], "a text", "--set")
    for threshold, labels in ((second + 0.01, []), ((first + second) / 2, [max(shares, key=shares.__getitem__)])):
        (found,) = answers(*command[1:], f"threshold={threshold}")
        assert found["labels"] == labels
    limits = f"threshold.a={shares['a'] - 0.01}", "--set", f"threshold.b={shares['b'] + 0.01}"
    assert answers(*command[1:], *limits)[0]["labels"] == ["a"]
    for wrong, message in {
        ".x=0.5": "`threshold` must name labels of the model. Received: 'x'.",
        "=1.5": "`threshold` must be a number from 0 to 1, such numbers by label, or 'per_label'. Received: "
        "threshold=1.5.",
        "=half": "`threshold` must be a number from 0 to 1, such numbers by label, or 'per_label'. Received: "
        "threshold='half'.",
    }.items():
        assert mistake(*command, f"threshold{wrong}") == f"albert-tf: {message}"
    classifier = ("predict", folders["classifier"], "a text", "--set", "threshold=0.4")
    assert "must be left out unless problem='multi_label'" in mistake(*classifier)


@pytest.mark.exhaustive
@pytest.mark.parametrize("kind", ["questions", "tags"])
def test_files_of_other_tasks(kind, folder_of, tmp_path):
    source = folder_of(kind)
    if kind == "tags":  # of texts, not of words
        source = change_settings(shutil.copytree(source, tmp_path / "model"), tag_words=None)
        export = export_saved_model(source, tmp_path / "saved", kind).folder
    else:
        export = folder_of(kind, "onnx")
    contexts = ["He is the old man of Rome.", "The sun.  A garden and 서울, by the house. " * 4, "very cold rain"]
    paragraphs = [{"context": text, "qas": [{"id": text, "question": "Who is he?"}]} for text in contexts]
    (tmp_path / "questions").write_text(json.dumps({"data": [{"paragraphs": paragraphs}]}))
    (tmp_path / "tags").write_text("\n".join(contexts))
    data = (tmp_path / kind).rename(tmp_path / {"questions": "data.json", "tags": "data.txt"}[kind])
    written = []
    for folder in (source, export):
        printed = output_of("predict", folder, "--data", data, "--output", tmp_path / "predictions")
        assert printed == f"3 predictions in {tmp_path / 'predictions'}\n"
        written.append((tmp_path / "predictions").read_text("utf-8"))
    assert written[0] == written[1]
    assert len(written[0]) > 100
    task = json.loads((export / "model.json").read_text())["task"]
    assert f"must be files for {task}" in mistake("predict", export, "--data", data)


@pytest.mark.exhaustive
def test_tasks_with_files_of_their_own_take_no_tables(folders, exports, tmp_path):
    (tmp_path / "x.jsonl").write_text('{"question": "a"}')
    command = ("predict", exports["choices"].folder, "--data", tmp_path / "x.jsonl")
    assert "must be files for multiple_choice" in mistake(*command)
    for folder in (folders["choices"], exports["tags"].folder):
        command = ("predict", folder, "--data", tmp_path / "x.jsonl", "--output", tmp_path / "a.jsonl")
        assert "are of tables, which" in mistake(*command, "--text-column", "a")


def test_options_that_a_table_does_not_have_are_refused(folders, table):
    command = ("predict", folders["classifier"], "--text-column", "sentence", "--data")
    for setting in ("delimiter=;", "header=false", "header=true"):
        message = f"`{setting.partition('=')[0]}` is not for .jsonl tables. Received: {table[0]}"
        assert message in mistake(*command, table[0], "--set", setting)
    assert "`header` is invalid" in mistake(*command, table[0], "--set", "header=3")
    assert "Unknown key 'hedder' in --set; did you mean 'header'?" in mistake(
        *command, table[0], "--set", "hedder=true"
    )
    assert "it must be one of threshold, windows, header" in mistake(*command, table[0], "--set", "epochs=3")
    assert "`--format` must be given with `--data -`, and only there" in mistake(*command, table[0], "--format", "csv")


def test_lines_have_the_text_and_the_prediction(folders, tmp_path):
    rows = [{"label": "gloomy", "text": 'one\ttab, "a"\nline', "meta": {"by": "A"}}, {"text": '"two"', "score": None}]
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    texts = [row["text"] for row in rows]
    answers = albert_tf.pipeline(folders["classifier"])(texts)
    command = ("predict", folders["classifier"], "--data", tmp_path / "rows.jsonl")
    for number, line in enumerate(output_of(*command).splitlines()):
        fields = {"line": number + 1, "text": texts[number], "label": answers[number].label}
        assert json.loads(line) == fields | {"score": ANY, "probabilities": ANY}
    for suffix, delimiter in {".csv": ",", ".tsv": "\t"}.items():
        path = tmp_path / f"labels{suffix}"
        output_of(*command, "--output", path)
        with path.open(encoding="utf-8", newline="") as file:
            header, *cells = csv.reader(file, delimiter=delimiter)
        assert header == ["index", "prediction", "probability", "line", "text"]
        assert cells == [[str(n), one.label, f"{one.score:.6f}", str(n + 1), texts[n]] for n, one in enumerate(answers)]


def test_mistakes_with_files(folders, table, tmp_path):
    data = ("--data", table[0])
    assert "Either texts or `--data`" in mistake("predict", folders["classifier"])
    assert "Either texts or `--data`" in mistake("predict", folders["classifier"], "a text", *data)
    assert "has no column 'text'" in mistake("predict", folders["classifier"], *data)
    assert "`--pair` is only for texts" in mistake("predict", "model", *data, "--pair", "a")
    for option in (("--output", "a.tsv"), ("--pair-column", "b"), ("--set", "header=false")):
        assert "are only for `--data`; leave them out" in mistake("predict", "model", "a text", *option)
    assert "must end in .tsv, .csv or .jsonl" in mistake("predict", folders["classifier"], *data, "--output", "a.txt")
    assert "needs a model that labels or embeds texts" in mistake("predict", folders["pretrained"], *data)
    rows = [{"sentence": "a"}] * 5000 + [{"sentense": "b"}]
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    code, printed, err = run(
        "predict", folders["classifier"], "--data", tmp_path / "rows.jsonl", "--text-column", "sentence"
    )
    assert (code, printed) == (2, "")  # not a prediction before the error
    assert "rows.jsonl, line 5001, has no column 'sentence'" in err
    output = ("--text-column", "sentence", "--output", tmp_path / "nowhere" / "a.tsv")
    assert "nowhere" in mistake("predict", folders["classifier"], *data, *output)


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
