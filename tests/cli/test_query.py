"""Proves that `serve` and `query` talk to each other, and that mistakes are one sentence."""

import asyncio
import contextlib
import re
import threading

import pytest

from albert_tf.serving import server
from tests.serving.toy_server import ToyEngine, write_version

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
    yield re.search(r"http://[\d.:]+", lines[0])[0]
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
    for cells in (("aaab", "vowels", "0.7500", "0.2500, 0.7500"), ("bb", "consonants", "1.0000", "1.0000, 0.0000")):
        assert re.search(r"\W+".join(map(re.escape, cells)), printed), printed


def test_the_key_is_read_from_the_environment(folder, monkeypatch):
    with serving(folder, api_key="key") as address:
        code, _, errors = run("query", f"{address}/v1/models/task", "a")
        assert (code, errors.count("\n")) == (2, 1)
        assert "answered 401: The API key is missing or wrong." in errors
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


def test_a_server_that_is_not_there_is_named():
    code, _, errors = run("query", "http://127.0.0.1:9/v1/models/task", "a")
    assert code == 2
    assert "start the server with `albert-tf serve`" in errors


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["none"], "none is not a folder"),
        ([".", "--engine", "torch"], "`--engine` must be auto, tensorflow, openvino or onnxruntime. Received: torch."),
        (["."], "No model in . can be served"),
        ([".", "--api-key-file", "empty"], "empty is empty; write the key into it."),
    ],
)
def test_what_cannot_be_served_is_one_sentence(tmp_path, monkeypatch, arguments, complaint):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").touch()
    code, _, errors = run("serve", *arguments)
    assert (code, errors.count("\n")) == (2, 1), errors
    assert complaint in errors
