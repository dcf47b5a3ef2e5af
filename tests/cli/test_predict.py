"""Proves that `albert-tf predict` shows what a model says, whatever it was trained for, in memory or exported."""

import csv
import io
import json
import re
import shutil

import pytest

from albert_tf.cli import predict
from albert_tf.export import (
    answer_questions,
    choose,
    classify,
    export_onnx,
    export_saved_model,
    fill_mask,
    find_entities,
    load_folder,
    sentence_order,
)
from tests.parameters import first_of
from tests.toy_task import write_classifier

from .terminal import mistake, output_of, run


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("predict")
    write_classifier(folder / "classifier", labels=["gloomy [x]", "pleasant"])
    export_saved_model(folder / "classifier", folder / "saved", "classifier")
    export_onnx(folder / "classifier", folder / "onnx", "classifier", precisions=["float32"])
    return folder


@pytest.fixture(scope="module")
def forms(folders, exports, onnx_folders):
    """Folders of weights, of a SavedModel and of ONNX files, by kind of model."""
    names = ("weights", "saved", "onnx")
    return lambda kind: dict(zip(names, (folders[kind], exports[kind].folder, onnx_folders[kind])))


@pytest.mark.parametrize("where", first_of(["onnx", "", "saved"]))
def test_labels_with_probabilities(files, where):
    printed = output_of("predict", files / where / "classifier", "a [first] text", "another")
    for prediction in classify(load_folder(files / "classifier"), ["a [first] text", "another"]):
        for share in prediction.probabilities.values():
            assert f"{share:.4f}" in printed
    assert "gloomy [x]" in printed
    assert "a [first] text" in printed


@pytest.mark.parametrize(("where", "engine"), [("", "keras"), ("saved", "tensorflow"), ("onnx", "onnxruntime")])
def test_the_engine_can_be_chosen(files, where, engine):
    shown = output_of("predict", files / where / "classifier", "a text", "--engine", engine, "--json")
    expected = classify(load_folder(files / "classifier"), ["a text"])[0]
    assert json.loads(shown)[0]["prediction"]["probabilities"] == pytest.approx(expected.probabilities, abs=1e-4)
    wrong = "tensorflow" if where != "saved" else "openvino"
    assert "choose another engine" in mistake("predict", files / where / "classifier", "a text", "--engine", wrong)


def test_runs_of_several_seeds_are_named(tmp_path):
    """`finetune --seeds` leaves a folder of them."""
    for seed in (0, 2, 10):
        write_classifier(tmp_path / "runs" / f"seed-{seed}")
    listed = ", ".join(f"{tmp_path}/runs/seed-{seed}" for seed in (0, 2, 10))
    assert mistake("predict", tmp_path / "runs", "a text").endswith(f"give one of them: {listed}.")


def test_a_table_of_pairs_shows_both_texts(tmp_path):
    folder = write_classifier(tmp_path / "pairs", pairs=True)
    printed = output_of("predict", folder, "one", "--pair", "two")
    (row,) = (re.split("[│|]", line) for line in printed.splitlines() if "one" in line)
    assert [cell.strip() for cell in row[1:3]] == ["one", "two"]


@pytest.mark.exhaustive
@pytest.mark.parametrize("form", first_of(["weights", "saved", "onnx"]))
def test_pieces_and_orders(forms, form):
    folder = forms("pretrained")[form]
    loaded = load_folder(forms("pretrained")["weights"])
    guess = fill_mask(loaded, ["the old [MASK]."])[0][0]
    printed = output_of("predict", folder, "the old [MASK].")
    assert all(piece in printed for piece in guess.pieces)
    assert "continues one" not in printed  # the vocabulary has no ##
    rows = [
        row[1:3] for row in lines_without_rules(output_of("predict", folder, "the [MASK] old [MASK].", "a [MASK].")[1:])
    ]
    assert [row for row in rows if row[0]] == [["the [MASK] old [MASK].", "1"], ["a [MASK].", "1"]]
    assert [row[1] for row in rows] == ["1", "", "", "", "", "2", "", "", "", "", "1", "", "", "", ""]
    share = sentence_order(loaded, ["one"], ["two"])[0]
    printed = output_of("predict", folder, "one", "--pair", "two")
    assert f"{max(share, 1 - share):.4f}" in printed
    assert "comes first" in printed


def lines_without_rules(printed):
    """The cells of a table, however wide its columns are."""
    return [[cell.strip() for cell in line.split("│")] for line in printed.splitlines() if "│" in line]


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("kind", "arguments"),
    [
        ("questions", ("Who is he?", "Where?", "--pair", "He is the old man.", "--pair", "In Rome.")),
        ("tags", ("He went to Rome", "and by the house")),
        ("embedding", ("A man eats.", "--pair", "Someone is eating.")),
        ("choices", ("The old man.", "--pair", "He is old.", "--pair", "He is young.", "--pair", "He is.")),
    ],
)
def test_exports_print_what_the_model_prints(kind, arguments, forms):
    weights, saved, onnx = forms(kind).values()
    expected, *given = (
        lines_without_rules(output_of("predict", folder, *arguments))
        for folder in (weights, saved, saved.parent, onnx, onnx.parent)
    )
    assert len(expected) > 0
    for table in given:
        assert [row[:2] for row in table] == [row[:2] for row in expected]
        for row, other in zip(table, expected, strict=True):
            for cell, number in zip(row[2:], other[2:], strict=True):
                assert cell == number or float(cell) == pytest.approx(float(number), abs=1.1e-4)


def test_choices_of_one_context(folders):
    printed = output_of("predict", folders["choices"], "He left.", "--pair", "He is away.", "--pair", "He is here.")
    for probability in choose(load_folder(folders["choices"]), ["He left."], [["He is away.", "He is here."]])[0]:
        assert f"{probability:.4f}" in printed
    assert "`--pair` for each of its choices" in mistake("predict", folders["choices"], "a", "b", "--pair", "c")


@pytest.mark.exhaustive
def test_answers_and_entities(folders):
    printed = output_of("predict", folders["questions"], "Who is he?", "--pair", "He is the old man.", columns=100)
    answer = answer_questions(load_folder(folders["questions"]), ["Who is he?"], ["He is the old man."])[0]
    assert answer.text in printed
    assert f"{answer.score:.4f}" in printed
    printed = output_of("predict", folders["tags"], "He went to Rome", columns=100)
    for entity in find_entities(load_folder(folders["tags"]), ["He went to Rome"])[0]:
        assert f"{entity.text} ({entity.label})" in printed
    assert "the passage that has the answer" in mistake("predict", folders["questions"], "Who is he?")


def test_control_characters_are_escaped_and_long_texts_complete(files):
    printed = output_of("predict", files / "classifier", "a\x1b[2Jb", "long " * 30, columns=60)
    assert "\x1b" not in printed
    assert "a\\x1b[2Jb" in printed
    assert printed.count("long") == 30


def test_mistakes(files, forms):
    for folder in forms("pretrained").values():
        assert "must contain [MASK]" in mistake("predict", folder, "text")
    pretrained = forms("pretrained")["weights"]
    assert "must be given once for each text" in mistake("predict", pretrained, "a", "b", "--pair", "c")
    assert "was trained on single texts" in mistake("predict", files / "classifier", "a", "--pair", "c")
    assert "was trained on single texts" in mistake("predict", files / "saved" / "classifier", "a", "--pair", "c")
    assert "check the spelling" in mistake("predict", files / "nowhere", "a")


# === Files ===


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    rows = [{"sentence": f"text {number} " + "word " * (number % 7), "other": number} for number in range(23)]
    path = tmp_path_factory.mktemp("tables") / "rows.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    return path, [row["sentence"] for row in rows]


@pytest.mark.parametrize("where", first_of(["onnx", "", "saved"]))
def test_files_of_texts(where, files, table, tmp_path, monkeypatch):
    monkeypatch.setattr(predict, "ROWS_AT_ONCE", 5)
    path, texts = table
    expected = classify(load_folder(files / "classifier"), texts)
    command = ("predict", files / where / "classifier", "--data", path, "--text-column", "sentence")
    output_of(*command, "--output", tmp_path / "labels.tsv")
    lines = (tmp_path / "labels.tsv").read_text("utf-8").splitlines()
    assert lines == ["index\tprediction", *(f"{number}\t{one.label}" for number, one in enumerate(expected))]
    rows = [json.loads(line) for line in output_of(*command).splitlines()]
    assert [row["text"] for row in rows] == texts
    for row, one in zip(rows, expected, strict=True):
        assert row["label"] == one.label
        assert row["probabilities"] == pytest.approx(one.probabilities, abs=1e-5)


def test_a_spreadsheet_is_read_as_in_fine_tuning_and_its_lines_are_named(folders, tmp_path):
    run_folder = shutil.copytree(folders["multi_label"], tmp_path / "run")
    (run_folder / "recipe.json").write_text('{"text_column": "Review Text", "header": true}')
    data, output = tmp_path / "test.csv", tmp_path / "labels.csv"
    data.write_text("\ufeffNo;Date;Review Text\r\n1;;fine\r\n;;\r\n;;\r\n4;;bad\r\n", encoding="utf-8")
    code, printed, err = run("predict", run_folder, "--data", data, "--output", output)
    assert (code, printed) == (0, f"2 predictions in {output}\n")
    assert err == "2 texts, separated by ';', 2 empty rows left out\n"
    with output.open(encoding="utf-8", newline="") as file:
        header, *rows = csv.reader(file)
    assert header == ["index", "prediction", "line"]
    assert [row[::2] for row in rows] == [["0", "2"], ["3", "5"]]
    lines = output_of("predict", run_folder, "--data", data, "--text-column", "No").splitlines()
    assert [(row["line"], row["text"]) for row in map(json.loads, lines)] == [(2, "1"), (5, "4")]
    (run_folder / "recipe.json").write_text('{"text_column": "2", "header": false, "rename_columns": {"1": "label"}}')
    lines = output_of("predict", run_folder, "--data", data, "--delimiter", ";").splitlines()
    assert [json.loads(line)["text"] for line in lines] == ["Review Text", "fine", "bad"]


@pytest.mark.parametrize("form", ["weights", "saved", "onnx"])
def test_a_table_has_all_labels_of_a_text(form, forms, tmp_path):
    texts = [f"text {number} " + "word " * (number % 7) for number in range(23)]
    path = tmp_path / "texts.tsv"
    path.write_text("sentence\n" + "\n".join(texts), encoding="utf-8")
    expected = [
        ",".join(label for label, share in one.probabilities.items() if share > 0.5)
        for one in classify(load_folder(forms("multi_label")["weights"]), texts)
    ]
    assert {"", "b"} <= set(expected)
    command = ("predict", forms("multi_label")[form], "--data", path, "--text-column", "sentence")
    output_of(*command, "--output", tmp_path / "labels.tsv")
    lines = (tmp_path / "labels.tsv").read_text("utf-8").splitlines()[1:]
    assert lines == [f"{number}\t{labels}" for number, labels in enumerate(expected)]


@pytest.mark.parametrize("kind", ["questions", pytest.param("tags", marks=pytest.mark.exhaustive)])
def test_files_of_other_tasks(kind, forms, tmp_path, monkeypatch):
    monkeypatch.setattr(predict, "ROWS_AT_ONCE", 2)
    source, saved, onnx = forms(kind).values()
    if kind == "tags":  # of texts, not of words
        source = shutil.copytree(source, tmp_path / "model", ignore=shutil.ignore_patterns("metrics.json"))
        saved = export_saved_model(source, tmp_path / "saved", kind).folder
        onnx = export_onnx(source, tmp_path / "onnx", kind, precisions=["float32"]).folder
    contexts = ["He is the old man of Rome.", "The sun.  A garden and 서울, by the house. " * 4, "very cold rain"]
    paragraphs = [{"context": text, "qas": [{"id": text, "question": "Who is he?"}]} for text in contexts]
    (tmp_path / "questions").write_text(json.dumps({"data": [{"paragraphs": paragraphs}]}))
    (tmp_path / "tags").write_text("\n".join(contexts))
    data = (tmp_path / kind).rename(tmp_path / {"questions": "data.json", "tags": "data.txt"}[kind])
    written = []
    for folder in (source, saved, onnx):
        printed = output_of("predict", folder, "--data", data, "--output", tmp_path / "predictions")
        assert printed == f"3 predictions in {tmp_path / 'predictions'}\n"
        written.append((tmp_path / "predictions").read_text("utf-8"))
    assert written[0] == written[1] == written[2]
    assert len(written[0]) > 100
    assert f"must be files for {json.loads((onnx / 'model.json').read_text())['task']}" in mistake(
        "predict", onnx, "--data", data
    )


@pytest.mark.exhaustive
def test_tasks_with_files_of_their_own_take_no_tables(folders, exports, tmp_path):
    (tmp_path / "x.jsonl").write_text('{"question": "a"}')
    command = ("predict", exports["choices"].folder, "--data", tmp_path / "x.jsonl")
    assert "must be files for multiple_choice" in mistake(*command)
    for folder in (folders["choices"], exports["tags"].folder):
        command = ("predict", folder, "--data", tmp_path / "x.jsonl", "--output", tmp_path / "a.jsonl")
        assert "are of tables, which" in mistake(*command, "--text-column", "a")


def test_lines_from_standard_input(folders, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO("one text\nanother\n"))
    rows = [json.loads(line) for line in output_of("predict", folders["regression"], "--data", "-").splitlines()]
    assert [row["text"] for row in rows] == ["one text", "another"]
    assert [row["line"] for row in rows] == [1, 2]
    assert all(set(row) == {"line", "text", "score"} for row in rows)


def test_mistakes_with_files(folders, table, tmp_path):
    data = ("--data", table[0])
    assert "Either texts or `--data`" in mistake("predict", folders["classifier"])
    assert "Either texts or `--data`" in mistake("predict", folders["classifier"], "a text", *data)
    assert "has no column 'text'" in mistake("predict", folders["classifier"], *data)
    assert "`--json` and `--pair` are only for texts" in mistake("predict", "model", *data, "--pair", "a")
    for option in (("--output", "a.tsv"), ("--pair-column", "b"), ("--no-header",)):
        assert "are only for `--data`; leave them out" in mistake("predict", "model", "a text", *option)
    columns = ("--pair-column", "b", "--output", tmp_path / "a.tsv")
    assert "standard input has one text in each line" in mistake(
        "predict", folders["embedding"], "--data", "-", *columns
    )
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
