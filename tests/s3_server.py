"""A real S3 server on loopback, moto's, that can be told to fail; run as a module it prints its address."""

import contextlib
import os
import pathlib
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator

KEYS = {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_DEFAULT_REGION": "us-east-1"}
AWAY_SECONDS = 10
_ERROR = "<?xml version='1.0'?><Error><Code>{}</Code><Message>{}</Message></Error>"
_FAULTS = {
    "busy": ("503 Service Unavailable", _ERROR.format("ServiceUnavailable", "Busy").encode()),
    "broken": ("500 Internal Server Error", _ERROR.format("InternalError", "Broken").encode()),
    "refused": ("403 Forbidden", _ERROR.format("InvalidAccessKeyId", "No such key").encode()),
}


class FaultyS3:
    """moto's server, whose answers fail as `fault` says.

    Faults: "busy" (503 to each third request), "broken" (500 to each), "cut" (every other object of more than 8 KiB
    ends in the middle, and its connection closes), "refused" (no key is known), "away" (the port is closed for ten
    seconds); "" is none.
    """

    def __init__(self, port: int = 0):
        from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app

        self.fault, self.requests, self.failed, self._port = "", 0, 0, port
        self._moto = DomainDispatcherApplication(create_backend_app)
        self.start()

    def start(self) -> None:
        """Listens, at the same port as before."""
        from werkzeug.serving import WSGIRequestHandler, make_server

        class Quiet(WSGIRequestHandler):
            protocol_version = "HTTP/1.1"

            def log(self, *arguments) -> None:
                pass

        self._server = make_server("127.0.0.1", self._port, self._answer, threaded=True, request_handler=Quiet)
        self._server.daemon_threads = True
        self._port = self._server.server_port
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def stop(self) -> None:
        """Closes the port; what was stored stays."""
        self._server.shutdown()
        self._server.server_close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    def _answer(self, environ, start_response):
        if environ["PATH_INFO"].startswith("/-/"):
            return self._set(environ["PATH_INFO"].removeprefix("/-/"), start_response)
        if self.fault == "away":  # on a connection that was open before
            self.failed += 1
            environ["werkzeug.socket"].shutdown(socket.SHUT_RDWR)
            return []
        self.requests += 1
        if self.fault in ("refused", "broken") or (self.fault == "busy" and self.requests % 3 == 0):
            self.failed += 1
            status, content = _FAULTS[self.fault]
            headers = [("Content-Type", "application/xml"), ("Content-Length", str(len(content)))]
            start_response(status, [*headers, ("Connection", "close")])  # the body of the request is not read
            return [] if environ["REQUEST_METHOD"] == "HEAD" else [content]
        answer = self._moto(environ, start_response)
        if self.fault == "cut" and environ["REQUEST_METHOD"] == "GET" and self.requests % 2:
            return self._cut(b"".join(answer))
        return answer

    def _set(self, fault: str, start_response) -> list[bytes]:
        """Answers with how often the last fault occurred."""
        failed = str(self.failed).encode()
        self.fault, self.failed = fault, 0
        if fault == "away":
            threading.Thread(target=self._leave).start()
        start_response("200 OK", [("Content-Length", str(len(failed))), ("Connection", "close")])
        return [failed]

    def _leave(self) -> None:
        self.stop()
        time.sleep(AWAY_SECONDS)
        self.fault = ""
        self.start()

    def _cut(self, content: bytes) -> Iterator[bytes]:
        if len(content) <= 8192:
            yield content
            return
        self.failed += 1
        yield content[: len(content) // 2]
        raise ConnectionAbortedError("as asked for")


@contextlib.contextmanager
def environment(url: str) -> Iterator[dict[str, str]]:
    """Lets this process, and those that it starts, use the server."""
    import s3fs

    values = {**KEYS, "AWS_ENDPOINT_URL": url}
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield values
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
        s3fs.S3FileSystem.clear_instance_cache()  # which would go on asking this server


@contextlib.contextmanager
def running() -> Iterator[str]:
    """A server in a process of its own, because Python's threads would share a core with training; gives its URL."""
    command, root = [sys.executable, "-m", "tests.s3_server"], pathlib.Path(__file__).parents[1]
    with subprocess.Popen(command, cwd=root, stdout=subprocess.PIPE, text=True) as process:
        url = process.stdout.readline().strip()
        with environment(url):
            yield url
        process.kill()


def set_fault(url: str, fault: str) -> int:
    """Tells a server in another process how to fail; returns how often it has failed since the last call."""
    with urllib.request.urlopen(f"{url}/-/{fault}") as answer:
        return int(answer.read())


if __name__ == "__main__":
    print(FaultyS3().url, flush=True)
    threading.Event().wait()
