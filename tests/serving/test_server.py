"""Proves that a server starts, reloads, drains and ends, over real sockets with a real export."""

import asyncio
import functools
import json
import logging
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request

import httpx
import pytest

from albert_tf.serving import server
from albert_tf.serving.options import ServerOptions
from albert_tf.serving.server import serve
from tests.conftest import ROOT
from tests.serving.toy_server import ToyEngine, run, write_version

# A request whose answer has 20 MB.
LARGE = json.dumps({"signature_name": "attention", "instances": ["a" * 1200]}).encode()
LARGE = b"POST /v1/models/task:predict HTTP/1.1\r\nhost: localhost\r\ncontent-length: %d\r\n\r\n" % len(LARGE) + LARGE


def with_server(folder, scenario, **options):
    """Runs a blocking function with the address of a server, in a thread, and returns its result and the lines."""

    stop = functools.cache(lambda: os.kill(os.getpid(), signal.SIGTERM))

    async def serving():
        lines, started = [], asyncio.Event()

        def announce(line):
            lines.append(line)
            started.set()

        async with asyncio.TaskGroup() as group:
            task = group.create_task(serve(folder, ServerOptions(port=0, **options), announce))
            await started.wait()
            try:
                result = await asyncio.to_thread(scenario, re.search(r"http://[\d.:]+", lines[0])[0], stop)
            finally:
                if not task.done():
                    stop()
        return result, lines

    return run(serving)


@pytest.fixture
def toy(monkeypatch, tmp_path):
    """A folder with a model that ToyEngine answers, slowly."""
    monkeypatch.setattr(server, "load_engine", lambda *_: ToyEngine(seconds=0.3))
    write_version(tmp_path / "task", 1)
    return tmp_path


def post(address, text="a"):
    return httpx.post(f"{address}/v1/models/task:predict", json={"instances": [text]}, timeout=10)


def test_on_a_loopback_address_other_names_are_refused_and_elsewhere_all_are_answered(toy, caplog):
    """The line at the start names address and models."""

    def scenario(address, _):
        headers = [{}, {"host": "rebound.example:80"}, {"origin": "https://other.example"}, {"host": "models.example"}]
        return [httpx.get(f"{address}/v1/models", headers=one).status_code for one in headers]

    statuses, lines = with_server(toy, scenario, allowed_hosts=("Models.example",))
    assert statuses == [200, 403, 403, 200]
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+/ serves task 1 \(toy\)", lines[0])
    assert not caplog.messages
    assert with_server(toy, scenario, host="0.0.0.0")[0] == [200] * 4
    assert caplog.messages == ["Anyone who can reach 0.0.0.0 can use the models; set --api-key-file for a key."]


def test_running_requests_are_answered_before_the_end(toy, caplog, monkeypatch):
    caplog.set_level(logging.INFO)
    engine = ToyEngine(seconds=0.3)
    monkeypatch.setattr(server, "load_engine", lambda *_: engine)

    def scenario(address, stop):
        replies = []
        asking = threading.Thread(target=lambda: replies.append(post(address)))
        asking.start()
        while not engine.batches:
            time.sleep(0.01)
        stop()
        asking.join()
        with pytest.raises(httpx.ConnectError):
            post(address)
        return replies

    (reply,), _ = with_server(toy, scenario)
    assert reply.status_code == 200
    said = [record.getMessage() for record in caplog.records if record.name == server.__name__]
    assert said == ["Stopping; running requests get up to 30 seconds.", "Stopped."]


def test_a_client_that_leaves_is_forgotten(toy):
    def scenario(address, _):
        for text in ("a", "b", "c"):
            with pytest.raises(httpx.ReadTimeout):
                httpx.post(f"{address}/v1/models/task:predict", json={"instances": [text]}, timeout=0.05)
        time.sleep(0.1)
        return httpx.get(f"{address}/metrics").text

    text, _ = with_server(toy, scenario, max_batch_size=1)
    assert 'code="CANCELLED",method="predict",model="task",protocol="rest"} 3.0' in text
    assert 'albert_tf_waiting_rows{model="task"} 0.0' in text


def connect(address, request):
    """A connection that has sent a request, and takes little of the answer before it is read."""
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    connection.settimeout(10)
    connection.connect(("127.0.0.1", int(address.rpartition(":")[2])))
    connection.sendall(request)
    return connection


@pytest.mark.parametrize(
    "request_",
    [
        b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n",  # of headers that do not end
        b"GET /healthz HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1000000\r\n\r\n",
        b"POST /v1/models/none:predict HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1000000\r\n\r\n",
        LARGE,  # whose answer nobody reads
    ],
)
def test_what_does_not_end_does_not_keep_its_connection(toy, monkeypatch, request_):
    monkeypatch.setattr(server, "CLIENT_SECONDS", 0.3)
    monkeypatch.setattr(server, "BYTES_PER_SECOND", 1 << 20)

    def scenario(address, _):
        with connect(address, request_) as connection:
            for sent in range(100):
                try:
                    connection.send(b"x")
                except OSError:
                    return sent
                time.sleep(0.05)

    assert 2 < with_server(toy, scenario, read_timeout=0.2)[0] < 60


@pytest.mark.parametrize(
    ("bytes_per_second", "timeout", "is_complete"), [(1 << 26, 30, False), (1 << 14, 1, False), (1 << 14, 30, True)]
)
def test_an_answer_is_sent_as_long_as_its_client_reads(toy, monkeypatch, bytes_per_second, timeout, is_complete):
    monkeypatch.setattr(server, "CLIENT_SECONDS", 0.1)
    monkeypatch.setattr(server, "BYTES_PER_SECOND", bytes_per_second)

    def scenario(address, _):
        with connect(address, LARGE) as connection:
            answer = connection.recv(1 << 12)
            time.sleep(2)
            size = len(answer)
            while piece := connection.recv(1 << 20):
                size += len(piece)
        return size, int(re.search(rb"content-length: (\d+)", answer)[1])

    (received, promised), _ = with_server(toy, scenario, timeout=timeout)
    assert (received > promised) == is_complete  # with headers


def test_a_request_waits_while_models_are_loaded(toy, monkeypatch):
    sent, listen = [], server.listen

    def listen_and_ask(*arguments):
        listening = listen(*arguments)
        request = b"GET /readyz HTTP/1.1\r\nhost: localhost\r\n\r\n"
        sent.append(connect(f"127.0.0.1:{listening.getsockname()[1]}", request))
        return listening

    monkeypatch.setattr(server, "listen", listen_and_ask)
    answer, _ = with_server(toy, lambda *_: sent[0].recv(12))
    sent[0].close()
    assert answer == b"HTTP/1.1 200"


def test_a_request_may_take_longer_than_its_headers(toy, monkeypatch):
    monkeypatch.setattr(server, "CLIENT_SECONDS", 0.1)

    def scenario(address, _):
        with httpx.Client(base_url=address) as client:
            body = {"instances": ["a"]}
            return [client.post("/v1/models/task:predict", json=body).status_code for _ in range(2)]

    assert with_server(toy, scenario)[0] == [200, 200]


@pytest.mark.parametrize(("path", "status"), [("task", 413), ("other", 404)])
def test_an_early_answer_reaches_a_client_that_is_still_sending(toy, path, status):
    def scenario(address, _):
        request = urllib.request.Request(f"{address}/v1/models/{path}:predict", bytes(32 << 20))
        with pytest.raises(urllib.error.HTTPError) as refused, urllib.request.urlopen(request, timeout=10):
            pass
        with refused.value as reply:
            return reply.code, "error" in json.load(reply)

    assert with_server(toy, scenario)[0] == (status, True)


def test_a_taken_port_and_a_folder_without_models_are_mistakes(toy, tmp_path_factory, monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ValueError, match=f"127.0.0.1:{port} could not be opened"):
            run(lambda: serve(tmp_path_factory.mktemp("not_looked_at"), ServerOptions(port=port), print))

    def fail(*_):
        raise ValueError("It is damaged.")

    monkeypatch.setattr(server, "load_engine", fail)
    with pytest.raises(ValueError, match=r"No model in \S+ can be served: It is damaged\.$"):
        run(lambda: serve(toy, ServerOptions(port=0), print))
    with pytest.raises(ValueError, match=r"No model in .* can be served: it is empty; export a model into it"):
        run(lambda: serve(tmp_path_factory.mktemp("empty"), ServerOptions(), print))


def test_answers_are_not_held_back():
    with server.listen("127.0.0.1", 0) as listening:
        assert listening.proto == socket.IPPROTO_TCP  # what asyncio asks before it sets TCP_NODELAY


@pytest.mark.exhaustive
def test_a_process_reloads_and_ends_with_zero_after_sigterm(exports, tmp_path):
    shutil.copytree(exports["classifier"].folder, tmp_path / "task" / "1")
    command = [sys.executable, "-m", "albert_tf", "serve", str(tmp_path), "--port", "0"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        line = process.stdout.readline()
        assert line.endswith("serves task 1 (tensorflow)\n"), line + process.stderr.read()
        address = re.search(r"http://[\d.:]+", line)[0]
        first = post(address).json()
        shutil.copytree(tmp_path / "task" / "1", tmp_path / "partial")
        (tmp_path / "partial").rename(tmp_path / "task" / "2")
        for _ in range(300):
            assert post(address).json() == first
            if httpx.get(f"{address}/v1/models/task/versions/2").status_code == 200:
                break
            time.sleep(0.1)
        assert httpx.get(f"{address}/v1/models/task/versions/1").status_code == 404
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=30)
    finally:
        process.kill()
    assert process.returncode == 0, errors
    assert "task 2 is served by tensorflow" in errors
    assert "Traceback" not in errors
