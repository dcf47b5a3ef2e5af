"""TensorBoard logs of a run: scalars of every interval, and histograms of the weights."""

import pathlib

import keras
import tensorflow as tf

from albert_tf.trainer.run_folder import Speed


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
                tf.summary.scalar(scalar_name(name), value)
            if self.histograms_every is not None and step % self.histograms_every == 0:
                for variable in self.model.trainable_variables:
                    tf.summary.histogram(f"weights/{variable.path}", variable.numpy())
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
