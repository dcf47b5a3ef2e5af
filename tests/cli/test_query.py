"""Proves that `serve` and `query` talk to each other, and that mistakes are one sentence."""

import asyncio
import contextlib
import re
import shutil
import socket
import threading

import httpx
import numpy as np
import pytest

from albert_tf.inference import load_folder
from albert_tf.inference.signatures import Signature
from albert_tf.serving import server
from albert_tf.tasks.outputs import TensorSpec
from tests.serving.toy_server import TEXT, ToyEngine, write_version

from .terminal import run


@contextlib.contextmanager
def serving(folder, **options):
    """The address of a server in a thread."""
    lines, started, stop = [], threading.Event(), []

    async def serve():
        stop.append((asyncio.get_running_loop(), event := asyncio.Event()))
        await server.serve(
            folder, server.ServerOptions(port=0, **options), lambda line: (lines.append(line), started.set()), event
        )

    thread = threading.Thread(target=asyncio.run, args=(serve(),))
    thread.start()
    assert started.wait(10)
    try:
        yield re.search(r"http://[\d.:]+", lines[0])[0]
    finally:
        (loop, event), *_ = stop
        loop.call_soon_threadsafe(event.set)
        thread.join()


@pytest.fixture
def folder(monkeypatch, tmp_path):
    monkeypatch.setattr(server, "load_engine", lambda *_: ToyEngine())
    write_version(tmp_path / "task", 1)
    return tmp_path


def test_answers_are_a_table(folder):
    with serving(folder) as address:
        code, printed, errors = run("query", f"{address}/v1/models/task", "aaab", "bb")
    assert not code, errors
    assert re.search(r"text\W+label\W+probability\W+aaab", printed), printed
    for cells in (("aaab", "vowels", "0.7500", "consonants", "0.2500"), ("bb", "consonants", "1.0000", "vowels")):
        assert re.search(r"\W+".join(map(re.escape, cells)), printed), printed


def test_the_key_is_read_from_the_environment(folder, monkeypatch):
    with serving(folder, api_key="key") as address:
        code, _, errors = run("query", f"{address}/v1/models/task", "a")
        assert (code, errors.count("\n")) == (2, 1)
        assert "answered 401: The API key is missing or wrong. Set ALBERT_TF_API_KEY." in errors
        monkeypatch.setenv("ALBERT_TF_API_KEY", "key")
        assert not run("query", f"{address}/v1/models/task", "a")[0]


@pytest.mark.parametrize(
    ("path", "arguments", "complaint"),
    [
        ("/v1/models/none", ["a"], "answered 404: Could not find any versions of model none"),
        ("/v1/models/task", ["bad"], "answered 400: The text is bad."),
        ("/v1/models/task", ["a", "--pair", "b"], "The model takes text; pass no `--pair`."),
        ("/", ["a"], "must be a name, or end in /v1/models/NAME"),
    ],
)
def test_mistakes_are_one_sentence(folder, path, arguments, complaint):
    with serving(folder) as address:
        code, _, errors = run("query", address + path, *arguments)
    assert (code, errors.count("\n")) == (2, 1)
    assert complaint in errors


class Tagger(ToyEngine):
    """Finds the words of a text that begin with a capital letter."""

    signatures = {
        "serving_default": Signature(
            {"text": TEXT},
            {"entity_text": TensorSpec("string", (None, None)), "entity_score": TensorSpec("float32", (None, None))},
        )
    }

    def _serving_default(self, text):
        words = [[word for word in value.split() if word.istitle()] for value in text]
        longest = max(map(len, words))
        padded = [[*found, *[b""] * (longest - len(found))] for found in words]
        return {"entity_text": np.array(padded, object), "entity_score": np.ones([len(text), longest], np.float32)}


class MaskFiller(ToyEngine):
    """Knows six pieces for each [MASK]."""

    signatures = {
        "serving_default": Signature(
            {"text": TEXT},
            {"pieces": TensorSpec("string", (None, None, 6)), "probabilities": TensorSpec("float32", (None, None, 6))},
        )
    }

    def _serving_default(self, text):
        there = [[number < value.count(b"[MASK]") for number in range(2)] for value in text]
        pieces = [[[f"p{n}" if mask else "" for n in range(6)] for mask in row] for row in there]
        pieces = np.vectorize(str.encode, otypes=[object])(np.array(pieces))
        return {"pieces": pieces, "probabilities": np.full(pieces.shape, 0.125, np.float32)}


def test_the_pieces_of_each_mask_are_lines(folder, monkeypatch):
    monkeypatch.setattr(server, "load_engine", lambda *_: MaskFiller())
    with serving(folder) as address:
        code, printed, errors = run("query", f"{address}/v1/models/task", "[MASK] [MASK]", "[MASK]")
    assert not code, errors
    lines = [[cell.strip() for cell in line.split("│")[1:-1]] for line in printed.splitlines() if "│" in line]
    assert [row[1:] for row in lines] == [[mask, f"p{n}", "0.1250"] for mask in "121" for n in range(5)]
    assert [(number, row[0]) for number, row in enumerate(lines) if row[0]] == [(0, "[MASK] [MASK]"), (10, "[MASK]")]


class NumbersFirst(ToyEngine):
    """An export whose outputs come in the order of a protocol buffer's map, which is any."""

    signatures = {
        "serving_default": Signature(
            {"text": TEXT},
            {"score": TensorSpec("float32", (None,)), "answer": TEXT, "start": TensorSpec("int32", (None,))},
        )
    }

    def _serving_default(self, text):
        score, start = np.full(len(text), 0.5, np.float32), np.full(len(text), 3, np.int32)
        return {"score": score, "answer": np.array([value.upper() for value in text], object), "start": start}


def test_texts_come_before_numbers(folder, monkeypatch):
    monkeypatch.setattr(server, "load_engine", lambda *_: NumbersFirst())
    with serving(folder) as address:
        code, printed, errors = run("query", f"{address}/v1/models/task", "one", "two")
    assert not code, errors
    assert re.search(r"text\W+answer\W+probability\W+start\W+one\W+ONE\W+0\.5000\W+3\W+two\W+TWO", printed), printed


def test_all_entities_of_a_text_and_no_padding_are_shown(folder, monkeypatch):
    monkeypatch.setattr(server, "load_engine", lambda *_: Tagger())
    texts = ("In One Two Three Four Five Six", "Bath", "none here")
    with serving(folder) as address:
        code, printed, errors = run("query", f"{address}/v1/models/task", *texts)
    assert not code, errors
    lines = [[cell.strip() for cell in line.split("│")[1:-1]] for line in printed.splitlines() if "│" in line]
    assert [row[1:] for row in lines] == [
        *([word, "1.0000"] for word in [*texts[0].split(), "Bath"]),
        ["", ""],
    ]
    assert [row[0] for row in lines if row[0]] == list(texts)


@pytest.mark.parametrize("form", ["saved", "onnx"])
def test_the_labels_of_each_text_are_shown(form, folders, exports, onnx_folders, tmp_path):
    shutil.copytree(exports["multi_label"].folder if form == "saved" else onnx_folders["multi_label"], tmp_path / "m/1")
    texts = [f"text {number} " + "word " * (number % 7) for number in range(23)]
    expected = [one.labels for one in load_folder(folders["multi_label"]).classify(texts)]
    with serving(tmp_path) as address:
        code, printed, errors = run("query", f"{address}/v1/models/m", *texts)
        rows, alone = (
            httpx.post(f"{address}/v1/models/m:predict", json={"instances": some}).json()["predictions"]
            for some in (texts, [texts[expected.index([])]])
        )
    assert not code, errors
    shown = [[cell.strip() for cell in line.split("│")[1:-1]] for line in printed.splitlines() if "│" in line]
    assert [row[1] for row in shown] == [name for labels in expected for name in labels or ["none"]]
    assert all(row.keys() == {"labels", "probabilities"} for row in rows)
    assert [[name for name in row["labels"] if name] for row in rows] == expected
    assert alone[0]["labels"] == []


def test_an_address_without_its_scheme_is_said():
    code, _, errors = run("query", "localhost:8601/v1/models/task", "a")
    assert code == 2
    assert (
        "must be a name, or begin with http:// and end in /v1/models/NAME. Received: localhost:8601/v1/models/task."
        in errors
    )


@pytest.mark.parametrize(
    ("reply", "complaint"),
    [
        (b"\x00\x00\x12\x04 a gRPC frame\r\n", "could not be reached"),
        (b"HTTP/1.0 200 OK\r\n\r\n[]", "did not describe a model"),
        (
            b'HTTP/1.0 200 OK\r\n\r\n{"metadata": {"signature_def": {"signature_def": {}}}}',
            "no signature serving_default",
        ),
        (b"HTTP/1.0 200 OK\r\n\r\nhi", "did not answer with JSON"),
    ],
)
def test_another_kind_of_server_is_one_sentence(reply, complaint):
    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=answer_once, args=(listening, reply))
        thread.start()
        code, _, errors = run("query", f"http://127.0.0.1:{listening.getsockname()[1]}/v1/models/task", "a")
        thread.join()
    assert (code, errors.count("\n")) == (2, 1), errors
    assert complaint in errors


def answer_once(listening, reply):
    connection, _ = listening.accept()
    with connection:
        connection.recv(4096)
        connection.sendall(reply)


def test_a_server_that_is_not_there_is_named():
    code, _, errors = run("query", "http://127.0.0.1:9/v1/models/task", "a")
    assert code == 2
    assert "start the server with `albert-tf serve`" in errors


FILES = ("empty", "other/notes", "weights/config.json", "weights/model.safetensors", "phones/1/model.tflite")
FILES += ("hub/encoder/saved_model.pb", "hub/preprocess/saved_model.pb")


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["none"], "none is not a folder"),
        ([".", "--engine", "torch"], "`--engine` must be auto, tensorflow, openvino or onnxruntime. Received: torch."),
        (
            [".", "--precision", "half"],
            "`--precision` must be auto, float32, bfloat16, float16 or int8. Received: half.",
        ),
        (
            ["."],
            "No model in . can be served: ./weights holds weights; export it first: albert-tf export ./weights --name",
        ),
        (["other"], "No model in other can be served: it has no complete version of a model."),
        (["weights"], "it holds weights; export it first: albert-tf export weights --name weights."),
        (["none_yet"], "none_yet can be served: it is empty; export a model into it with `albert-tf export`."),
        (["phones"], "is a LiteRT export, which LiteRT runs; saved_models/README.md shows how."),
        (["hub"], "does not take texts, like all modules for TF Hub; export it with --format saved_model."),
        ([".", "--api-key-file", "empty"], "empty is empty; write the key into it."),
    ],
)
def test_what_cannot_be_served_is_one_sentence(tmp_path, monkeypatch, arguments, complaint):
    monkeypatch.chdir(tmp_path)
    for file in FILES:
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).touch()
    (tmp_path / "none_yet").mkdir()
    code, _, errors = run("serve", *arguments)
    assert (code, errors.count("\n")) == (2, 1), errors
    assert complaint in errors
