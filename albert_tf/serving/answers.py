"""Answers to the requests of TensorFlow Serving's REST interface, from the body of one to that of the other."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from albert_tf.data.finetuning.encoded import BYTES_PER_TOKEN
from albert_tf.serving import tensor_json
from albert_tf.serving.errors import NotFoundError
from albert_tf.serving.tensor_json import DEFAULT_SIGNATURE, dumps
from albert_tf.serving.versions import ServedVersion
from albert_tf.tasks.outputs import TensorSpec

# Tokens of a row of a model that computes all of them: in windows, or for each choice. The memory of one pass is in
# proportion, some 2 GB for ALBERT-base. Other models truncate their texts.
MAX_ROW_TOKENS = 1 << 14
_OF_ALL_TOKENS = {"answer", "entity_label", "choice"}  # outputs of such models, also of exports of other programs
_DTYPES = {"string": "DT_STRING", "int32": "DT_INT32", "float32": "DT_FLOAT"}


async def predict(served: ServedVersion, body: bytes) -> bytes:
    """The outputs of a signature, by row or by name; raises ValueError also if the inputs do not fit, or for NaN."""
    request = await asyncio.to_thread(tensor_json.parse_predict, body)
    signatures, max_rows = served.engine.signatures, served.batcher.max_rows
    if request.signature not in signatures:
        known = ", ".join(sorted(signatures))
        raise NotFoundError(f'Serving signature name: "{request.signature[:100]}" not found; the model has {known}.')
    inputs = await asyncio.to_thread(tensor_json.parse_inputs, request, signatures[request.signature], max_rows)
    _check_row_sizes(served, inputs)
    outputs = await served.batcher.run(request.signature, inputs)
    for name, array in outputs.items():
        if array.dtype != object and np.isnan(array).any():
            raise ValueError(f"`{name}` of the answer is not a number; token ids must be in the vocabulary.")
    return await asyncio.to_thread(tensor_json.format_predictions, outputs, request.key == "instances")


def status_of(served: ServedVersion) -> bytes:
    """The state of the version that is served."""
    status = {"error_code": "OK", "error_message": ""}
    version = {"version": str(served.version.number), "state": "AVAILABLE", "status": status}
    return dumps({"model_version_status": [version]})


def metadata_of(served: ServedVersion) -> bytes:
    """Each signature as a `SignatureDef`."""
    signatures = {
        name: {
            "inputs": {key: _tensor_info(key, spec) for key, spec in signature.inputs.items()},
            "outputs": {key: _tensor_info(key, spec) for key, spec in signature.outputs.items()},
            "method_name": "tensorflow/serving/predict",
            "defaults": {},
        }
        for name, signature in served.engine.signatures.items()
    }
    model = {"name": served.version.model, "signature_name": "", "version": str(served.version.number)}
    return dumps({"model_spec": model, "metadata": {"signature_def": {"signature_def": signatures}}})


def _tensor_info(name: str, spec: TensorSpec) -> dict[str, Any]:
    sizes = [{"size": str(-1 if size is None else size), "name": ""} for size in spec.shape]
    return {"dtype": _DTYPES[spec.dtype], "tensor_shape": {"dim": sizes, "unknown_rank": False}, "name": f"{name}:0"}


def _check_row_sizes(served: ServedVersion, inputs: Mapping[str, np.ndarray]) -> None:
    """Raises ValueError if a row alone would exhaust the memory; a text has a token in four bytes, by estimate."""
    if not served.engine.reads_windows and not _OF_ALL_TOKENS & set(
        served.engine.signatures[DEFAULT_SIGNATURE].outputs
    ):
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
