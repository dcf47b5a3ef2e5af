"""SavedModels that take raw text and return named scores, in the numbered folders that TF Serving reads."""

import dataclasses
import errno
import os
import pathlib

import tensorflow as tf

from albert_tf.atomic_files import temporary_folder, tensorflow_writes
from albert_tf.export.folder import ModelFolder, load_folder
from albert_tf.export.serve_classifier import ServedClassifier
from albert_tf.export.serve_masked_lm import ServedMaskedLM

TOLERANCE = 1e-5


@dataclasses.dataclass(frozen=True)
class ExportReport:
    """What was written.

    Attributes:
        folder: `<output>/<name>/<version>`.
        version: its number.
        signatures: names of the signatures.
        largest_difference: between scores of the Keras model and of the SavedModel, absolute, on sample texts.
    """

    folder: pathlib.Path
    version: int
    signatures: tuple[str, ...]
    largest_difference: float


def export_saved_model(
    source: str | pathlib.Path | ModelFolder,
    output: str | pathlib.Path,
    name: str,
    version: int | None = None,
    max_length: int | None = None,
) -> ExportReport:
    """Writes a model as a SavedModel that needs nothing but TensorFlow and tensorflow-text.

    The folder gets its name only after the SavedModel was loaded and gave the scores of the Keras model on sample texts
    of many lengths. The signatures are described in `saved_models/README.md`.

    Args:
        source: a folder with a model and its vocabulary, or a ModelFolder.
        output: folder of all models, such as `saved_models`.
        name: name of the model, a folder in it.
        version: version number; None: the next one.
        max_length: tokens per text; None: as in training, else as many as the model takes.

    Returns:
        ExportReport.

    Raises:
        ValueError: the version exists, `name` is not a folder name, or the scores differ by more than 1e-5.
    """
    loaded = source if isinstance(source, ModelFolder) else load_folder(source)
    if max_length is not None:
        loaded = dataclasses.replace(loaded, max_length=max_length)
    folder = _version_folder(pathlib.Path(output), name, version)
    served = _served(loaded)
    with temporary_folder(folder) as partial:
        with tensorflow_writes(folder):
            tf.saved_model.save(served, str(partial), signatures=served.signatures())
        restored = tf.saved_model.load(str(partial))
        difference = served.largest_difference(restored)
        if not difference <= TOLERANCE:
            raise ValueError(
                f"The scores of the SavedModel differ by {difference:.2e} from those of the Keras model (tolerance "
                f"{TOLERANCE}). Nothing was written; please report this as a bug."
            )
        folder = _publish(partial, folder, may_count_up=version is None)
    return ExportReport(folder, int(folder.name), tuple(sorted(restored.signatures)), difference)


def _served(loaded: ModelFolder) -> ServedClassifier | ServedMaskedLM:
    return ServedClassifier(loaded) if loaded.is_classifier else ServedMaskedLM(loaded)


def _version_folder(output: pathlib.Path, name: str, version: int | None) -> pathlib.Path:
    if not name or name != pathlib.Path(name).name or name.startswith("."):
        raise ValueError(f"`name` must be the name of a folder. Received: name={name!r}; leave out slashes and dots.")
    taken = [int(path.name) for path in (output / name).glob("*") if path.name.isdecimal()]
    if version is None:
        version = max(taken, default=0) + 1
    if version < 1 or version in taken:
        raise ValueError(
            f"`version` must be a new number of at least 1. Received: version={version} where {output / name} has "
            f"{', '.join(map(str, sorted(taken))) or 'none'}; leave it out to get the next one."
        )
    return output / name / str(version)


def _publish(partial: pathlib.Path, folder: pathlib.Path, may_count_up: bool) -> pathlib.Path:
    """Renames a finished folder, so that a server never sees a part of a version; returns its final name."""
    os.chmod(partial, 0o755)  # temporary folders are for their owner alone
    while True:
        try:
            return partial.rename(folder)
        except OSError as error:
            if error.errno not in (errno.EEXIST, errno.ENOTEMPTY):
                raise
            if not may_count_up:
                raise ValueError(
                    f"{folder} was written by another process meanwhile; leave out the version to get the next one."
                ) from None
            folder = folder.with_name(str(int(folder.name) + 1))
