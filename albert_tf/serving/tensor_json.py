"""Tensors as JSON, in the formats of TensorFlow Serving's REST interface.

A request has `instances`, a list of rows, or `inputs`, an array per input. Its answer has `predictions` or `outputs`; a
single array has no name there. `{"b64": ...}` is a string as base64.
"""

import base64
import binascii
import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np
import orjson

from albert_tf.inference.signatures import Signature
from albert_tf.serving.answers import DEFAULT_SIGNATURE, DTYPES, check_shape
from albert_tf.tasks.outputs import TensorSpec

_BASE64 = "b64"
_INT32 = range(-(2**31), 2**31)
_KINDS = {"string": "strings", "int32": "integers of 32 bits", "float32": "numbers"}


@dataclasses.dataclass(frozen=True)
class PredictRequest:
    """The body of a `:predict` request.

    Attributes:
        signature: name of the signature.
        by_row: whether it has `instances`.
        values: of `instances` or `inputs`.
    """

    signature: str
    by_row: bool
    values: Any


def parse_predict(body: bytes) -> PredictRequest:
    """Parses the body of a `:predict` request, all but its values."""
    fields = _parse_object(body, "instances")
    keys = [key for key in ("instances", "inputs") if key in fields]
    if len(keys) != 1:
        raise ValueError(
            f"The body must have either `instances` or `inputs`. Received: {', '.join(keys) or 'neither'}."
        )
    return PredictRequest(_signature(fields), keys[0] == "instances", fields[keys[0]])


def parse_inputs(request: PredictRequest, signature: Signature, max_rows: int) -> dict[str, np.ndarray]:
    """The arrays of a request by name; raises ValueError if they do not fit the signature, or have too many rows."""
    columns = _columns(request.values, signature) if request.by_row else request.values
    if not isinstance(columns, dict) or _is_base64(columns):
        if len(signature.inputs) != 1:
            raise ValueError(f"`inputs` must be an object with {_names(signature)}.")
        columns = {next(iter(signature.inputs)): columns}
    if set(columns) != set(signature.inputs):
        received = ", ".join(map(str, columns))[:200] or "nothing"
        raise ValueError(f"The inputs must be {_names(signature)}. Received: {received}.")
    return {name: _array(name, columns[name], spec, max_rows) for name, spec in signature.inputs.items()}


def parse_examples(body: bytes) -> tuple[str, list[dict[str, bytes]]]:
    """The signature and the features of each of `examples`, over those of `context`."""
    fields = _parse_object(body, "examples")
    examples, context = fields.get("examples"), fields.get("context", {})
    if not isinstance(examples, list) or not isinstance(context, dict):
        raise ValueError("`examples` must be a list of objects, and `context` an object.")
    if not all(isinstance(example, dict) for example in examples):
        raise ValueError("Each of `examples` must be an object.")
    return _signature(fields), [_features(context | example, index) for index, example in enumerate(examples)]


def format_predictions(outputs: Mapping[str, np.ndarray], by_row: bool) -> bytes:
    """The body of the answer to a `:predict` request."""
    values = {name: _plain(array, name) for name, array in outputs.items()}
    single = next(iter(values.values())) if len(values) == 1 else None
    if not by_row:
        answer = {"outputs": values if single is None else single}
    elif single is not None:
        answer = {"predictions": single}
    else:
        answer = {"predictions": [dict(zip(values, row)) for row in zip(*values.values())]}
    return orjson.dumps(answer, option=orjson.OPT_SERIALIZE_NUMPY)


def _parse_object(body: bytes, key: str) -> dict[str, Any]:
    """Parses a JSON object; raises ValueError, which names a key that it may have, if it is none."""
    expected = f'the body must be JSON such as {{"{key}": [...]}}'
    try:
        value = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise ValueError(f"JSON Parse error: {error}; {expected}.") from None
    if not isinstance(value, dict):
        raise ValueError(f"The body is not a JSON object; {expected}.")
    return value


def _signature(body: Mapping[str, Any]) -> str:
    """The name of the signature in a body."""
    name = body.get("signature_name", DEFAULT_SIGNATURE)
    if not isinstance(name, str):
        raise ValueError("`signature_name` must be a string.")
    return name or DEFAULT_SIGNATURE


def _columns(instances: Any, signature: Signature) -> dict[str, list]:
    """The values of each input from a list of rows."""
    if not isinstance(instances, list) or not instances:
        raise ValueError("`instances` must be a list with at least one value.")
    if not isinstance(instances[0], dict) or _is_base64(instances[0]):
        if len(signature.inputs) != 1:
            raise ValueError(f"`instances` must be a list of objects with {_names(signature)}.")
        return {next(iter(signature.inputs)): instances}
    for index, instance in enumerate(instances):
        if isinstance(instance, dict) and (unknown := sorted(instance.keys() - signature.inputs)):
            raise ValueError(
                f"instances[{index}] has {', '.join(unknown)[:200]}, which the signature does not take; it takes "
                f"{_names(signature)}."
            )
        if not isinstance(instance, dict) or set(instance) != set(signature.inputs):
            raise ValueError(f"instances[{index}] must be an object with {_names(signature)}.")
    return {name: [instance[name] for instance in instances] for name in signature.inputs}


def _array(name: str, values: Any, spec: TensorSpec, max_rows: int) -> np.ndarray:
    rank = len(spec.shape)
    shape, flat = [], [values]
    for _ in range(rank):
        if not all(isinstance(value, list) for value in flat):
            raise ValueError(f"`{name}` must be a list of {'lists of ' * (rank - 1)}{_KINDS[spec.dtype]}.")
        lengths = {len(value) for value in flat}
        if len(lengths) > 1:
            raise ValueError(f"`{name}` must have rows of equal length. Received: {sorted(lengths)[:5]}.")
        shape.append(lengths.pop() if lengths else 0)
        flat = [item for value in flat for item in value]
    if shape[0] > max_rows:
        raise ValueError(f"A request must have at most {max_rows} rows. Received: {shape[0]}; split it.")
    check_shape(name, shape, spec)
    array = np.empty(len(flat), DTYPES[spec.dtype])
    for index, value in enumerate(flat):
        array[index] = _scalar(name, value, spec.dtype)
    return array.reshape(shape)


def _scalar(name: str, value: Any, dtype: str) -> Any:
    if dtype == "string" and isinstance(value, str):
        return value.encode()
    if dtype == "string" and _is_base64(value):
        return _decoded(name, value[_BASE64])
    if dtype == "int32" and type(value) is int and value in _INT32:
        return value
    if dtype == "float32" and type(value) in (int, float):
        return value
    received = orjson.dumps(value).decode()[:60] if not isinstance(value, (list, dict)) else type(value).__name__
    raise ValueError(f"`{name}` must contain {_KINDS[dtype]}. Received: {received}.")


def _decoded(name: str, value: Any) -> bytes:
    try:
        return base64.b64decode(value, validate=True)
    except (TypeError, ValueError, binascii.Error):
        raise ValueError(f'`{name}` must contain valid base64 in {{"b64": ...}}.') from None


def _is_base64(value: Any) -> bool:
    return isinstance(value, dict) and value.keys() == {_BASE64}


def _features(example: Mapping[str, Any], index: int) -> dict[str, bytes]:
    """A feature is a string or a list of one string."""
    features = {}
    for name, value in example.items():
        if isinstance(value, list) and len(value) == 1:
            (value,) = value
        features[name] = _scalar(f"examples[{index}].{name}", value, "string")
    return features


def _plain(array: np.ndarray, name: str) -> Any:
    """What the serializer takes: numbers as an array, strings as lists; as base64 if the name ends in `_bytes`."""
    if array.dtype != object:
        return np.ascontiguousarray(array)
    if name.endswith("_bytes"):
        return _nested(array, lambda value: {_BASE64: base64.b64encode(value).decode()})
    return _nested(array, lambda value: value.decode("utf-8", "replace"))


def _nested(array: np.ndarray, convert) -> list:
    return [convert(value) if array.ndim == 1 else _nested(value, convert) for value in array]


def _names(signature: Signature) -> str:
    return ", ".join(sorted(signature.inputs)) or "no keys"
