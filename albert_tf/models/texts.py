"""Texts straight into `fit`, `evaluate` and `predict`.

Letters: N texts, B batch, L sequence, C classes.
"""

import itertools
import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import keras
import numpy as np

from albert_tf.data.finetuning.encoded import MAX_TOKENS, EncodedTexts, epoch_batches, rows_by_length
from albert_tf.data.finetuning.text_counts import report_together
from albert_tf.files.json import nearest
from albert_tf.layers.kernels import runs_on_cpu
from albert_tf.models.inputs import check_labels
from albert_tf.models.preprocessor import Preprocessor

_BATCH_SIZE = 32  # Keras' own default


def columns_of(model: Any, x: Any) -> list[list[Any]] | None:
    """The texts in inputs, and their pairs if there are, as lists; None for inputs that the model takes as they are.

    Raises:
        ValueError: the model's `preprocessor` is something else.
    """
    if model.preprocessor is None or not model.max_columns:
        return None
    if not isinstance(model.preprocessor, Preprocessor):
        raise ValueError(
            f"`model.preprocessor` must be a Preprocessor or None. Received: {model.preprocessor!r}; set "
            "Preprocessor(tokenizer)."
        )
    is_pair = isinstance(x, tuple) and len(x) == 2 and not any(isinstance(column, str) for column in x)
    columns = [texts for column in (x if is_pair else (x,)) if (texts := _texts(column)) is not None]
    return columns if len(columns) == 1 + is_pair else None


def _texts(column: Any) -> list[Any] | None:
    """A list, an array, a tensor or a pandas Series of strings as a list; None for anything else."""
    dtype = getattr(column, "dtype", None)
    if dtype is not None:
        is_text = getattr(dtype, "kind", "") in ("O", "U", "S", "T") or dtype == "string"
        column = np.asarray(column, object).tolist() if is_text and len(column.shape) == 1 else None
    if not isinstance(column, Sequence) or isinstance(column, str | bytes):
        return None
    return list(column) if not len(column) or any(isinstance(text, str | bytes) for text in column) else None


@dataclass(frozen=True)
class _Examples:
    """N tokenized texts, alone, with labels, or with labels and weights."""

    encoded: EncodedTexts
    labels: tuple[Any, ...] = ()

    def batch(self, rows: np.ndarray) -> tuple[Any, ...]:
        """Inputs, and labels and weights if there are, of some of them."""
        inputs = self.encoded.batch(rows, 8 if runs_on_cpu() else None)
        return inputs, *keras.tree.map_structure(lambda array: array[rows], self.labels)


class TextBatches(keras.utils.PyDataset):
    """Batches of some of the examples.

    Args:
        examples: the examples.
        rows: the indices of those, int [N].
        batch_size: B.
        order: `"shuffled"`, in batches of similar length that are others in each epoch; `"unchanged"`; or `"sorted"` by
            length.
        max_tokens: of sorted batches, see `rows_by_length`.
    """

    def __init__(
        self, examples: _Examples, rows: np.ndarray, batch_size: int, order: str, max_tokens: int | None = None
    ):
        super().__init__()
        self._examples, self._rows, self._batch_size, self._order = examples, rows, batch_size, order
        self._max_tokens, self._seed, self._epochs = max_tokens, random.randrange(1 << 32), itertools.count()
        self.batches = self._draw()

    def _draw(self) -> list[np.ndarray]:
        lengths, size = self._examples.encoded.lengths[self._rows], self._batch_size
        if self._order == "shuffled":
            batches = epoch_batches(lengths, size, self._seed, next(self._epochs))
        elif self._order == "unchanged":
            batches = np.split(np.arange(len(lengths)), range(size, len(lengths), size))
        else:
            batches = rows_by_length(lengths, size, self._max_tokens, longest_first=True)
        return [self._rows[batch] for batch in batches]

    def __len__(self) -> int:
        return len(self.batches)

    def __getitem__(self, index: int) -> tuple[Any, ...]:
        if index == 0 and self._order == "shuffled":  # an epoch begins
            self.batches = self._draw()
        return self._examples.batch(self.batches[index])

    def of_texts(self, outputs: Any, model: Any) -> Any:
        """Outputs [N, ...] for all batches, one after the other, in the order of the texts; windows are joined."""
        places, encoded = np.argsort(np.concatenate(self.batches)), self._examples.encoded
        outputs = keras.tree.map_structure(lambda array: array[places], outputs)
        if encoded.text is None:
            return outputs
        return {"logits": encoded.joined(outputs["logits"], model.preprocessor.windows, model.problem)}


@report_together()
def in_batches(model: Any, arguments: dict[str, Any], method: str) -> dict[str, Any]:
    """The arguments of `fit`, `evaluate` or `predict` by name, with TextBatches in the place of texts and labels."""
    arguments, size = dict(arguments), arguments.get("batch_size") or _BATCH_SIZE
    held_out_size, validation = arguments.get("validation_batch_size") or size, arguments.get("validation_data")
    if isinstance(validation, list | tuple) and (columns := columns_of(model, validation[0])):
        examples = _labelled(model, columns, *validation[1:])
        arguments["validation_data"] = TextBatches(examples, np.arange(len(columns[0])), held_out_size, "sorted")
    columns = columns_of(model, arguments.get("x"))
    if columns is None:
        return arguments
    if not columns[0]:
        return {**arguments, "x": np.zeros((0, 8), "int32")}
    rows, order = np.arange(len(columns[0])), "sorted"
    if method == "predict":
        if arguments.get("steps") is not None:
            raise ValueError(f"`steps` must be None for texts. Received: steps={arguments['steps']}; pass fewer texts.")
        # JAX compiles for every shape.
        limit = MAX_TOKENS if runs_on_cpu() and keras.backend.backend() != "jax" else None
        examples = _Examples(model.preprocessor.encode(model, columns))
        rows = np.arange(len(examples.encoded))  # more than texts if there are windows
        return {**arguments, "x": TextBatches(examples, rows, size, order, limit)}
    labels = (arguments.pop(name, None) for name in ("y", "sample_weight", "class_weight"))
    examples = _labelled(model, columns, *labels)
    if method == "fit":
        order = "shuffled" if arguments.get("shuffle", True) else "unchanged"
        arguments["shuffle"] = False  # it is done here
        fraction = arguments.pop("validation_split", None)
        if fraction and validation is None:
            rows, held_out = np.split(rows, [math.floor(len(rows) * (1 - fraction))])  # the last ones, as in Keras
            if not len(rows) or not len(held_out):
                raise ValueError(
                    f"`validation_split` must leave texts to train on and to validate. Received: validation_split="
                    f"{fraction} of {len(columns[0])} texts."
                )
            arguments["validation_data"] = TextBatches(examples, held_out, held_out_size, "sorted")
    return {**arguments, "x": TextBatches(examples, rows, size, order)}


def one_batch(model: Any, columns: list[list[Any]]) -> dict[str, np.ndarray]:
    """The inputs of all texts, in their order."""
    _check_one_row_each(model)
    encoded = model.preprocessor.encode(model, columns)
    return _Examples(encoded).batch(np.arange(len(encoded)))[0]


def _labelled(model: Any, columns: list[list[Any]], y=None, weights=None, class_weight=None) -> _Examples:
    """Tokenizes texts, and checks their labels."""
    _check_one_row_each(model)
    y = check_labels(model, with_ids(model, y), {"B": len(columns[0])})
    if class_weight is not None:
        if weights is not None:
            raise ValueError("`class_weight` must be None if there are sample weights. Received: both; multiply them.")
        weights = np.array([class_weight.get(label, 1.0) for label in np.ravel(np.asarray(y)).tolist()], "float32")
    labels = () if y is None else (y,) if weights is None else (y, weights)
    labels = keras.tree.map_structure(np.asarray, labels)
    if sizes := {len(array) for array in keras.tree.flatten(labels)} - {len(columns[0])}:
        raise ValueError(
            f"Texts, labels and weights must be as many. Received: {len(columns[0])} texts and {sizes.pop()} of these."
        )
    return _Examples(model.preprocessor.encode(model, columns), labels)


def _check_one_row_each(model: Any) -> None:
    """Raises ValueError if texts are read in windows, each of which losses and metrics would count as a text."""
    if model.preprocessor.windows is not None:
        raise ValueError(
            "`windows` of a Preprocessor must be None but for `predict`: losses and metrics would count each window "
            f"as a text. Received: windows={model.preprocessor.windows!r}; train and score with `albert-tf finetune` "
            "and `evaluate`, or set model.preprocessor = Preprocessor(tokenizer, max_length), which cuts long texts."
        )


def with_ids(model: Any, y: Any) -> Any:
    """Labels with the ids of classes in place of their names; for several labels of a text, decisions [N, C]."""
    ids = {name: index for index, name in enumerate(getattr(model, "labels", ()))}
    if getattr(model, "problem", "") == "multi_label" and isinstance(y, Sequence):
        if any(isinstance(name, str) for row in y for name in row):
            decisions = np.zeros((len(y), len(ids)), "int32")
            for row, names in enumerate(y):
                decisions[row, [id_of(name, ids) for name in names]] = 1
            return decisions
    elif ids and (names := _texts(y)):
        return np.array([id_of(name, ids) for name in names], "int32")
    return y


def id_of(name: Any, ids: Mapping[Any, int]) -> int:
    """The id of a class; raises ValueError if the model has none of this name."""
    if name not in ids:
        raise ValueError(f"Labels must be among the model's: {', '.join(ids)}. Received: {name!r}{nearest(name, ids)}")
    return ids[name]
