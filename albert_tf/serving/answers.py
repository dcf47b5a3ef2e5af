"""Shared by REST and gRPC: describing signatures, checking inputs, and reading classes and numbers from outputs."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from albert_tf.inference.signatures import Signature
from albert_tf.serving.batching import BYTES_PER_TOKEN, QueueFullError
from albert_tf.serving.versions import NotFoundError, ServedVersion
from albert_tf.tasks.outputs import TensorSpec

DEFAULT_SIGNATURE = "serving_default"
DTYPES = {"string": np.dtype(object), "int32": np.dtype(np.int32), "float32": np.dtype(np.float32)}
# Tokens or choices of a row: far more than a model has positions, and few enough not to exhaust the memory.
MAX_COLUMNS = 4096
# Tokens of a row of a model that computes all of them: in windows, or for each choice. The memory of one pass is in
# proportion, some 2 GB for ALBERT-base. Other models truncate their texts.
MAX_ROW_TOKENS = 1 << 14
_OF_ALL_TOKENS = {"answer", "entity_label", "choice"}  # outputs of such models, also of exports of other programs
# Characters of an error, which may quote a text: gRPC writes some as 12 bytes, and refuses statuses of over 8 KiB.
_MAX_MESSAGE = 500
# HTTP status and gRPC code by exception, as TensorFlow Serving pairs them.
_CODES = {
    ValueError: (400, "INVALID_ARGUMENT"),
    NotFoundError: (404, "NOT_FOUND"),
    QueueFullError: (429, "RESOURCE_EXHAUSTED"),
    TimeoutError: (504, "DEADLINE_EXCEEDED"),
    ConnectionError: (499, "CANCELLED"),
}


def codes_of(error: Exception) -> tuple[int, str]:
    """The HTTP status and the gRPC code of an exception."""
    return next((codes for kind, codes in _CODES.items() if isinstance(error, kind)), (500, "INTERNAL"))


def message_of(error: Exception) -> str:
    """The sentence for the client; of an unexpected exception only that it happened."""
    if not isinstance(error, tuple(_CODES)):
        return "The model failed on this request; the log of the server says why."
    message = str(error)
    return message if len(message) <= _MAX_MESSAGE else f"{message[:_MAX_MESSAGE]} ..."


def find_signature(served: ServedVersion, name: str) -> Signature:
    """A signature by name; raises NotFoundError if the model has none of this name."""
    if name not in served.engine.signatures:
        known = ", ".join(sorted(served.engine.signatures))
        raise NotFoundError(f'Serving signature name: "{name[:100]}" not found; the model has {known}.')
    return served.engine.signatures[name]


def metadata_of(served: ServedVersion) -> dict[str, Any]:
    """The answer to a `/metadata` request: each signature as a `SignatureDef`."""
    signatures = {
        name: {
            "inputs": {key: _tensor_info(key, spec) for key, spec in signature.inputs.items()},
            "outputs": {key: _tensor_info(key, spec) for key, spec in signature.outputs.items()},
            "method_name": "tensorflow/serving/predict",
            "defaults": {},
        }
        for name, signature in served.engine.signatures.items()
    }
    return {
        "model_spec": {"name": served.version.model, "signature_name": "", "version": str(served.version.number)},
        "metadata": {"signature_def": {"signature_def": signatures}},
    }


def _tensor_info(name: str, spec: TensorSpec) -> dict[str, Any]:
    sizes = [{"size": str(-1 if size is None else size), "name": ""} for size in spec.shape]
    return {
        "dtype": {"string": "DT_STRING", "int32": "DT_INT32", "float32": "DT_FLOAT"}[spec.dtype],
        "tensor_shape": {"dim": sizes, "unknown_rank": False},
        "name": f"{name}:0",
    }


def check_inputs(signature: Signature, inputs: Mapping[str, np.ndarray]) -> None:
    """Raises ValueError if the arrays do not fit the signature."""
    if set(inputs) != set(signature.inputs):
        expected, received = (", ".join(sorted(names)) or "none" for names in (signature.inputs, inputs))
        raise ValueError(f"The inputs must be {expected}. Received: {received[:200]}.")
    for name, array in inputs.items():
        spec = signature.inputs[name]
        if array.dtype != DTYPES[spec.dtype]:
            raise ValueError(f"`{name}` must be {spec.dtype}. Received: {array.dtype}.")
        check_shape(name, array.shape, spec)
        if spec.dtype == "string":
            _check_strings(name, array)
    if len(sizes := {name: len(array) for name, array in inputs.items()}) and len(set(sizes.values())) > 1:
        raise ValueError(f"The inputs must have equal numbers of rows. Received: {sizes}.")


def check_shape(name: str, shape: Sequence[int], spec: TensorSpec) -> None:
    """Raises ValueError if an input cannot have this shape."""
    fits = len(shape) == len(spec.shape) and all(known in (None, size) for known, size in zip(spec.shape, shape))
    if not fits or 0 in shape:
        wanted = [-1 if size is None else size for size in spec.shape]
        raise ValueError(f"`{name}` must have the shape {wanted}, and no size of 0. Received: {list(shape)}.")
    if max(shape[1:], default=0) > MAX_COLUMNS:
        raise ValueError(f"`{name}` must have at most {MAX_COLUMNS} columns. Received: {list(shape)}.")


def _check_strings(name: str, array: np.ndarray) -> None:
    for value in array.flat:
        try:
            value.decode()
        except UnicodeDecodeError:
            raise ValueError(f"`{name}` must be valid UTF-8. Received: {value[:40]!r}.") from None


def check_row_sizes(served: ServedVersion, inputs: Mapping[str, np.ndarray]) -> None:
    """Raises ValueError if a row alone would exhaust the memory; a text has a token in four bytes, by estimate."""
    outputs = served.engine.signatures[DEFAULT_SIGNATURE].outputs
    if not served.engine.reads_windows and not _OF_ALL_TOKENS & set(outputs):
        return
    for index, row in enumerate(zip(*inputs.values())):
        if (tokens := _num_tokens(row)) > MAX_ROW_TOKENS:
            raise ValueError(
                f"Row {index} must have at most {MAX_ROW_TOKENS} tokens, all choices padded to the longest one and "
                f"with the context each; split it. Received: about {tokens}."
            )


def _num_tokens(row: Sequence) -> int:
    """The number of tokens of texts, of a text and its choices, or of ids, whose inputs have equal shapes."""
    if not all(isinstance(value, bytes) or value.dtype == object for value in row):
        return row[0].size
    num_choices = max((len(value) for value in row if not isinstance(value, bytes)), default=1)
    longest = sum(len(value) if isinstance(value, bytes) else max(map(len, value)) for value in row)
    return num_choices * longest // BYTES_PER_TOKEN


async def predict(
    served: ServedVersion, signature: str, inputs: Mapping[str, np.ndarray], timeout: float | None = None
) -> dict[str, np.ndarray]:
    """Answers a request after checking it; see `Batcher.run`."""
    check_inputs(find_signature(served, signature), inputs)
    check_row_sizes(served, inputs)
    outputs = await served.batcher.run(signature, inputs, timeout)
    for name, array in outputs.items():
        if array.dtype != object and np.isnan(array).any():
            raise ValueError(f"`{name}` of the answer is not a number; token ids must be in the vocabulary.")
    return outputs


async def classify(
    served: ServedVersion, signature: str, examples: Sequence[Mapping[str, bytes]], timeout: float | None = None
) -> list[list[tuple[str, np.float32]]]:
    """Labels with their probabilities for each example, in the order of the model's labels.

    Raises:
        ValueError: the model is not a classifier, or an example lacks a text.
    """
    if "labels" not in served.engine.signatures or "probabilities" not in find_signature(served, signature).outputs:
        raise ValueError(f"{served.version.model} has no labels; use :predict.")
    outputs = await predict(served, signature, _columns(served, signature, examples), timeout)
    names = await served.batcher.run("labels", {}, timeout)
    labels = [name.decode() for name in names["labels"]]
    return [list(zip(labels, row)) for row in outputs["probabilities"]]


async def regress(
    served: ServedVersion, signature: str, examples: Sequence[Mapping[str, bytes]], timeout: float | None = None
) -> np.ndarray:
    """The number of each example, float32 [B].

    Raises:
        ValueError: the model does not predict numbers, or an example lacks a text.
    """
    if set(find_signature(served, signature).outputs) != {"score"}:
        raise ValueError(f"{served.version.model} does not predict a number; use :predict.")
    return (await predict(served, signature, _columns(served, signature, examples), timeout))["score"]


def _columns(served: ServedVersion, signature: str, examples: Sequence[Mapping[str, bytes]]) -> dict[str, np.ndarray]:
    names = find_signature(served, signature).inputs
    for index, example in enumerate(examples):
        if set(example) != set(names):
            expected, received = (", ".join(sorted(keys)) or "none" for keys in (names, example))
            raise ValueError(f"examples[{index}] must have {expected}. Received: {received[:200]}.")
    if not examples:
        raise ValueError("`examples` must not be empty.")
    return {name: np.array([example[name] for example in examples], object) for name in names}
