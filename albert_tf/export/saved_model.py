"""Export to SavedModels that take raw text, in the numbered folders of TF Serving."""

import dataclasses
import importlib
import pathlib
from typing import Any, Literal

import tensorflow as tf

from albert_tf.data.finetuning.text_counts import count_texts
from albert_tf.export.checks import check_length, without_none
from albert_tf.export.model_card import write_model_card
from albert_tf.export.serve_base import Form, ServedModel
from albert_tf.export.versions import publish, version_folder
from albert_tf.files.atomic import temporary_folder, tensorflow_writes
from albert_tf.files.exports import SAVED_MODEL
from albert_tf.files.hub import model_folder
from albert_tf.files.urls import location
from albert_tf.inference.folder import ModelFolder, load_folder
from albert_tf.inference.loading import TOKENIZER_FOLDER
from albert_tf.layers.kernels import in_full_float32
from albert_tf.tasks.sequence_classification.settings import Threshold
from albert_tf.tasks.table import TASKS, WindowsName

TOLERANCE, BFLOAT16_TOLERANCE = 1e-5, 0.05


@dataclasses.dataclass(frozen=True)
class ExportReport:
    """Result of an export.

    Attributes:
        folder: `<output>/<name>/<version>`, or that of both modules for TF Hub.
        signatures: names of the signatures, for TF Hub those of the encoder.
        largest_difference: maximum absolute difference between scores, for TF Hub all outputs, of the Keras model and
            the SavedModel; in bfloat16 between all outputs for tokens, in units of the largest number of an output if
            that is above 1.
    """

    folder: pathlib.Path
    signatures: tuple[str, ...]
    largest_difference: float


def export_saved_model(
    source: str | pathlib.Path,
    output: str | pathlib.Path,
    name: str,
    version: int | None = None,
    max_length: int | None = None,
    threshold: Threshold | None = None,
    license: str | None = None,
    precision: Literal["float32", "bfloat16"] = "float32",
    frozen: bool = False,
    xla: bool = False,
    flash_attention: bool = False,
    attention: bool = False,
    windows: WindowsName | None = None,
    pair_column: str | None = None,
) -> ExportReport:
    """Writes a model as a SavedModel that only needs TensorFlow and tensorflow-text.

    It is published only after it has been loaded and reproduced the Keras model's scores on sample texts. See
    `saved_models/README.md` for the signatures.

    Args:
        source: a folder with a model and its vocabulary.
        output: folder of all models, such as `saved_models`.
        name: name of the model, a folder in `output`.
        version: version number. None: the next one.
        max_length: maximum number of tokens. None: as in training, else the model's maximum.
        threshold: of a model of any number of labels per text, see `albert_tf.pipeline`.
        license: of the model, for its description, such as `"Apache-2.0"`.
        precision: of weights and computation; outputs are float32. `"bfloat16"` halves the weights' size.
        frozen: whether the weights are constants of the graph rather than variables.
        xla: whether XLA compiles the network, for few shapes of its inputs, see `saved_models/README.md`. For GPUs.
        flash_attention: whether a model in bfloat16 attends with cuDNN, with `xla`. It then runs on NVIDIA GPUs since
            A100 alone, and is exported on one, which checks it.
        attention: whether to add the signature `attention`, which makes the graph larger by a third.
        windows: for labels and numbers of single texts, how the logits of the windows of a long one are joined,
            `"mean"` or `"max"`. None: as in training.
        pair_column: of a classifier whose folder does not tell what it was trained on, `"text_pair"` for pairs. None:
            single texts.

    Raises:
        ValueError: the version exists, `name` is not a folder name, the model has fewer positions than `max_length`, or
            scores differ by more than 1e-5, in bfloat16 by more than 0.05.
    """
    if precision not in ("float32", "bfloat16"):
        raise ValueError(f"`precision` must be 'float32' or 'bfloat16'. Received: precision={precision!r}.")
    folder = version_folder(location(output), name, version, SAVED_MODEL)
    form, source = Form(frozen, xla, flash_attention, attention), model_folder(source)
    loaded = load_folder(source)
    if max_length is not None:
        check_length("max_length", max_length, loaded.model.config.max_position_embeddings)
    changes = without_none(max_length=max_length, threshold=threshold, windows=windows, pair_column=pair_column)
    loaded = loaded.changed(**changes)
    is_exact = precision == "float32"
    served = served_model(loaded if is_exact else load_folder(source, precision).changed(**changes), form)
    with temporary_folder(folder) as partial:
        with tensorflow_writes(folder):
            tf.saved_model.save(served, str(partial), signatures=served.signatures())
        loaded.tokenizer.save_pretrained(partial / TOKENIZER_FOLDER)
        restored = tf.saved_model.load(str(partial))
        difference = _checked_difference(served_model(loaded, Form()), restored, is_exact)
        facts = {"precision": precision, "frozen": frozen, "xla": form.compiled, "lengths": served.lengths}
        write_model_card(partial, loaded, name, source, license, {**facts, "largest_difference": difference})
        publish(partial, folder)
    return ExportReport(folder, tuple(sorted(restored.signatures)), difference)


def served_model(loaded: ModelFolder, form: Form) -> ServedModel:
    """The object that is exported for a model."""
    module, _, kind = next(task.serving for task in TASKS if task.model == type(loaded.model).__name__).partition(".")
    return getattr(importlib.import_module(f"albert_tf.export.{module}"), kind)(loaded, form)


@in_full_float32()
def _checked_difference(exact: ServedModel, restored: Any, is_exact: bool) -> float:
    """The largest difference of a SavedModel from the Keras model; raises ValueError if it is too large."""
    with count_texts():  # the samples are long and empty on purpose
        difference = exact.largest_difference(restored) if is_exact else exact.largest_rounding(restored)
    if not difference <= (TOLERANCE if is_exact else BFLOAT16_TOLERANCE):
        raise ValueError(
            f"The scores of the SavedModel differ by {difference:.2e} from those of the Keras model (tolerance "
            f"{TOLERANCE}). Nothing was written; please report this as a bug."
            if is_exact
            else f"The outputs in bfloat16 differ by {difference:.2e} from those in float32 (tolerance "
            f"{BFLOAT16_TOLERANCE}). Nothing was written; export the model in float32."
        )
    return difference
