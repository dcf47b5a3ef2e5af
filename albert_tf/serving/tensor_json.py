"""Tensors as JSON, in the formats of TensorFlow Serving's REST interface.

A request has `instances`, a list of rows, or `inputs`, an array per input. The answer has `predictions` or `outputs`; a
single array has no name there. `{"b64": ...}` is a string as base64.
"""

import base64
import binascii
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import orjson

from albert_tf.inference.signatures import Signature
from albert_tf.serving.errors import NotFoundError
from albert_tf.tasks.outputs import TensorSpec

DEFAULT_SIGNATURE = "serving_default"
# Tokens or choices of a row: far more than a model has positions, and few enough not to exhaust the memory.
MAX_COLUMNS = 4096
_BASE64 = "b64"
_INT32 = range(-(2**31), 2**31)
_DTYPES = {"string": object, "int32": np.int32, "float32": np.float32}
_KINDS = {"string": "strings", "int32": "integers of 32 bits", "float32": "numbers"}


class TensorRequest(NamedTuple):
    """The body of a `:predict` request: the signature, its inputs, and whether the answer has a list of rows too."""

    signature: str
    inputs: dict[str, np.ndarray]
    by_row: bool


def parse_predict(body: bytes, signatures: Mapping[str, Signature]) -> TensorRequest:
    """The request to one of these signatures; raises ValueError if it does not fit, NotFoundError if there is none."""
    expected = 'the body must be JSON such as {"instances": [...]}'
    try:
        fields = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise ValueError(f"JSON Parse error: {error}; {expected}.") from None
    if not isinstance(fields, dict):
        raise ValueError(f"The body is not a JSON object; {expected}.")
    keys = [key for key in ("instances", "inputs") if key in fields]
    if len(keys) != 1:
        raise ValueError(
            f"The body must have either `instances` or `inputs`. Received: {', '.join(keys) or 'neither'}."
        )
    name = fields.get("signature_name", DEFAULT_SIGNATURE)
    if not isinstance(name, str):
        raise ValueError("`signature_name` must be a string.")
    name = name or DEFAULT_SIGNATURE
    if name not in signatures:
        known = ", ".join(sorted(signatures))
        raise NotFoundError(f'Serving signature name: "{name[:100]}" not found; the model has {known}.')
    by_row = keys == ["instances"]
    return TensorRequest(name, _arrays(fields[keys[0]], by_row, signatures[name]), by_row)


def _arrays(values: Any, by_row: bool, signature: Signature) -> dict[str, np.ndarray]:
    columns = _columns(values, signature) if by_row else values
    if not isinstance(columns, dict) or _is_base64(columns):
        if len(signature.inputs) != 1:
            raise ValueError(f"`inputs` must be an object with {_names(signature)}.")
        columns = {next(iter(signature.inputs)): columns}
    if set(columns) != set(signature.inputs):
        received = ", ".join(map(str, columns))[:200] or "nothing"
        raise ValueError(f"The inputs must be {_names(signature)}. Received: {received}.")
    arrays = {name: _array(name, columns[name], spec) for name, spec in signature.inputs.items()}
    sizes = {name: len(array) for name, array in arrays.items()}
    if len(set(sizes.values())) > 1:
        raise ValueError(f"The inputs must have equal numbers of rows. Received: {sizes}.")
    return arrays


def format_predictions(outputs: Mapping[str, np.ndarray], by_row: bool) -> bytes:
    """The body of the answer to a `:predict` request."""
    values = {name: _plain(array, name) for name, array in outputs.items()}
    single = next(iter(values.values())) if len(values) == 1 else None
    if not by_row:
        return dumps({"outputs": values if single is None else single})
    rows = [dict(zip(values, row)) for row in zip(*values.values())] if single is None else single
    return dumps({"predictions": rows})


def dumps(value: Any) -> bytes:
    """JSON, also of NumPy's arrays."""
    return orjson.dumps(value, option=orjson.OPT_SERIALIZE_NUMPY)


def _columns(rows: Any, signature: Signature) -> dict[str, list]:
    """The values of each input from a list of rows."""
    if not isinstance(rows, list) or not rows:
        raise ValueError("`instances` must be a list with at least one value.")
    if not isinstance(rows[0], dict) or _is_base64(rows[0]):
        if len(signature.inputs) != 1:
            raise ValueError(f"`instances` must be a list of objects with {_names(signature)}.")
        return {next(iter(signature.inputs)): rows}
    for index, row in enumerate(rows):
        if not isinstance(row, dict) or set(row) != set(signature.inputs):
            received = f" Received: {', '.join(row)[:200]}." if isinstance(row, dict) else ""
            raise ValueError(f"instances[{index}] must be an object with {_names(signature)}.{received}")
    return {name: [row[name] for row in rows] for name in signature.inputs}


def _array(name: str, values: Any, spec: TensorSpec) -> np.ndarray:
    rank, values = len(spec.shape), np.array(values, object)  # of lists where their lengths differ
    if values.ndim < rank:
        nested = f"{'lists of ' * (rank - 1)}{_KINDS[spec.dtype]}"
        raise ValueError(f"`{name}` must be a list of {nested}{', with rows of equal length' * (rank > 1)}.")
    shape = values.shape[:rank]
    if 0 in shape or any(wanted not in (None, size) for wanted, size in zip(spec.shape, shape)):
        wanted = [-1 if size is None else size for size in spec.shape]
        raise ValueError(f"`{name}` must have the shape {wanted}, and no size of 0. Received: {list(shape)}.")
    if max(shape[1:], default=0) > MAX_COLUMNS:
        raise ValueError(f"`{name}` must have at most {MAX_COLUMNS} columns. Received: {list(shape)}.")
    flat = values.reshape(-1, *values.shape[rank:])
    return np.array([_scalar(name, value, spec.dtype) for value in flat], _DTYPES[spec.dtype]).reshape(shape)


def _scalar(name: str, value: Any, dtype: str) -> Any:
    if dtype == "string" and isinstance(value, str):
        return value.encode()
    if dtype == "string" and _is_base64(value):
        return _decoded(name, value[_BASE64])
    if dtype == "int32" and type(value) is int and value in _INT32:
        return value
    if dtype == "float32" and type(value) in (int, float):
        return value
    is_scalar = isinstance(value, (str, int, float, bool, type(None)))
    received = orjson.dumps(value).decode()[:60] if is_scalar else "an object" if isinstance(value, dict) else "a list"
    raise ValueError(f"`{name}` must contain {_KINDS[dtype]}. Received: {received}.")


def _decoded(name: str, value: Any) -> bytes:
    try:
        decoded = base64.b64decode(value, validate=True)
        decoded.decode()
    except UnicodeDecodeError as error:
        raise ValueError(f"`{name}` must be valid UTF-8. Received: {error.object[:40]!r}.") from None
    except (TypeError, ValueError, binascii.Error):
        raise ValueError(f'`{name}` must contain valid base64 in {{"b64": ...}}.') from None
    return decoded


def _is_base64(value: Any) -> bool:
    return isinstance(value, dict) and value.keys() == {_BASE64}


def _plain(array: np.ndarray, name: str) -> Any:
    """What the serializer takes: numbers as an array, strings as lists; as base64 if the name ends in `_bytes`."""
    if array.dtype != object:
        return np.ascontiguousarray(array)

    def convert(value: bytes) -> Any:
        is_base64 = name.endswith("_bytes")
        return {_BASE64: base64.b64encode(value).decode()} if is_base64 else value.decode("utf-8", "replace")

    return np.frompyfunc(convert, 1, 1)(array).tolist()


def _names(signature: Signature) -> str:
    return ", ".join(sorted(signature.inputs)) or "no keys"
