"""Requests that TensorFlow Serving runs when it loads a model, so that the first client does not wait for it."""

# The generated modules of tensorflow-serving-api have no stubs.
# pyright: reportAttributeAccessIssue=false

import importlib.util
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

import tensorflow as tf

from albert_tf.extras import install_command

_FILE = pathlib.PurePath("assets.extra", "tf_serving_warmup_requests")


def check_serving_api() -> None:
    """Raises ValueError if tensorflow-serving-api is not installed."""
    if importlib.util.find_spec("tensorflow_serving") is None:
        raise ValueError(f"Warm-up requests need tensorflow-serving-api; {install_command('serve')}.")


def write_warmup_requests(folder: pathlib.Path, name: str, texts: Mapping[str, Sequence[Any]]) -> None:
    """Writes a request for each text, and one for all of them.

    Args:
        folder: of the SavedModel.
        name: of the model, as clients ask for it.
        texts: inputs of `serving_default`.
    """
    from tensorflow_serving.apis import predict_pb2, prediction_log_pb2

    (folder / _FILE).parent.mkdir(exist_ok=True)  # the tokenizer may be there
    count = len(next(iter(texts.values())))
    with tf.io.TFRecordWriter(str(folder / _FILE)) as writer:
        for rows in [*(slice(row, row + 1) for row in range(count)), slice(None)]:
            request = predict_pb2.PredictRequest()
            request.model_spec.name = name
            request.model_spec.signature_name = "serving_default"
            for key, values in texts.items():
                request.inputs[key].CopyFrom(tf.make_tensor_proto(list(values[rows]), tf.string))
            log = prediction_log_pb2.PredictionLog(predict_log=prediction_log_pb2.PredictLog(request=request))
            writer.write(log.SerializeToString())
