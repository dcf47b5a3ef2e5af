"""Keras callbacks of a training run.

One reporting interval, `log_every` updates, is one Keras epoch.
"""

import dataclasses
import json
import math
import pathlib
import time
from typing import Any

import keras
import numpy as np
import rich.console
import rich.progress
import tensorflow as tf

from albert_tf.files.atomic import atomic_write
from albert_tf.files.json import finite
from albert_tf.trainer.run_folder import Speed, read_metrics

_SECONDS_BETWEEN_REFRESHES = 10.0
_WIDTH_WITH_BAR = 130  # of a terminal: narrower ones have room for loss, tokens per second and remaining time
_STEPS_BETWEEN_CHECKS = 100
_GRADIENTS_SHOWN = 10
_SCALAR = 1  # a data class of TensorFlow's `summary.proto`


class StopAtBadLoss(keras.callbacks.Callback):
    """Raises ValueError if the loss is not finite, or has risen far above the best.

    The message gives step, learning rate and the ten largest gradients. The device records the first step that failed
    (see StepMonitor), so it is not read after every step.

    Args:
        stop_above_best: float or None. By how many nats an interval's mean loss may exceed the lowest so far.
        metrics_file: pathlib.Path or None. The file of MetricsLog, which must come before this callback.
        cure: str. What to do after changing the recipe.
    """

    def __init__(
        self,
        stop_above_best: float | None = None,
        metrics_file: pathlib.Path | None = None,
        cure: str = "resume from the last checkpoint",
    ):
        super().__init__()
        self.stop_above_best, self.metrics_file, self.cure = stop_above_best, metrics_file, cure

    def on_train_begin(self, logs=None):
        entries = read_metrics(self.metrics_file) if self.metrics_file is not None else []
        self._best = min((entry["loss"] for entry in entries), default=math.inf)

    def on_train_batch_begin(self, batch, logs=None):
        if batch and batch % _STEPS_BETWEEN_CHECKS == 0:
            self._check_finite()

    def on_epoch_end(self, epoch, logs=None):
        self._check_finite()
        loss = float((logs or {})["loss"])
        if self.stop_above_best is not None and loss > self._best + self.stop_above_best:
            problem = (
                f"The mean loss has risen to {loss:.3f}, more than stop_above_best = {self.stop_above_best:g} above "
                f"the best, {self._best:.3f},"
            )
            raise ValueError(_bad_loss(problem, self.model.step_monitor.snapshot(), self.cure))
        self._best = min(self._best, loss)

    def _check_finite(self):
        monitor = self.model.step_monitor
        if monitor.has_failed:
            step = monitor.snapshot()
            raise ValueError(_bad_loss(f"The loss is not finite: {step.loss}", step, self.cure))


def _bad_loss(problem: str, step, cure: str) -> str:
    return (
        f"{problem} at step {step.step} with learning rate {step.learning_rate:.3g}, {largest_gradients(step)}; "
        f"lower the learning rate or lengthen warm-up, and {cure}."
    )


def largest_gradients(step) -> str:
    """Lists the largest gradients of a StepSnapshot by variable path, starting with those that are not finite."""
    norms, title = step.norms, "largest gradients"
    not_finite = sum(not math.isfinite(norm) for norm in norms.values())
    if not_finite >= _GRADIENTS_SHOWN:  # then the last finite step says more
        title = f"{not_finite} of {len(norms)} gradients not finite, the largest gradients of the last finite step"
        norms = step.finite_norms
    order = sorted(norms, key=lambda path: norms[path] if math.isfinite(norms[path]) else math.inf, reverse=True)
    return f"{title}: " + ", ".join(f"{path} {norms[path]:.3g}" for path in order[:_GRADIENTS_SHOWN])


class GradientLog(keras.callbacks.Callback):
    """Adds gradient statistics of the last step to the logs; must come before callbacks that write logs.

    These are `gradient_norm` (before clipping), `loss_scale` with mixed_float16, and `trust_ratio/PATH` for each
    variable if the optimizer keeps them.
    """

    def on_epoch_end(self, epoch, logs=None):
        optimizer = self.model.optimizer
        logs = {} if logs is None else logs
        logs["gradient_norm"] = self.model.step_monitor.gradient_norm
        if hasattr(optimizer, "dynamic_scale"):
            logs["loss_scale"] = float(optimizer.dynamic_scale.numpy())
        ratios = getattr(getattr(optimizer, "inner_optimizer", optimizer), "trust_ratios", dict)()
        logs.update({f"trust_ratio/{path}": ratio for path, ratio in ratios.items()})


class Stopwatch:
    """Measures the throughput of `model.fit` since construction.

    Each reading synchronises with the device, so read it rarely.
    """

    def __init__(self, model, tokens_per_step: int):
        self.model, self.tokens_per_step = model, tokens_per_step
        self._start = self._now()

    def read(self) -> Speed:
        """The throughput so far."""
        steps, seconds, waited = (now - start for now, start in zip(self._now(), self._start, strict=True))
        steps, seconds = max(steps, 1), max(seconds, 1e-9)
        return Speed(steps * self.tokens_per_step / seconds, seconds / steps, waited / seconds)

    def _now(self) -> tuple[int, float, float]:
        step = int(self.model.optimizer.iterations.numpy())
        return step, time.monotonic(), self.model.step_monitor.input_stall_seconds


class SpeedLog(keras.callbacks.Callback):
    """Adds the learning rate and the interval's Speed to the logs; must come before callbacks that use logs."""

    def __init__(self, tokens_per_step: int):
        super().__init__()
        self.tokens_per_step = tokens_per_step

    def on_epoch_begin(self, epoch, logs=None):
        self._stopwatch, self._speed = Stopwatch(self.model, self.tokens_per_step), None

    def on_test_begin(self, logs=None):
        self._speed = self._stopwatch.read()  # excludes evaluation

    def on_epoch_end(self, epoch, logs=None):
        logs = {} if logs is None else logs
        logs["learning_rate"] = float(self.model.optimizer.learning_rate)
        logs.update(dataclasses.asdict(self._speed or self._stopwatch.read()))


class MetricsLog(keras.callbacks.Callback):
    """Appends one JSON line per interval to a file, with the step and all logs.

    Lines after the step that training resumes from are removed, because they will be written again.

    Args:
        file: a `.jsonl` file.
    """

    def __init__(self, file: pathlib.Path):
        super().__init__()
        self.file = file

    def on_train_begin(self, logs=None):
        step = int(self.model.optimizer.iterations.numpy())
        entries = [entry for entry in read_metrics(self.file) if entry["step"] <= step]
        if self.file.exists():
            atomic_write(self.file, "".join(map(_line, entries)).encode())

    def on_epoch_end(self, epoch, logs=None):
        step = int(self.model.optimizer.iterations.numpy())
        entry = {"step": step, **{name: float(value) for name, value in (logs or {}).items()}}
        with self.file.open("a", encoding="utf-8") as file:
            file.write(_line(entry))


def _line(entry: dict[str, float]) -> str:
    return json.dumps(finite(entry)) + "\n"


class TensorBoardLog(keras.callbacks.Callback):
    """Writes logs against the number of updates; Keras' callback would count epochs.

    Scalars are named `train/NAME`, `held_out/NAME`, `speed/NAME`, `gradients/NAME` and `trust_ratio/PATH`.

    Args:
        folder: folder of the event files.
    """

    def __init__(self, folder: pathlib.Path):
        super().__init__()
        self.folder = folder

    def on_train_begin(self, logs=None):
        self._writer = tf.summary.create_file_writer(str(self.folder))

    def on_epoch_end(self, epoch, logs=None):
        metadata = tf.compat.v1.SummaryMetadata(data_class=_SCALAR)  # `tf.summary.scalar` would need TensorBoard itself
        metadata.plugin_data.plugin_name = "scalars"
        with self._writer.as_default(step=int(self.model.optimizer.iterations.numpy())):
            for name, value in (logs or {}).items():
                tf.summary.write(scalar_name(name), np.float32(value), metadata=metadata)
        self._writer.flush()

    def on_train_end(self, logs=None):
        self._writer.close()


def scalar_name(log: str) -> str:
    """The name of a log in TensorBoard."""
    if log.startswith("trust_ratio/"):
        return log
    if log.startswith("val_"):
        return f"held_out/{log.removeprefix('val_')}"
    if log in Speed.__dataclass_fields__:
        return f"speed/{log}"
    return f"{'gradients' if log in ('gradient_norm', 'loss_scale') else 'train'}/{log}"


class SaveState(keras.callbacks.Callback):
    """Saves the training state every `save_every` updates, at the last one, and with each held-out score.

    Args:
        state: TrainingState.
    """

    def __init__(self, state):
        super().__init__()
        self.state = state

    def on_epoch_end(self, epoch, logs=None):
        step, training = self.state.step, self.state.training
        held_out = (logs or {}).get(f"val_{training.best_metric}")
        if held_out is not None and math.isnan(held_out):  # a correlation of equal predictions
            held_out = None
        if held_out is not None or step % training.save_every == 0 or step == training.num_train_steps:
            self.state.save(held_out)


class ProgressLine(keras.callbacks.Callback):
    """A progress bar with loss, throughput and remaining time; plain lines if stderr is not a terminal.

    Steps are counted on the host, and loss and throughput are rarely read from the device, so that steps can be queued
    ahead.

    Args:
        title: name of the task.
        total: total number of updates.
        tokens_per_step: int.
        lines_every: updates between two plain lines; the first one is printed after ten seconds.
    """

    def __init__(self, title: str, total: int, tokens_per_step: int, lines_every: int):
        super().__init__()
        self.title, self.total, self.tokens_per_step, self.lines_every = title, total, tokens_per_step, lines_every
        self.console = rich.console.Console(stderr=True)
        self._bar: Any = None

    def on_train_begin(self, logs=None):
        columns: tuple[Any, ...] = (
            rich.progress.TextColumn("{task.description}"),
            *([rich.progress.BarColumn()] if self.console.width >= _WIDTH_WITH_BAR else []),
            rich.progress.MofNCompleteColumn(),
            rich.progress.TextColumn("{task.fields[state]}"),
            rich.progress.TimeRemainingColumn(),
        )
        self._first = self._shown = self._step()
        self._shown_at = time.monotonic()
        self._bar = rich.progress.Progress(*columns, console=self.console, disable=not self.console.is_terminal)
        self._bar.start()
        self._task = self._bar.add_task(self.title, total=self.total, completed=self._first, state="")
        if (monitor := getattr(self.model, "step_monitor", None)) is not None:
            monitor.on_compile = self._show_compiling

    def on_epoch_begin(self, epoch, logs=None):
        self._interval_began, self._stopwatch = self._step(), Stopwatch(self.model, self.tokens_per_step)

    def on_train_batch_begin(self, batch, logs=None):
        step = self._interval_began + batch
        self._bar.update(self._task, completed=step)
        is_bar_or_first = self.console.is_terminal or self._shown == self._first
        is_due = is_bar_or_first and time.monotonic() - self._shown_at > _SECONDS_BETWEEN_REFRESHES
        if batch and (is_due or step - self._shown >= self.lines_every):
            self._show(step, self.model.step_monitor.snapshot().loss, self._stopwatch.read())

    def on_epoch_end(self, epoch, logs=None):
        logs, step = logs or {}, self._step()
        speed = Speed(*(logs[field.name] for field in dataclasses.fields(Speed)))
        if self.console.is_terminal or step - self._shown >= self.lines_every or step == self.total:
            self._show(step, logs["loss"], speed)

    def _show_compiling(self, shape: str, seconds: float | None):
        step = f"the step for batches of {shape}" if shape else "the step"
        state = f"compiling {step}" if seconds is None else f"compiled {step} in {seconds:.0f} s"
        self._bar.update(self._task, state=state)
        self._bar.refresh()
        if self.model.jit_compile and not self.console.is_terminal:
            self.console.print(f"{self.title}  {state}", soft_wrap=True)

    def close(self):
        """Stops the bar."""
        if self._bar is not None:
            self._bar.stop()

    def _show(self, step: int, loss: float, speed: Speed):
        self._shown, self._shown_at = step, time.monotonic()
        shown = speed if self.console.width >= _WIDTH_WITH_BAR else f"{speed.tokens_per_second / 1000:.1f}k tokens/s"
        self._bar.update(self._task, completed=step, state=f"loss {loss:.3f}  {shown}")
        if not self.console.is_terminal:
            left = (self.total - step) * speed.seconds_per_step  # of training alone
            line = f"{self.title} {step}/{self.total}  loss {loss:.3f}  {speed}  {left:.0f} s left"
            self.console.print(line, soft_wrap=True)

    def _step(self) -> int:
        return int(self.model.optimizer.iterations.numpy())
