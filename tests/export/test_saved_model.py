"""Proves what an export holds, what its script says, and that it appears whole or not at all."""

import pathlib
import runpy
import shutil
import sys

import pytest
import tensorflow as tf

from albert_tf import checkpoints, pipeline
from albert_tf.export import export_saved_model, saved_model
from albert_tf.export.serve_base import ServedModel
from tests.disk import full_disk
from tests.toy_task import CONFIG, change_settings

ROOT = pathlib.Path(__file__).parents[2]


@pytest.mark.exhaustive
def test_reports_say_what_was_checked(exports):
    for kind, report in exports.items():
        assert report.largest_difference <= 1e-5
        assert (report.folder.name, report.folder.parent.name) == ("1", kind)
    assert exports["classifier"].signatures == ("attention", "labels", "serving_default", "tokenize", "tokens")
    assert exports["regression"].signatures == ("serving_default", "tokenize", "tokens")
    assert exports["pretrained"].signatures == ("sentence_order", "serving_default", "tokenize", "tokens")
    assert exports["choices"].signatures == ("serving_default", "tokenize", "tokens")


def test_weights_are_stored_once_and_no_path_is(exports, folders):
    folder = exports["classifier"].folder
    weights = (folder / "variables" / "variables.data-00000-of-00001").stat().st_size
    own = CONFIG.num_parameters("encoder") + 3 * CONFIG.hidden_size + 3
    assert weights < 4 * own * 1.01
    for file in folder.rglob("*"):
        content = file.read_bytes() if file.is_file() else b""
        for path in (str(ROOT), str(folders["classifier"].parent), str(folder.parent), sys.prefix):
            assert path.encode() not in content, (file, path)


def test_an_export_that_differs_leaves_nothing_and_gpus_compare_in_float32(folders, tmp_path, monkeypatch):
    is_rounded, compare = tf.config.experimental.tensor_float_32_execution_enabled, ServedModel.largest_difference
    compared = []
    monkeypatch.setattr(
        ServedModel, "largest_difference", lambda *both: compared.append(is_rounded()) or compare(*both)
    )
    monkeypatch.setattr(saved_model, "TOLERANCE", -1.0)
    with pytest.raises(ValueError, match=r"differ by .* Nothing was written"):
        export_saved_model(folders["classifier"], tmp_path, "m")
    assert not any(tmp_path.iterdir())
    assert (compared, is_rounded()) == ([False], True)


@pytest.mark.exhaustive
def test_max_length_cuts_as_asked(folders, tmp_path):
    report = export_saved_model(folders["classifier"], tmp_path, "m", max_length=8)
    first, second = pipeline(report.folder)(["one two three four five six seven eight", "one two three four five six"])
    assert first.probabilities == pytest.approx(second.probabilities, abs=1e-6)


# === saved_models/predict.py ===


def predict_py(monkeypatch, capsys, *arguments):
    monkeypatch.setattr(sys, "argv", ["predict.py", *map(str, arguments)])
    try:
        runpy.run_path(str(ROOT / "saved_models" / "predict.py"), run_name="__main__")
    except SystemExit as stop:
        return stop.code, capsys.readouterr()
    return 0, capsys.readouterr()


@pytest.mark.exhaustive
def test_the_script_takes_the_newest_version_and_imports_nothing_of_ours(exports, run_python):
    script = ROOT / "saved_models" / "predict.py"
    code = (
        "import runpy, sys; sys.modules['albert_tf'] = None; sys.argv = ['predict.py', *sys.argv[1:]];"
        f"runpy.run_path({str(script)!r}, run_name='__main__')"
    )
    printed = run_python("-I", "-c", code, exports["classifier"].folder.parent, "one text", "another").stdout
    lines = printed.splitlines()
    assert [line for line in lines if not line.startswith(" ")] == ["one text", "another"]
    assert sum(line.startswith("    label: ") for line in lines) == 2
    for name in ("gloomy", "mixed", "pleasant"):
        assert sum(line.endswith(f"  {name}") for line in lines) == 2


@pytest.mark.exhaustive
def test_the_script_answers_for_every_kind(exports, monkeypatch, capsys):
    folder = exports["pretrained"].folder
    status, printed = predict_py(monkeypatch, capsys, folder, "a [MASK] text")
    assert (status, len(printed.out.splitlines())) == (0, 11)
    status, printed = predict_py(monkeypatch, capsys, folder, "first", "--pair", "second")
    assert "in_order: 0." in printed.out
    status, printed = predict_py(monkeypatch, capsys, exports["regression"].folder, "a text")
    assert "score: " in printed.out
    status, printed = predict_py(monkeypatch, capsys, exports["pairs"].folder, "a", "--pair", "b")
    assert "label: " in printed.out
    status, printed = predict_py(monkeypatch, capsys, exports["multi_label"].folder, "text 1 word", "text 5")
    lines = [line.strip() for line in printed.out.splitlines()]
    for row, prediction in enumerate(pipeline(exports["multi_label"].folder)(["text 1 word", "text 5"])):
        assert lines[4 * row + 1] == f"labels: {', '.join(prediction.labels) or 'none'}"
        assert lines[4 * row + 2] == f"{prediction.probabilities['a']:.4f}  a"


@pytest.mark.exhaustive
def test_the_script_explains_mistakes_in_one_sentence(exports, monkeypatch, capsys, tmp_path):
    cases = {
        "has no exported model of TensorFlow; `albert-tf predict` takes ONNX folders": [tmp_path, "text"],
        "Each text must contain [MASK]": [exports["pretrained"].folder, "text"],
        "pass --pair TEXT for each text": [exports["pairs"].folder, "text"],
        "omit --pair": [exports["classifier"].folder, "text", "--pair", "x"],
        "one --pair for each text": [exports["pairs"].folder, "text", "more", "--pair", "x"],
    }
    for message, arguments in cases.items():
        status, printed = predict_py(monkeypatch, capsys, *arguments)
        assert status == 2
        assert message in printed.err
        assert len(printed.err.strip().splitlines()) == 1, printed.err


# === Damage, full disks ===


@pytest.mark.exhaustive
def test_a_damaged_export_is_one_sentence(exports, tmp_path):
    shutil.copytree(exports["classifier"].folder, tmp_path / "m" / "1")
    for name in ("saved_model.pb", "variables/variables.data-00000-of-00001", "variables/variables.index"):
        file = tmp_path / "m" / "1" / name
        content = file.read_bytes()
        for damaged in (b"", content[: len(content) // 2], content[:-100]):
            file.write_bytes(damaged)
            with pytest.raises(ValueError, match=r"^[^\n]*m/1 is not a SavedModel, or is damaged \(.*; export it"):
                pipeline(tmp_path / "m")
        file.write_bytes(content)


@pytest.mark.exhaustive
def test_a_disk_that_is_full_is_one_sentence(folders, tmp_path):
    checkpoint = checkpoints.read(folders["classifier"])
    writers = {
        rf"^could not write {tmp_path}/exported/1 \(File too large\)": lambda: export_saved_model(
            folders["classifier"], tmp_path, "exported"
        ),
        rf"^could not write {tmp_path}/google/model\.ckpt-best \(File too large\)": lambda: checkpoints.write(
            checkpoint, tmp_path / "google", "google"
        ),
        r"could not write the file \(File too large\)": lambda: checkpoints.write(
            checkpoint, tmp_path / "huggingface", "huggingface"
        ),
    }
    for message, write in writers.items():
        with pytest.raises(OSError, match=message), full_disk(100_000):
            write()
    assert not any(path.is_file() for path in tmp_path.rglob("*"))


def test_weights_are_read_where_a_program_lies_beside_them(exports, folders, tmp_path):
    shutil.copytree(folders["classifier"], tmp_path, dirs_exist_ok=True)
    shutil.copytree(exports["pairs"].folder, tmp_path / "1")
    shutil.copytree(exports["pairs"].folder, tmp_path, dirs_exist_ok=True)
    assert pipeline(tmp_path).model.network.name == "keras"


@pytest.mark.parametrize("damage", ["[1]", "{", {"max_length": "a"}, {"max_length": 10000}, {"pair_column": 5}])
def test_damaged_settings_beside_weights(damage, folders, tmp_path):
    shutil.copytree(folders["classifier"], tmp_path, dirs_exist_ok=True)
    if isinstance(damage, str):
        (tmp_path / "model.json").write_text(damage)
    else:
        change_settings(tmp_path, **damage)
    with pytest.raises(ValueError, match=r"model\.json.*remove it to use the defaults"):
        pipeline(tmp_path)
