"""A server that speaks as much of the Hugging Face Hub's protocol as a download needs."""

import contextlib
import hashlib
import http.server
import json
import pathlib
import threading
from collections.abc import Iterator

COMMIT = "0123456789abcdef0123456789abcdef01234567"


class Hub(http.server.ThreadingHTTPServer):
    """Serves a folder as the model "owner/name".

    Attributes:
        asked: names of the files that were sent, in order.
        cut_off: names of files whose first transfer ends in the middle.
        status: answered instead of anything, if it is not 200, with the header X-Error-Code of `error`.
    """

    def __init__(self, folder: pathlib.Path):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.folder, self.asked, self.cut_off, self.status, self.error = folder, [], set(), 200, ""

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def handle_error(self, request, client_address):
        """Clients that close a connection are not worth a word."""


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Hub

    def log_message(self, *arguments):
        pass

    def do_HEAD(self):
        self._answer(with_body=False)

    def do_GET(self):
        self._answer(with_body=True)

    def _answer(self, with_body: bool):
        path = self.path.partition("?")[0]
        if self.server.status != 200:
            self._send(self.server.status, b"{}", {"X-Error-Code": self.server.error}, with_body)
        elif not path.lstrip("/").removeprefix("api/models/").startswith("owner/name"):
            self._send(404, b"{}", {"X-Error-Code": "RepoNotFound"}, with_body)
        elif "/resolve/" in path:
            self._file(path.partition("/resolve/")[2], with_body)
        elif "/api/models/" in path and "/tree/" in path:
            entries = [
                {"type": "file", "path": name, "size": file.stat().st_size, "oid": _digest(file)}
                for name, file in self._files().items()
            ]
            self._send(200, json.dumps(entries).encode(), {}, with_body)
        elif path.rpartition("/revision/")[2] in ("no", "no?"):
            self._send(404, b"{}", {"X-Error-Code": "RevisionNotFound"}, with_body)
        else:
            info = {"id": "owner/name", "sha": COMMIT, "siblings": [{"rfilename": name} for name in self._files()]}
            self._send(200, json.dumps(info).encode(), {}, with_body)

    def _files(self) -> dict[str, pathlib.Path]:
        root = self.server.folder
        return {file.relative_to(root).as_posix(): file for file in sorted(root.rglob("*")) if file.is_file()}

    def _file(self, path: str, with_body: bool):
        _, _, name = path.partition("/")
        file = self._files().get(name)
        if file is None:
            self._send(404, b"", {"X-Error-Code": "EntryNotFound"}, with_body)
            return
        body = file.read_bytes()
        headers = {"ETag": f'"{_digest(file)}"', "X-Repo-Commit": COMMIT, "Accept-Ranges": "bytes"}
        status, start = 200, self.headers.get("Range", "")
        if start:
            first = int(start.removeprefix("bytes=").rstrip("-").partition("-")[0])
            status, headers["Content-Range"] = 206, f"bytes {first}-{len(body) - 1}/{len(body)}"
            body = body[first:]
        if with_body:
            self.server.asked.append(name)
        if with_body and name in self.server.cut_off:
            self.server.cut_off.remove(name)
            self._send(status, body, headers, with_body, sent=len(body) // 2)
            self.close_connection = True
        else:
            self._send(status, body, headers, with_body)

    def _send(self, status: int, body: bytes, headers, with_body: bool, sent: int | None = None):
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        if with_body:
            self.wfile.write(body[:sent])


def _digest(file: pathlib.Path) -> str:
    return hashlib.sha1(file.read_bytes()).hexdigest()


@contextlib.contextmanager
def running_hub(folder: pathlib.Path) -> Iterator[Hub]:
    """Runs a Hub in a thread."""
    with Hub(folder) as hub:
        thread = threading.Thread(target=hub.serve_forever, daemon=True)
        thread.start()
        try:
            yield hub
        finally:
            hub.shutdown()
            thread.join()
