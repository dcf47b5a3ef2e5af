"""Texts straight into `fit`, `evaluate` and `predict`.

Letters: N texts, B batch, L sequence, C classes.
"""

import itertools
import math
import random
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import Any

import keras
import numpy as np

from albert_tf.data.finetuning.encoded import MAX_TOKENS, EncodedTexts, check_pairs, epoch_batches, rows_by_length
from albert_tf.data.finetuning.text_counts import report_together
from albert_tf.files.json import nearest
from albert_tf.layers.kernels import runs_on_cpu
from albert_tf.models.inputs import as_arrays, check_labels, class_factors
from albert_tf.models.preprocessor import Preprocessor

_BATCH_SIZE = 32  # Keras' own default
_PAIR = "text_pair"  # the second text of a pair in tables, unless fine-tuning named another column


def columns_of(model: Any, x: Any) -> list[list[Any]] | None:
    """The texts in inputs, and their pairs if there are, as lists; None for inputs that the model takes as they are.

    Raises:
        ValueError: the model's `preprocessor` is something else, or texts are in another form.
    """
    if model.preprocessor is None or not model.max_columns:
        return None
    if not isinstance(model.preprocessor, Preprocessor):
        raise ValueError(
            f"`model.preprocessor` must be a Preprocessor or None. Received: {model.preprocessor!r}; set "
            "Preprocessor(tokenizer)."
        )
    is_pair = isinstance(x, tuple) and len(x) == 2 and not any(isinstance(column, str) for column in x)
    columns = [texts for column in (x if is_pair else (x,)) if (texts := texts_of(column)) is not None]
    if len(columns) == 1 + is_pair:
        return columns
    if _holds_texts(x):
        raise not_texts(model, x)
    return None


def see_columns(model: Any, columns: int, is_training: bool) -> None:
    """Notes whether a model is trained on single texts or on pairs; not in training, the other kind is a ValueError."""
    settings = model.task_settings
    if model.max_columns > 1 and is_training:
        settings["pair_column"] = (settings.get("pair_column") or _PAIR) if columns > 1 else None
    elif model.max_columns > 1 and "pair_column" in settings:
        check_pairs(settings["pair_column"] is not None, columns > 1)


def not_texts(model: Any, x: Any, received: str = "") -> ValueError:
    """The error for texts that are in another form than those that a model takes."""
    if isinstance(x, str | bytes):
        received = "one text; pass [text]"
    elif is_table(x):
        received = "a table; pass one of its columns"
    elif getattr(x, "shape", None) == ():
        received = "a dataset of single texts; pass dataset.batch(32)"
    elif not received:
        received = f"a {type(x).__name__}; pass texts in that form"
    wanted = "a list of texts" if model.max_columns == 1 else "a list of texts, or (texts, pairs)"
    return ValueError(
        f"{type(model).__name__} takes {wanted}; as lists, columns, batches of a tf.data.Dataset or of a PyDataset; or "
        f"what `tokenizer(texts)` returns. Received: {received}."
    )


def texts_of(column: Any) -> list[Any] | None:
    """A list, an array, a tensor or a column of a table of strings as a list; None for anything else."""
    if not _is_text(getattr(column, "dtype", "string")) or (texts := as_list(column)) is None:
        return None
    return texts if not texts or any(isinstance(text, str | bytes) for text in texts) else None


def as_list(column: Any) -> list[Any] | None:
    """A sequence, an array of one axis or a column of pandas, polars or Arrow as a list; None for anything else."""
    is_column = hasattr(column, "ragged_rank") or len(getattr(column, "shape", (0,))) == 1
    if isinstance(column, str | bytes | Mapping) or is_table(column) or not is_column:
        return None
    for method in ("to_pylist", "to_list"):
        if hasattr(column, method):
            return getattr(column, method)()
    if hasattr(column, "shape"):
        return np.asarray(column, object).tolist()
    return list(column) if isinstance(column, Sequence | Set) else None


def is_table(x: Any) -> bool:
    """Whether it is a table of pandas, polars or Arrow."""
    return hasattr(x, "columns") and hasattr(x, "shape")


def _is_text(dtype: Any) -> bool:
    """Whether a dtype of any library may be that of strings."""
    is_text = getattr(dtype, "kind", "") in ("O", "U", "S", "T") or dtype == "string"
    return is_text or str(dtype).startswith(("String", "Categorical", "Enum"))  # of polars


def _holds_texts(x: Any) -> bool:
    """Whether there are strings somewhere in inputs."""
    if isinstance(x, str | bytes):
        return True
    if isinstance(x, Mapping | list | tuple):
        return any(map(_holds_texts, x.values() if isinstance(x, Mapping) else x))
    if is_table(x):
        return any(map(_is_text, getattr(x, "dtypes", ("string",))))
    return hasattr(x, "dtype") and _is_text(x.dtype)


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
        if self._order != "unchanged":
            places = np.argsort(np.concatenate(self.batches))
            outputs = keras.tree.map_structure(lambda array: array[places], outputs)
        encoded = self._examples.encoded
        if encoded.text is None:
            return outputs
        return {"logits": encoded.joined(outputs["logits"], model.preprocessor.windows, model.problem)}


class EncodedBatches(keras.utils.PyDataset):
    """Batches of a PyDataset with texts, as inputs.

    Args:
        batches: the PyDataset.
        encode: makes a batch of inputs of a batch of texts.
        is_shuffled: bool. Whether batches come in another order in each epoch, as Keras does with a finite PyDataset.
    """

    def __init__(self, batches: keras.utils.PyDataset, encode: Callable[[Any], tuple[Any, ...]], is_shuffled: bool):
        super().__init__(batches.workers, batches.use_multiprocessing, batches.max_queue_size)
        self._batches, self._encode, self._is_shuffled = batches, encode, is_shuffled
        self._order: list[int] | None = None

    @property
    def num_batches(self) -> int | None:
        return self._batches.num_batches

    def __getitem__(self, index: int) -> tuple[Any, ...]:
        return self._encode(self._batches[index if self._order is None else self._order[index]])

    def on_epoch_begin(self) -> None:
        self._batches.on_epoch_begin()
        if self._is_shuffled and self.num_batches is not None:
            self._order = random.sample(range(self.num_batches), self.num_batches)

    def on_epoch_end(self) -> None:
        self._batches.on_epoch_end()


@report_together()
def in_batches(model: Any, arguments: dict[str, Any], method: str) -> dict[str, Any]:
    """The arguments of `fit`, `evaluate` or `predict` by name, with TextBatches in the place of texts and labels."""
    arguments, validation = dict(arguments), arguments.get("validation_data")
    given = arguments.get("batch_size")
    held_out_options = (arguments.get("validation_batch_size") or given, arguments.get("validation_steps"))
    if isinstance(validation, list | tuple):
        if not 1 <= len(validation) <= 3 or any(isinstance(part, str) for part in validation):
            raise ValueError(
                "`validation_data` must be (x, y) or (x, y, sample_weight). Received: a "
                f"{type(validation).__name__} of {len(validation)}; pass labels too."
            )
        if columns := columns_of(model, validation[0]):
            examples = _labelled(model, columns, *validation[1:])
            arguments["validation_data"] = _for_scores(examples, np.arange(len(columns[0])), *held_out_options)
    columns = columns_of(model, arguments.get("x"))
    if columns is None:
        return arguments
    if not columns[0]:
        return {**arguments, "x": np.zeros((0, 8), "int32")}
    rows = np.arange(len(columns[0]))
    if method == "predict":
        if (steps := arguments.get("steps")) is not None and model.preprocessor.windows is not None:
            raise ValueError(
                f"`steps` must be None where texts are read in windows, which are joined. Received: steps={steps}; "
                "pass fewer texts."
            )
        # JAX compiles for every shape.
        limit = MAX_TOKENS if runs_on_cpu() and keras.backend.backend() != "jax" else None
        examples = _Examples(model.preprocessor.encode(model, columns))
        rows = np.arange(len(examples.encoded))  # more than texts if there are windows
        return {**arguments, "x": _for_scores(examples, rows, given, arguments.get("steps"), limit)}
    y, weights, class_weight = (arguments.pop(name, None) for name in ("y", "sample_weight", "class_weight"))
    examples = _labelled(model, columns, y, weights)
    if method == "evaluate":
        return {**arguments, "x": _for_scores(examples, rows, given, arguments.get("steps"))}
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
        arguments["validation_data"] = _for_scores(examples, held_out, *held_out_options)
    if class_weight is not None:
        (labels,) = examples.labels
        examples = replace(examples, labels=(labels, class_factors(model, labels, class_weight)))
    size = _batch_size(len(rows), given, arguments.get("steps_per_epoch"))
    return {**arguments, "x": TextBatches(examples, rows, size, order)}


def _for_scores(
    examples: _Examples, rows: np.ndarray, batch_size: int | None, steps: int | None, max_tokens: int | None = None
) -> TextBatches:
    """Batches for `evaluate` and `predict`; of the first texts, if these take a number of steps."""
    order = "sorted" if steps is None and keras.config.max_steps_per_epoch() is None else "unchanged"
    return TextBatches(examples, rows, _batch_size(len(rows), batch_size, steps), order, max_tokens)


def _batch_size(count: int, batch_size: int | None, steps: int | None) -> int:
    """That of Keras for arrays of this many rows."""
    return batch_size or (math.ceil(count / steps) if steps else _BATCH_SIZE)


def one_batch(model: Any, columns: list[list[Any]]) -> dict[str, np.ndarray]:
    """The inputs of all texts, in their order."""
    _check_one_row_each(model)
    encoded = model.preprocessor.encode(model, columns)
    return _Examples(encoded).batch(np.arange(len(encoded)))[0]


def _labelled(model: Any, columns: list[list[Any]], y=None, weights=None) -> _Examples:
    """Tokenizes texts, and checks their labels."""
    _check_one_row_each(model)
    y = check_labels(model, with_ids(model, y), {"B": len(columns[0])})
    labels = () if y is None else (y,) if weights is None else (y, as_arrays(weights))
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
    problem = getattr(model, "problem", "")
    if problem and is_table(y):
        y = _by_name(y, ids)
    if problem == "multi_label":
        is_padded = len(getattr(y, "shape", ())) == 2 and _is_text(y.dtype) and not hasattr(y, "ragged_rank")
        rows = list(np.asarray(y, object)) if is_padded else as_list(y)
        return y if rows is None else _decisions(rows, ids)
    if ids and (names := texts_of(y)):
        return np.array([id_of(name, ids) for name in names], "int32")
    return y


def _by_name(table: Any, ids: Mapping[Any, int]) -> Any:
    """The columns of a table [N, C] in the order of the labels, or the only one."""
    names = list(getattr(table, "column_names", table.columns))
    if len(names) == 1 and names[0] not in ids:
        return table[names[0]]
    numbers = range(len(ids))
    is_unnamed = names == list(numbers) or (len(names) == len(ids) and list(ids) == [f"LABEL_{n}" for n in numbers])
    if set(names) != set(ids) and not is_unnamed:
        raise ValueError(
            f"Columns of labels must be called as the model's: {', '.join(ids)}. Received: "
            f"{', '.join(map(str, names))}; rename them, or pass labels={names} when you make the model."
        )
    return np.stack([np.asarray(table[name]) for name in (ids if set(names) == set(ids) else names)], axis=1)


def _decisions(rows: Sequence[Any], ids: Mapping[Any, int]) -> np.ndarray:
    """Decisions [N, C] from lists of names, or of decisions."""
    lists = [as_list(row) for row in rows]
    if None in lists:
        raise ValueError(
            "Labels of a multi_label model must be a list of names for each text, or 0 and 1 for each label. Received: "
            f"{rows[lists.index(None)]!r}; pass a list, for one label too: {[next(iter(ids))]}."
        )
    if any(lists) and not any(isinstance(name, str | bytes) for names in lists for name in names or ()):
        return np.asarray(lists)
    decisions = np.zeros((len(lists), len(ids)), "int32")
    for row, names in enumerate(lists):
        decisions[row, [id_of(name, ids) for name in names or () if name not in ("", b"")]] = 1  # filled up in tf.data
    return decisions


def id_of(name: Any, ids: Mapping[Any, int]) -> int:
    """The id of a class; raises ValueError if the model has none of this name."""
    name = name.decode(errors="replace") if isinstance(name, bytes) else name
    if name not in ids:
        raise ValueError(f"Labels must be among the model's: {', '.join(ids)}. Received: {name!r}{nearest(name, ids)}")
    return ids[name]
