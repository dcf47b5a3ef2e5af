"""Export to SavedModels that take raw text, in the numbered folders of TF Serving."""

import dataclasses
import importlib
import pathlib

import tensorflow as tf

from albert_tf.atomic_files import temporary_folder, tensorflow_writes
from albert_tf.export.folder import ModelFolder, load_folder
from albert_tf.export.model_card import write_model_card
from albert_tf.export.versions import publish, version_folder
from albert_tf.export.warmup import check_serving_api, write_warmup_requests
from albert_tf.hub import model_folder
from albert_tf.tasks import TASKS

TOLERANCE = 1e-5


@dataclasses.dataclass(frozen=True)
class ExportReport:
    """Result of an export.

    Attributes:
        folder: `<output>/<name>/<version>`.
        version: the version number.
        signatures: names of the signatures.
        largest_difference: maximum absolute difference between scores of the Keras model and the SavedModel.
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
    license: str | None = None,
    warmup: bool = False,
) -> ExportReport:
    """Writes a model as a SavedModel that only needs TensorFlow and tensorflow-text.

    It is published only after it has been loaded and reproduced the Keras model's scores on sample texts. See
    `saved_models/README.md` for the signatures.

    Args:
        source: a folder with a model and its vocabulary, or a ModelFolder.
        output: folder of all models, such as `saved_models`.
        name: name of the model, a folder in `output`.
        version: version number. None: the next one.
        max_length: maximum number of tokens. None: as in training, else the model's maximum.
        license: of the model, for its description, such as `"Apache-2.0"`.
        warmup: whether to write requests that TensorFlow Serving runs before the first one of a client; needs
            tensorflow-serving-api.

    Raises:
        ValueError: the version exists, `name` is not a folder name, or scores differ by more than 1e-5.
    """
    if warmup:
        check_serving_api()
    source = source if isinstance(source, ModelFolder) else model_folder(source)
    loaded = source if isinstance(source, ModelFolder) else load_folder(source)
    if max_length is not None:
        loaded = dataclasses.replace(loaded, max_length=max_length)
    folder = version_folder(pathlib.Path(output), name, version)
    module, _, kind = next(task.serving for task in TASKS if task.model == type(loaded.model).__name__).partition(".")
    served = getattr(importlib.import_module(f"albert_tf.export.{module}"), kind)(loaded)
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
        if warmup:
            write_warmup_requests(partial, name, served.samples())
        write_model_card(
            partial, loaded, name, None if isinstance(source, ModelFolder) else pathlib.Path(source), license
        )
        folder = publish(partial, folder, may_increment=version is None)
    return ExportReport(folder, int(folder.name), tuple(sorted(restored.signatures)), difference)
