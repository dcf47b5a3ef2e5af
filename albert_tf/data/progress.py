"""How far `prepare` is."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class PrepareProgress:
    """How far `prepare` is.

    Args:
        stage: `"tokenize"`, counted in bytes of text, then `"write"`, counted in tokens that examples were made of.
        done: amount done in this stage.
        total: amount to do in this stage.
    """

    stage: str
    done: int
    total: int


class Reporter:
    """Turns amounts of work into `PrepareProgress`."""

    def __init__(self, progress: Callable[[PrepareProgress], None] | None):
        self._progress = progress or (lambda _: None)

    def start(self, stage: str, total: int, done: int = 0) -> None:
        self._stage, self._total, self._done = stage, total, 0
        self.add(done)

    def add(self, amount: int) -> None:
        self._done += amount
        self._progress(PrepareProgress(self._stage, min(self._done, self._total), self._total))
