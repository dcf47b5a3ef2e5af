"""Signatures as TensorFlow Serving describes them."""

from typing import Any

from albert_tf.serving.engine import Signature, TensorSpec
from albert_tf.serving.versions import ServedVersion

DTYPE_NAMES = {"string": "DT_STRING", "int32": "DT_INT32", "float32": "DT_FLOAT"}
PREDICT = "tensorflow/serving/predict"


def metadata_of(served: ServedVersion) -> dict[str, Any]:
    """The answer to a `/metadata` request."""
    signatures = {name: signature_def(signature) for name, signature in served.engine.signatures.items()}
    return {
        "model_spec": {"name": served.version.model, "signature_name": "", "version": str(served.version.number)},
        "metadata": {"signature_def": {"signature_def": signatures}},
    }


def signature_def(signature: Signature) -> dict[str, Any]:
    """A `SignatureDef` as JSON."""
    return {
        "inputs": {name: _tensor_info(name, spec) for name, spec in signature.inputs.items()},
        "outputs": {name: _tensor_info(name, spec) for name, spec in signature.outputs.items()},
        "method_name": PREDICT,
        "defaults": {},
    }


def _tensor_info(name: str, spec: TensorSpec) -> dict[str, Any]:
    sizes = [{"size": str(-1 if size is None else size), "name": ""} for size in spec.shape]
    return {
        "dtype": DTYPE_NAMES[spec.dtype],
        "tensor_shape": {"dim": sizes, "unknown_rank": False},
        "name": f"{name}:0",
    }
