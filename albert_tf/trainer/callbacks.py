"""Keras callbacks of a training run: each does one thing at the end of a batch or of a reporting interval.

Keras calls an interval an epoch here: `log_every` updates.
"""

import json
import math
import pathlib
import time
from typing import Any

import keras
import rich.console
import rich.progress


class StopAtNonFiniteLoss(keras.callbacks.Callback):
    """Ends training with one sentence that names the step as soon as the loss is not finite."""

    def on_train_batch_end(self, batch, logs=None):
        loss = float((logs or {}).get("loss", 0.0))
        if not math.isfinite(loss):
            step = int(self.model.optimizer.iterations.numpy())
            rate = float(self.model.optimizer.learning_rate)
            raise ValueError(
                f"The loss must stay finite. Received: loss={loss} at step {step} with learning rate {rate:.3g}; "
                "lower the learning rate or lengthen warm-up, and start again from the last checkpoint."
            )


class MetricsLog(keras.callbacks.Callback):
    """Appends one JSON line for every interval to a file: step, metrics, learning rate, tokens per second.

    Args:
        file: a `.jsonl` file; lines beyond the step that training starts from are dropped.
        tokens_per_step: int.
    """

    def __init__(self, file: pathlib.Path, tokens_per_step: int):
        super().__init__()
        self.file, self.tokens_per_step = file, tokens_per_step

    def on_train_begin(self, logs=None):
        step = int(self.model.optimizer.iterations.numpy())
        kept = [entry for entry in read_metrics(self.file) if entry["step"] <= step]
        self.file.write_text("".join(json.dumps(entry) + "\n" for entry in kept), encoding="utf-8")
        self._step, self._time = step, time.monotonic()

    def on_epoch_begin(self, epoch, logs=None):
        self._step, self._time = int(self.model.optimizer.iterations.numpy()), time.monotonic()

    def on_train_batch_end(self, batch, logs=None):
        self._seconds = time.monotonic() - self._time  # evaluation, which follows, does not count

    def on_epoch_end(self, epoch, logs=None):
        step = int(self.model.optimizer.iterations.numpy())
        entry = {"step": step, **{name: float(value) for name, value in (logs or {}).items()}}
        entry["learning_rate"] = float(self.model.optimizer.learning_rate)
        entry["tokens_per_second"] = (step - self._step) * self.tokens_per_step / max(self._seconds, 1e-9)
        with self.file.open("a", encoding="utf-8") as file:
            file.write(json.dumps(entry) + "\n")


class SaveState(keras.callbacks.Callback):
    """Saves the training state at intervals.

    Args:
        state: TrainingState.
        every: int. Updates between two checkpoints.
    """

    def __init__(self, state, every: int):
        super().__init__()
        self.state, self.every = state, every

    def on_epoch_end(self, epoch, logs=None):
        if self.state.step % self.every == 0:
            self.state.save()


class ProgressLine(keras.callbacks.Callback):
    """A progress bar with loss, tokens per second and remaining time; plain lines where there is no terminal.

    Args:
        title: what is being done.
        total: updates in all.
        tokens_per_step: int.
        lines_every: updates between two lines where there is no terminal.
    """

    def __init__(self, title: str, total: int, tokens_per_step: int, lines_every: int):
        super().__init__()
        self.title, self.total, self.tokens_per_step, self.lines_every = title, total, tokens_per_step, lines_every
        self.console = rich.console.Console(stderr=True)

    def on_train_begin(self, logs=None):
        columns: tuple[Any, ...] = (
            rich.progress.TextColumn("{task.description}"),
            rich.progress.BarColumn(),
            rich.progress.MofNCompleteColumn(),
            rich.progress.TextColumn("loss {task.fields[loss]:.3f}  {task.fields[rate]}"),
            rich.progress.TimeRemainingColumn(),
        )
        self._first = self._step()
        self._begun = time.monotonic()
        self._bar = rich.progress.Progress(*columns, console=self.console, disable=not self.console.is_terminal)
        self._bar.start()
        self._task = self._bar.add_task(self.title, total=self.total, completed=self._first, loss=math.nan, rate="")

    def on_train_batch_end(self, batch, logs=None):
        step, loss = self._step(), float((logs or {}).get("loss", math.nan))
        speed = (step - self._first) / max(time.monotonic() - self._begun, 1e-9)
        rate = f"{speed * self.tokens_per_step / 1000:.1f}k tokens/s"
        self._bar.update(self._task, completed=step, loss=loss, rate=rate)
        if not self.console.is_terminal and step % self.lines_every == 0:
            left = (self.total - step) / max(speed, 1e-9)
            self.console.print(f"{self.title} {step}/{self.total}  loss {loss:.3f}  {rate}  {left:.0f} s left")

    def on_train_end(self, logs=None):
        self._bar.stop()

    def _step(self) -> int:
        return int(self.model.optimizer.iterations.numpy())


def read_metrics(file: pathlib.Path) -> list[dict[str, float]]:
    """The whole lines of a metrics file; a last line cut short by a kill is left out."""
    if not file.is_file():
        return []
    lines = file.read_text(encoding="utf-8").split("\n")[:-1]
    return [json.loads(line) for line in lines if line]
