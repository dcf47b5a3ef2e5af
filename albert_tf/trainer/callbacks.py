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

from albert_tf.atomic_files import atomic_write
from albert_tf.trainer.speed import Speed, Stopwatch


class StopAtBadLoss(keras.callbacks.Callback):
    """Ends training with one sentence where the loss is not finite, or has risen far above its best.

    The sentence names step, learning rate and the ten largest gradients. No checkpoint is written any more.

    Args:
        stop_above_best: float or None. By how much, in nats, an interval's mean loss may lie above the lowest so far.
        metrics_file: pathlib.Path or None. Where MetricsLog, which must come first, keeps the losses so far.
    """

    def __init__(self, stop_above_best: float | None = None, metrics_file: pathlib.Path | None = None):
        super().__init__()
        self.stop_above_best, self.metrics_file = stop_above_best, metrics_file

    def on_train_begin(self, logs=None):
        entries = read_metrics(self.metrics_file) if self.metrics_file is not None else []
        self._best = min((entry["loss"] for entry in entries), default=math.inf)

    def on_train_batch_end(self, batch, logs=None):
        record = self.model.step_record
        if record.has_failed:
            raise ValueError(_bad_loss("stay finite", f"loss={record.report().loss}", record.report()))

    def on_epoch_end(self, epoch, logs=None):
        loss = float((logs or {})["loss"])
        if self.stop_above_best is not None and loss > self._best + self.stop_above_best:
            what = f"a mean loss of {loss:.3f} where the best was {self._best:.3f}"
            demand = f"stay within {self.stop_above_best:g} of the best (stop_above_best)"
            raise ValueError(_bad_loss(demand, what, self.model.step_record.report()))
        self._best = min(self._best, loss)


def _bad_loss(demand: str, received: str, report) -> str:
    return (
        f"The loss must {demand}. Received: {received} at step {report.step} with learning rate "
        f"{report.learning_rate:.3g}, {largest_gradients(report)}; lower the learning rate or lengthen warm-up, and "
        "start again from the last checkpoint."
    )


def largest_gradients(report, count: int = 10) -> str:
    """The largest gradients of a step with the paths of their variables, those that are not finite first."""
    norms, when = report.norms, "largest gradients"
    broken = sum(not math.isfinite(norm) for norm in norms.values())
    if broken >= count:  # a table of them would say nothing
        when = f"{broken} of {len(norms)} gradients not finite, the largest gradients of the last step before"
        norms = report.finite_norms
    order = sorted(norms, key=lambda path: norms[path] if math.isfinite(norms[path]) else math.inf, reverse=True)
    return f"{when}: " + ", ".join(f"{path} {norms[path]:.3g}" for path in order[:count])


class GradientLog(keras.callbacks.Callback):
    """Adds to an interval's logs what its last step's gradients were like; must come before those that write logs.

    These are `gradient_norm` (before clipping), `loss_scale` where the loss is scaled, and `trust_ratio/PATH` for each
    variable where the optimizer keeps them.
    """

    def on_epoch_end(self, epoch, logs=None):
        optimizer = self.model.optimizer
        logs = {} if logs is None else logs
        logs["gradient_norm"] = self.model.step_record.gradient_norm
        if hasattr(optimizer, "dynamic_scale"):
            logs["loss_scale"] = float(optimizer.dynamic_scale.numpy())
        ratios = getattr(getattr(optimizer, "inner_optimizer", optimizer), "trust_ratios", dict)()
        logs.update({f"trust_ratio/{path}": ratio for path, ratio in ratios.items()})


class MetricsLog(keras.callbacks.Callback):
    """Appends one JSON line for every interval to a file: its step and all of its logs.

    Args:
        file: a `.jsonl` file; lines beyond the step that training starts from are dropped.
    """

    def __init__(self, file: pathlib.Path):
        super().__init__()
        self.file = file

    def on_train_begin(self, logs=None):
        step = int(self.model.optimizer.iterations.numpy())
        kept = [entry for entry in read_metrics(self.file) if entry["step"] <= step]
        atomic_write(self.file, "".join(json.dumps(entry) + "\n" for entry in kept).encode())

    def on_epoch_end(self, epoch, logs=None):
        step = int(self.model.optimizer.iterations.numpy())
        entry = {"step": step, **{name: float(value) for name, value in (logs or {}).items()}}
        with self.file.open("a", encoding="utf-8") as file:
            file.write(json.dumps(entry) + "\n")


class SaveState(keras.callbacks.Callback):
    """Saves the training state at intervals, and when the model is better than at any checkpoint before.

    Args:
        state: TrainingState.
        training: TrainingRecipe: how often, and by which log of held-out examples the model is judged. The last step is
            saved in any case: after it, averages may take the place of the weights.
    """

    def __init__(self, state, training):
        super().__init__()
        self.state, self.training = state, training

    def on_epoch_end(self, epoch, logs=None):
        step, held_out = self.state.step, (logs or {}).get(f"val_{self.training.best_metric}")
        is_due = step % self.training.save_every == 0 or step == self.training.num_train_steps
        if is_due or (held_out is not None and self.state.writer.is_best(held_out)):
            self.state.save(held_out)


class ProgressLine(keras.callbacks.Callback):
    """A progress bar with loss, speed of the interval and remaining time; plain lines where there is no terminal.

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
        self._bar: Any = None

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

    def on_epoch_begin(self, epoch, logs=None):
        self._stopwatch = Stopwatch(self.model, self.tokens_per_step)

    def on_train_batch_end(self, batch, logs=None):
        step, loss, rate = self._step(), float((logs or {}).get("loss", math.nan)), _in_words(self._stopwatch.read())
        self._bar.update(self._task, completed=step, loss=loss, rate=rate)
        if not self.console.is_terminal and step % self.lines_every == 0:
            # Evaluation and saving take their time again, so that the mean of the whole run tells what is left.
            left = (self.total - step) * (time.monotonic() - self._begun) / max(step - self._first, 1)
            self.console.print(
                f"{self.title} {step}/{self.total}  loss {loss:.3f}  {rate}  {left:.0f} s left", soft_wrap=True
            )

    def on_train_end(self, logs=None):
        if self._bar is not None:
            self._bar.stop()

    def _step(self) -> int:
        return int(self.model.optimizer.iterations.numpy())


def _in_words(speed: Speed) -> str:
    return (
        f"{speed.tokens_per_second / 1000:.1f}k tokens/s  {speed.seconds_per_step:.3g} s/step  "
        f"input wait {speed.input_wait_share:.1%}"
    )


def read_metrics(file: pathlib.Path) -> list[dict[str, float]]:
    """The whole lines of a metrics file; a last line cut short by a kill is left out."""
    if not file.is_file():
        return []
    lines = file.read_text(encoding="utf-8").split("\n")[:-1]
    return [json.loads(line) for line in lines if line]
