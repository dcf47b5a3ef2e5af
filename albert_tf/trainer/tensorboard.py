"""TensorBoard logs of a run: scalars of every interval, and histograms of the weights."""

import pathlib

import keras
import numpy as np
import tensorflow as tf

from albert_tf.trainer.run_folder import Speed

_SCALAR, _TENSOR = 1, 2  # data classes of TensorFlow's `summary.proto`


class TensorBoardLog(keras.callbacks.Callback):
    """Writes logs against the number of updates; Keras' callback would count epochs.

    Scalars are named `train/NAME`, `held_out/NAME`, `speed/NAME`, `gradients/NAME` and `trust_ratio/PATH`.

    Args:
        folder: folder of the event files.
        histograms_every: updates between two histograms of each trainable variable; None for no histograms.
    """

    def __init__(self, folder: pathlib.Path, histograms_every: int | None = None):
        super().__init__()
        self.folder, self.histograms_every = folder, histograms_every

    def on_train_begin(self, logs=None):
        self._writer = tf.summary.create_file_writer(str(self.folder))

    def on_epoch_end(self, epoch, logs=None):
        step = int(self.model.optimizer.iterations.numpy())
        with self._writer.as_default(step=step):
            for name, value in (logs or {}).items():
                _write(scalar_name(name), np.float32(value), "scalars", _SCALAR)
            if self.histograms_every is not None and step % self.histograms_every == 0:
                for variable in self.model.trainable_variables:
                    _write(f"weights/{variable.path}", _buckets(variable.numpy()), "histograms", _TENSOR)
        self._writer.flush()

    def on_train_end(self, logs=None):
        self._writer.close()


def _write(name: str, value: np.ndarray | np.float32, plugin: str, data_class: int) -> None:
    """Writes what a plugin of TensorBoard shows; `tf.summary.scalar` would need TensorBoard itself."""
    metadata = tf.compat.v1.SummaryMetadata(data_class=data_class)
    metadata.plugin_data.plugin_name = plugin
    tf.summary.write(name, value, metadata=metadata)


def _buckets(values: np.ndarray) -> np.ndarray:
    """Left border, right border and number of values of each bucket, [buckets, 3]."""
    counts, borders = np.histogram(values[np.isfinite(values)], bins=30)
    return np.stack([borders[:-1], borders[1:], counts], axis=1)


def scalar_name(log: str) -> str:
    """The name of a log in TensorBoard."""
    if log.startswith("trust_ratio/"):
        return log
    if log.startswith("val_"):
        return f"held_out/{log.removeprefix('val_')}"
    if log in Speed.__dataclass_fields__:
        return f"speed/{log}"
    return f"{'gradients' if log in ('gradient_norm', 'loss_scale') else 'train'}/{log}"
