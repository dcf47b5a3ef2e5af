"""Proves that ONNX folders answer, and are served, with what `saved_models/requirements-onnx.txt` lists alone."""

import json
import re
import shutil
import subprocess
import sys
import tomllib

import httpx
import pytest

import albert_tf
from tests.conftest import ROOT
from tests.tokenization.wordpiece_golden import korean

REQUIREMENTS = ROOT / "saved_models" / "requirements-onnx.txt"
# Runs the code that follows in a process where these modules cannot be imported.
BLOCKED = """
import sys
class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {blocked}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Blocked())
"""
PREDICT = """
import albert_tf
root = sys.argv[1]
found = [albert_tf.pipeline(f"{root}/classifier")("A fine film.").score]
found += [albert_tf.pipeline(f"{root}/questions")("Who is he?", "He is the old man.").score]
found += [albert_tf.pipeline(f"{root}/tags")("He went to Rome")[0].score]
tokenizer = albert_tf.AlbertTokenizer.from_pretrained(sys.argv[2])
tokenizer.save_pretrained(sys.argv[3])
print([*found, tokenizer(["서울의 봄"])["input_ids"].tolist()])
"""
MAIN = "from albert_tf.cli.app import main; main()"


def requirements():
    lines = REQUIREMENTS.read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def declared():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return [
        *project["dependencies"],
        *(one for name in ("serve", "onnx") for one in project["optional-dependencies"][name]),
    ]


@pytest.fixture(scope="module")
def blocked():
    """The code that blocks whatever the project needs and the file does not list."""
    names = {re.split("[<>=]", line)[0] for line in set(declared()) - set(requirements())}
    modules = {name.replace("-", "_") for name in names} | {"jax", "torch"}
    assert modules > {"tensorflow", "keras", "tensorflow_text", "onnx", "h5py", "google_crc32c"}
    return BLOCKED.format(blocked=modules)


@pytest.fixture(scope="module")
def onnx(onnx_folders, tmp_path_factory):
    output = tmp_path_factory.mktemp("onnx")
    for kind in ("classifier", "questions", "tags"):
        shutil.copytree(onnx_folders[kind].parent, output / kind)
    return output


def test_each_requirement_is_one_of_the_project():
    assert set(requirements()) <= set(declared())


def test_texts_in_answers_out(blocked, onnx, run_python, tmp_path):
    korean().save_pretrained(tmp_path / "vocabulary")
    done = run_python("-c", blocked + PREDICT, onnx, tmp_path / "vocabulary", tmp_path / "copy")
    *scores, ids = json.loads(done.stdout)
    answer = albert_tf.pipeline(onnx / "questions")("Who is he?", "He is the old man.")
    entities = albert_tf.pipeline(onnx / "tags")("He went to Rome")
    assert scores == pytest.approx(
        [albert_tf.pipeline(onnx / "classifier")("A fine film.").score, answer.score, entities[0].score], abs=1e-5
    )
    assert ids == albert_tf.AlbertTokenizer.from_pretrained(tmp_path / "copy")(["서울의 봄"])["input_ids"].tolist()


def test_predict_and_serve(blocked, onnx, run_python):
    label = albert_tf.pipeline(onnx / "classifier")("A fine film.").label
    assert label in run_python("-c", blocked + MAIN, "predict", onnx / "classifier", "A fine film.").stdout
    command = [sys.executable, "-c", blocked + MAIN, "serve", str(onnx), "--port", "0"]
    server = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        line = server.stdout.readline()
        assert re.search(r"serves classifier 1 \(.+?\), questions 1", line), line + server.stderr.read()
        url = f"{line.split('/ ')[0]}/v1/models/classifier:predict"
        (row,) = httpx.post(url, json={"instances": ["A fine film."]}).json()["predictions"]
        assert row["label"] == label
    finally:
        server.terminate()
        server.communicate(timeout=60)
    assert server.returncode == 0


@pytest.mark.exhaustive
def test_files_are_predicted_and_scored(blocked, onnx, run_python, tmp_path):
    (tmp_path / "words.conll").write_text("John B-PER\nwent O\n")
    question = {"id": "a", "question": "Who is he?", "answers": [{"text": "man", "answer_start": 14}]}
    paragraphs = [{"context": "He is the old man.", "qas": [question]}]
    (tmp_path / "questions.json").write_text(json.dumps({"data": [{"paragraphs": paragraphs}]}))
    for kind, file, output in (("tags", "words.conll", "a.jsonl"), ("questions", "questions.json", "b.json")):
        arguments = (onnx / kind, "--data", tmp_path / file)
        run_python("-c", blocked + MAIN, "predict", *arguments, "--output", tmp_path / output)
    assert json.loads((tmp_path / "a.jsonl").read_text())["text"] == "John went"
    assert set(json.loads((tmp_path / "b.json").read_text())) == {"a"}
    assert (
        "accuracy"
        in run_python("-c", blocked + MAIN, "evaluate", onnx / "tags", "--data", tmp_path / "words.conll").stdout
    )


def test_what_needs_keras_or_tensorflow_says_so(blocked, folders, tmp_path):
    command = [sys.executable, "-c", blocked + MAIN, "predict", folders["classifier"], "text"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    expected = r"albert-tf: keras is not installed(, which \S+ needs)?; install albert-tf with its requirements.*\n"
    assert re.fullmatch(expected, done.stderr), done.stderr
    (tmp_path / "1" / "variables").mkdir(parents=True)
    (tmp_path / "1" / "saved_model.pb").touch()
    command = [sys.executable, "-c", blocked + MAIN, "serve", tmp_path, "--port", "0"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert "can be served: tensorflow is not installed, which the SavedModel in " in done.stderr
