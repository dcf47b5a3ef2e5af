"""A marker in a folder behind a URL that says who writes there, because buckets have no locks.

Its writer changes it every few seconds. A new one refuses a folder whose marker changes, and takes over one whose
marker does not, of a process that was killed. A writer that finds the marker of another one stops before it uploads
anything more. Two that start within the same second may both begin, and one of them stops at its next look.
"""

import contextlib
import json
import os
import secrets
import socket
import threading
import time
from typing import Any

from albert_tf.files.urls import explained, make_folder

MARKER = ".albert_tf-writer"
BEAT_SECONDS = 5.0
_MISSED_BEATS = 3


class Claim:
    """The right to write to a folder, for the time of a `with` block.

    Args:
        folder: as `location` returns it for a URL.
    """

    def __init__(self, folder: Any):
        self._folder, self._marker = folder, folder / MARKER
        self._content = {"token": secrets.token_hex(16), "host": socket.gethostname(), "process": os.getpid()}
        self._beats, self._over, self._other = 0, threading.Event(), None
        self._thread = threading.Thread(target=self._keep, daemon=True)

    def __enter__(self) -> "Claim":
        """Takes the folder; raises ValueError if another process writes there, it is a file or cannot be written."""
        make_folder(self._folder)  # raises if it is a file
        with explained(self._folder, "be written"):
            if (other := self._other_writer()) is not None:
                time.sleep(BEAT_SECONDS * _MISSED_BEATS)
                if (now := self._other_writer()) not in (None, other):
                    raise self._taken(now)
            self._write()
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        """Removes the marker, unless it is another one's."""
        self._over.set()
        self._thread.join()
        with contextlib.suppress(Exception):  # the next writer waits some seconds
            if self._other_writer() is None:
                self._marker.unlink()

    def check(self) -> None:
        """Raises ValueError if another process has taken the folder."""
        with explained(self._folder):
            self._other = self._other or self._other_writer()
        if self._other is not None:
            raise self._taken(self._other)

    def _keep(self) -> None:
        while self._other is None and not self._over.wait(BEAT_SECONDS):
            with contextlib.suppress(Exception):  # the connection may come back
                self.check()
                self._write()

    def _other_writer(self) -> Any:
        """What the marker of another process says; None if there is none."""
        try:
            # In one request: `read_bytes` asks for the state first, and fails if the writer changes it meanwhile.
            content = json.loads(self._marker.fs.cat_file(self._marker.path))
            return None if content["token"] == self._content["token"] else content
        except (FileNotFoundError, ValueError, LookupError, TypeError):  # or it is damaged
            return None

    def _write(self) -> None:
        self._beats += 1
        self._marker.write_bytes(json.dumps({**self._content, "beats": self._beats}).encode())

    def _taken(self, other: Any) -> ValueError:
        who = f"process {other['process']} on {other['host']}"
        return ValueError(
            f"{self._folder} is being written by another process ({who}); wait for it, stop it, or give another folder."
        )
