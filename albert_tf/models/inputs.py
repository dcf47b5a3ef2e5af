"""Validates inputs and labels before anything is traced: names, types, shapes and, if available on the host, values.

| data                                                           | validated                                          |
|----------------------------------------------------------------|----------------------------------------------------|
| arrays, lists, tables, eager tensors in host memory            | everything, all rows, before the first step        |
| a Python generator, a `keras.utils.PyDataset` of texts         | everything, each batch as it is drawn              |
| a `keras.utils.PyDataset`                                      | everything, in its first batch                     |
| a `tf.data.Dataset`                                            | names, types and shapes, from its `element_spec`   |
| symbolic tensors and tensors in an accelerator's memory        | names, types and shapes                            |
| a distributed dataset, another loader, a user's own train_step | names, types and shapes, when the model is called  |

In the last three rows reading values would stall an accelerator. There, ids out of range make the outputs NaN
(`layers/embeddings.py`); on a CPU they are an error of TensorFlow. Sample weights are not validated.

Letters: B batch, L sequence, C choices, P predictions, S examples of a row.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import keras
import numpy as np

from albert_tf.files.json import nearest
from albert_tf.models.compiled import option_of


class Field(NamedTuple):
    """Specification of an input or label array.

    Args:
        axes: a letter for each axis, such as `"BL"`; equal letters are equal lengths in all arrays of a call.
        below: exclusive upper bound of integers from 0: a number, the letter of an axis, or an attribute of the config
            or the model; None for any integer.
        optional: bool.
        ignored: an additional integer that is allowed.
        is_real: bool. Whether any finite number is allowed.
        requires: name of another input that must be given too.
        optional_axis: letter of an axis that all arrays of a call may lack; "" if there is none.
    """

    axes: str
    below: int | str | None = None
    optional: bool = False
    ignored: int | None = None
    is_real: bool = False
    requires: str | None = None
    optional_axis: str = ""


Fields = Mapping[str, Field]

TEXT_INPUTS = {
    "input_ids": Field("BL", "vocab_size"),
    "attention_mask": Field("BL", 2, optional=True),
    "token_type_ids": Field("BL", "type_vocab_size", optional=True),
}
ENCODER_INPUTS = {
    **TEXT_INPUTS,
    "position_ids": Field("BL", "max_position_embeddings", optional=True),
    "example_ids": Field("BL", optional=True, requires="position_ids"),
    "cls_positions": Field("BS", "L", optional=True),
}
MASKED_LM_INPUTS = {**ENCODER_INPUTS, "masked_lm_positions": Field("BP", "L", optional=True)}
MASKED_LM_LABELS = {"masked_lm_ids": Field("BP", "vocab_size"), "masked_lm_weights": Field("BP", is_real=True)}

_CURES = {
    "vocab_size": "use the tokenizer of these weights",
    "num_labels": "number the classes from 0",
    "C": "number the choices of a row from 0",
}
_UNITS = {"L": "token", "C": "class", "P": "prediction"}
_ROWS_PER_CHUNK = 4096  # intermediate results fit in the CPU cache


def check_inputs(model, inputs) -> tuple[dict[str, Any], dict[str, int | None]]:
    """Validates the inputs of a call: a dict of arrays, arrays in the order of `input_fields`, or the ids alone.

    Returns:
        The inputs as a dict, without those that are None, and the known lengths of axes by letter.
    """
    fields: Fields = model.input_fields
    sizes: dict[str, int | None] = {}
    inputs = _named(fields, inputs)
    _check_names(f"an input of {type(model).__name__}", fields, inputs)
    for name, field in fields.items():
        if name in inputs:
            _check_shape(name, inputs[name], field, sizes)
    for name, value in inputs.items():
        _check_values(name, value, fields[name], sizes, model)
    return inputs, sizes


def check_labels(model, labels, sizes: Mapping[str, int | None]):
    """Validates the labels of inputs whose axes have these lengths; returns them with arrays in the place of lists."""
    if labels is None and not model.label_fields() and model.loss is None:
        return None  # `loss_terms` needs none
    if labels is None:
        raise ValueError(f"{type(model).__name__} got no labels; pass them after the inputs: (inputs, labels).")
    fields = _expected_labels(model)
    if not fields:
        return as_arrays(labels)
    is_single = "labels" in fields
    if is_single == isinstance(labels, Mapping):
        wanted = "one array" if is_single else f"a dict of {', '.join(fields)}"
        received = f"a dict of {', '.join(labels)}" if is_single else type(labels).__name__
        raise ValueError(f"`labels` must be {wanted}. Received: {received}; pass them in that form.")
    arrays = _named(fields, labels)
    # One example a row and every token predicted, unless the inputs say otherwise.
    lengths: dict[str, int | None] = {"S": 1, "P": sizes.get("L"), "C": getattr(model, "num_labels", None), **sizes}
    _check_names(f"a label of {type(model).__name__}", fields, arrays)
    for name, value in arrays.items():
        ids = "use numbers" if fields[name].is_real else _class_ids(model)
        _check_shape(name, value, fields[name], lengths, is_label=True, ids=ids)
        _check_values(name, value, fields[name], lengths, model)
    return arrays["labels"] if is_single else arrays


def class_weights_by_id(model, class_weight, sample_weight=None) -> dict[int, float] | None:
    """Weights of classes by their ids, given by ids or by names; raises ValueError for others."""
    if class_weight is None:
        return None
    ids: dict[Any, int] = {name: index for index, name in enumerate(getattr(model, "labels", ()))}
    is_number = getattr(model, "problem", "") == "regression"
    if is_number or sample_weight is not None or not isinstance(class_weight, Mapping):
        wanted = "None for numbers" if is_number else "a dict, by ids or names of classes, without `sample_weight`"
        raise ValueError(
            f"`class_weight` must be {wanted}. Received: class_weight={class_weight!r}, and "
            f"{'no' if sample_weight is None else 'some'} sample weights; if both are meant, multiply them."
        )
    weights = dict.fromkeys(range(len(ids)), 1.0)
    for key, weight in class_weight.items():
        is_id = isinstance(key, int | np.integer) and (key in weights or (key >= 0 and not ids))
        if not is_id and key not in ids:
            cure = nearest(str(key), ids, otherwise=f"; {_class_ids(model)}.")
            raise ValueError(f"`class_weight` must be of the model's classes. Received: {key!r}{cure}")
        if not isinstance(weight, int | float | np.number) or not 0 <= weight < float("inf"):
            raise ValueError(f"`class_weight` must be numbers from 0. Received: {weight!r} for {key!r}.")
        weights[int(key) if is_id else ids[key]] = float(weight)
    return weights


def has_several_labels(model) -> bool:
    """Whether rows have several labels, each with a weight of its own."""
    return len(model.label_fields().get("labels", Field("B")).axes) > 1


def class_factors(model, labels, class_weight: Mapping[int, float]) -> np.ndarray:
    """Sample weights of labels by the weights of their classes, 1 for those without.

    Returns:
        float32 [B], for labels of tokens [B, L], for decisions about several labels [B, C].
    """
    if has_several_labels(model) and model.loss is not None:
        raise ValueError(
            f"`class_weight` of several labels must go with the model's own loss. Received: loss={model.loss!r}; leave "
            "`loss` out of compile, or pass `sample_weight`."
        )
    if isinstance(labels, Mapping | tuple):
        raise ValueError(f"`class_weight` must be None for several outputs. Received: {class_weight}.")
    labels, table = np.asarray(labels), np.ones(max(class_weight, default=0) + 1, "float32")
    table[list(class_weight)] = list(class_weight.values())
    axes = model.label_fields().get("labels", Field("B")).axes
    if axes == "BC":
        return np.broadcast_to(table, labels.shape)
    if axes == "B":
        labels = labels.reshape(len(labels), -1)
        labels = labels[:, 0] if labels.shape[1] == 1 else labels.argmax(1)  # one-hot
    labels = np.rint(labels).astype(int)
    is_class = (labels >= 0) & (labels < len(table))
    return np.where(is_class, table[np.where(is_class, labels, 0)], np.float32(1))


def only(fields: Fields, inputs: Mapping[str, Any]) -> dict[str, Any]:
    """The inputs that are in `fields`."""
    return {name: value for name, value in inputs.items() if name in fields}


def as_arrays(values):
    """Labels or weights with arrays in the place of lists: one, or a dict with one for each output."""
    if values is None:
        return None
    if isinstance(values, Mapping):
        return {name: as_arrays(value) for name, value in values.items()}
    return _as_array(values)


def _named(fields: Fields, arrays) -> dict[str, Any]:
    if isinstance(arrays, list | tuple) and any(getattr(array, "shape", ()) != () for array in arrays):
        if len(arrays) > len(fields):
            raise ValueError(f"Received {len(arrays)} arrays for {len(fields)} inputs ({', '.join(fields)}).")
        arrays = dict(zip(fields, arrays))
    elif not isinstance(arrays, Mapping):
        arrays = {next(iter(fields)): arrays}
    return {name: _as_array(value) for name, value in arrays.items() if value is not None}


def _as_array(value):
    """Converts anything but tensors and their specs to NumPy."""
    if keras.ops.is_tensor(value) or (hasattr(value, "dtype") and not hasattr(value, "__array__")):
        return value
    if isinstance(value, keras.KerasTensor | np.ndarray):
        return value
    return np.asarray(value)


def _check_names(kind: str, fields: Fields, arrays: Mapping[str, Any]) -> None:
    for name in arrays:
        if name not in fields:
            hint = nearest(name, fields, otherwise=f"; it takes {', '.join(fields)}.")
            if "label" in str(name) and "input" in kind:
                hint = "; pass labels after the inputs: (inputs, labels)."
            raise ValueError(f"`{name}` is not {kind}{hint}")
    for name, field in fields.items():
        if name not in arrays and not field.optional:
            raise ValueError(f"`{name}` is missing. Received: {', '.join(map(str, arrays)) or 'nothing'}.")
        if name in arrays and field.requires and field.requires not in arrays:
            raise ValueError(f"`{field.requires}` must be given with `{name}`. Received: {', '.join(arrays)}.")


def _class_ids(model) -> str:
    """What to give instead of the names of classes."""
    names = list(getattr(model, "labels", ()))
    shown = ", ".join(f"{index} for {name!r}" for index, name in enumerate(names[:8]))
    return f"use class ids: {shown}{', ...' if len(names) > 8 else ''}" if names else "use class ids"


def _check_shape(
    name: str, value, field: Field, sizes: dict[str, int | None], is_label: bool = False, ids: str = "use numbers"
) -> None:
    """Validates dtype and shape, and records the lengths of axes in `sizes`."""
    dtype = str(getattr(value.dtype, "name", value.dtype)).removeprefix("torch.")
    if not dtype.startswith(("int", "uint", "bool", "float", "bfloat")):
        is_text = dtype.startswith("str") and not is_label
        cure = (
            "give `tokenizer(texts)`; only classifiers of texts and embeddings take them, with a `preprocessor`, which "
            "`.keras` files and `clone_model` leave out"
        )
        raise ValueError(
            f"`{name}` must be {_expected(field)}. Received: {'texts' if is_text else f'dtype={dtype}'}; "
            f"{ids if is_label else cure}."
        )
    if dtype in ("float16", "bfloat16") and not field.is_real and field.below != 2:
        raise ValueError(f"`{name}` must be integers. Received: dtype={dtype}, which rounds them; use int32.")
    if getattr(value, "ragged_rank", None):
        raise ValueError(f"`{name}` is ragged; pad it: {name}.to_tensor().")
    shape = _shape(value)
    if shape is None:
        return
    if field.optional_axis and len(shape) == len(field.axes) - 1 and sizes.setdefault(field.optional_axis, 0) == 0:
        field = field._replace(axes=field.axes.replace(field.optional_axis, ""))
    if is_label and len(shape) == len(field.axes) + 1 and shape[-1] in (1, None):
        shape = shape[:-1]
    if is_label and len(shape) == len(field.axes) - 1 and sizes.get(field.axes[-1]) == 1:
        shape = (*shape, 1)
    fits = len(shape) == len(field.axes)
    for axis, length in zip(field.axes, shape):
        if fits and isinstance(length, int):
            sizes[axis] = length if sizes.get(axis) is None else sizes[axis]
            fits = sizes[axis] == length
    if not fits:
        expected = ", ".join(f"{axis}={sizes[axis]}" if sizes.get(axis) else axis for axis in field.axes)
        cure = _shape_cure(field, shape, is_label)
        raise ValueError(f"`{name}` must have shape [{expected}]. Received: shape={tuple(value.shape)}; {cure}.")


def _shape_cure(field: Field, shape: tuple, is_label: bool) -> str:
    missing = len(field.axes) - len(shape)
    if is_label and missing < 0 and field.below == "num_labels":
        return "convert one-hot labels to class ids with labels.argmax(-1)"
    if is_label:
        return f"pass one per {_UNITS.get(field.axes[-1], 'row')}"
    if missing == 1:
        return "pass one sequence per choice" if "C" in field.axes else "add a batch axis"
    return "pass an array of that shape"


def _shape(value) -> tuple | None:
    try:
        return tuple(value.shape)
    except (TypeError, ValueError):  # a spec of unknown rank
        return None


def _check_values(name: str, value, field: Field, sizes: Mapping[str, int | None], model) -> None:
    array = _in_host_memory(value)
    if array is None or not array.size:
        return
    limit = _limit(field, sizes, model)
    for start in range(0, len(array), _ROWS_PER_CHUNK):
        rows = array[start : start + _ROWS_PER_CHUNK]
        wrong = np.zeros(rows.shape, bool) if rows.dtype.kind in "biu" else ~np.isfinite(rows)
        if not field.is_real and rows.dtype.kind not in "biu":
            wrong |= np.floor(rows) != rows
        if limit is not None:
            wrong |= (rows < 0) | (rows >= limit)
        if field.ignored is not None:
            wrong &= rows != field.ignored
        if wrong.any():
            row, *rest = map(int, np.unravel_index(wrong.argmax(), wrong.shape))
            raise ValueError(
                f"`{name}` must be {_expected(field, limit)}. Received: {rows[(row, *rest)]} at "
                f"{[start + row, *rest]}; {_CURES.get(str(field.below), 'correct the values')}."
            )


def _in_host_memory(value) -> np.ndarray | None:
    if isinstance(value, np.ndarray):
        return value
    if hasattr(value, "numpy") and "cpu" in str(getattr(value, "device", "")).lower():
        return value.numpy()
    return None


def _limit(field: Field, sizes: Mapping[str, int | None], model) -> int | None:
    if not isinstance(field.below, str):
        return field.below
    if len(field.below) == 1:
        return sizes.get(field.below)
    return getattr(model.config, field.below, None) or getattr(model, field.below)


def _expected(field: Field, limit: int | None = None) -> str:
    """Describes valid values, such as `integers from 0 to 49 (vocab_size=50)`."""
    if field.is_real:
        return "finite numbers"
    if limit is None:
        return "integers"
    source = f" ({field.below}={limit})" if isinstance(field.below, str) and len(field.below) > 1 else ""
    return f"integers from 0 to {limit - 1}{source}{'' if field.ignored is None else f', or {field.ignored}'}"


def _expected_labels(model) -> Fields | None:
    """The fields of the labels; None for a user's own loss."""
    fields, loss = model.label_fields(), model.loss
    if is_overridden(model, "compute_loss") or is_overridden(model, "loss_terms"):
        return None
    if loss is None:
        return fields
    if isinstance(loss, keras.losses.SparseCategoricalCrossentropy) and "labels" in fields:
        return {"labels": fields["labels"]._replace(ignored=option_of(loss, "ignore_class"))}
    return None


def is_overridden(model, method: str) -> bool:
    """Whether a user's subclass defines the method."""
    owner = next(kind for kind in type(model).__mro__ if method in vars(kind))
    return owner.__module__.partition(".")[0] not in ("albert_tf", "keras")
