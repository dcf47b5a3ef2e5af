"""A server that speaks as much of huggingface.co's protocol as a download needs, and can fail."""

import contextlib
import hashlib
import http.server
import json
import threading
import urllib.parse
from collections.abc import Iterator


class HubServer(http.server.ThreadingHTTPServer):
    """Serves models from memory.

    Attributes:
        revisions: for each model and revision, files by name; the newest is `main`.
        gated: names of models whose files may not be downloaded.
        cuts: for each file, the numbers of bytes after which its next downloads are cut.
        downloads: each file that was asked for, with its range.
    """

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.revisions: dict[str, dict[str, dict[str, bytes]]] = {}
        self.gated: set[str] = set()
        self.cuts: dict[str, list[int]] = {}
        self.downloads: list[tuple[str, str | None]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def find(self, model: str, revision: str) -> tuple[str, dict[str, bytes]] | None:
        """The commit and the files of a revision."""
        commits = {name: commit(files) for name, files in self.revisions[model].items()}
        name = revision if revision in commits else next((n for n, c in commits.items() if c == revision), None)
        return None if name is None else (commits[name], self.revisions[model][name])


def commit(files: dict[str, bytes]) -> str:
    return hashlib.sha1(repr(sorted(files.items())).encode()).hexdigest()


class _Handler(http.server.BaseHTTPRequestHandler):
    server: HubServer
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_HEAD(self):
        self.do_GET()

    def do_GET(self):
        parts = urllib.parse.unquote(urllib.parse.urlsplit(self.path).path).strip("/").split("/")
        is_api = parts[:2] == ["api", "models"]
        parts = parts[2:] if is_api else parts
        model, (kind, revision, *file) = "/".join(parts[:2]), (*parts[2:], *["revision", "main"][len(parts) - 2 :])
        if model not in self.server.revisions:
            return self._fail(404, "RepoNotFound")
        if (found := self.server.find(model, revision)) is None:
            return self._fail(404, "RevisionNotFound")
        sha, files = found
        if is_api:
            return self._answer(json.dumps(self._listing(model, kind, sha, files)).encode(), sha)
        if model in self.server.gated:
            return self._fail(401, "GatedRepo")
        name = "/".join(file)
        if name not in files:
            return self._fail(404, "EntryNotFound")
        return self._send(name, files[name], sha)

    def _listing(self, model: str, kind: str, sha: str, files: dict[str, bytes]):
        if kind == "tree":
            return [
                {"type": "file", "path": name, "size": len(content), "oid": hashlib.sha1(content).hexdigest()}
                for name, content in files.items()
            ]
        return {"id": model, "sha": sha, "siblings": [{"rfilename": name} for name in files]}

    def _fail(self, status: int, code: str) -> None:
        self._answer(b"{}", status=status, headers={"X-Error-Code": code, "X-Error-Message": code})

    def _send(self, name: str, content: bytes, sha: str) -> None:
        headers = {"ETag": f'"{hashlib.sha1(content).hexdigest()}"', "X-Repo-Commit": sha}
        start, status, sent = 0, 200, content
        if self.command == "GET":
            asked = self.headers.get("Range")
            self.server.downloads.append((name, asked))
            if asked:
                start, status = int(asked.removeprefix("bytes=").partition("-")[0]), 206
                headers["Content-Range"] = f"bytes {start}-{len(content) - 1}/{len(content)}"
            if self.server.cuts.get(name):
                sent = content[: start + self.server.cuts[name].pop(0)]
        self._answer(sent[start:], status=status, headers=headers, length=len(content) - start)

    def _answer(
        self, content: bytes, sha: str = "", status: int = 200, headers: dict[str, str] | None = None, length: int = -1
    ) -> None:
        self.send_response(status)
        for key, value in {"X-Repo-Commit": sha, **(headers or {})}.items():
            self.send_header(key, value)
        length = len(content) if length < 0 else length
        self.send_header("Content-Length", str(length))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(content)
            self.close_connection = length != len(content)  # cut


@contextlib.contextmanager
def hub_server() -> Iterator[HubServer]:
    """Runs the server in a thread."""
    with HubServer() as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
