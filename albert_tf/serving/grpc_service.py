"""TensorFlow Serving's gRPC interface; its messages import TensorFlow, so only servers with gRPC import this module."""

# The generated modules of the messages have no type stubs.
# pyright: reportAttributeAccessIssue=false

import logging
import math
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any

import grpc
import numpy as np
import tensorflow as tf
from google.protobuf import json_format
from grpc_health.v1 import health, health_pb2_grpc
from tensorflow_serving.apis import (
    classification_pb2,
    get_model_metadata_pb2,
    get_model_status_pb2,
    input_pb2,
    model_pb2,
    model_service_pb2_grpc,
    predict_pb2,
    prediction_service_pb2_grpc,
    regression_pb2,
)

from albert_tf.serving import answers
from albert_tf.serving.rest import ServerState
from albert_tf.serving.versions import ServedVersion

_MAX_VALUES = 1 << 22
_logger = logging.getLogger(__name__)


def make_server(state: ServerState) -> grpc.aio.Server:
    """A server without a port, with the prediction, model and health services."""
    options = [
        ("grpc.max_receive_message_length", state.max_body),
        ("grpc.max_send_message_length", -1),
        ("grpc.so_reuseport", 0),  # or a second server would take half of the calls to this one's port
    ]
    server = grpc.aio.server(options=options, interceptors=[_KeyInterceptor(state)])
    prediction_service_pb2_grpc.add_PredictionServiceServicer_to_server(PredictionService(state), server)
    model_service_pb2_grpc.add_ModelServiceServicer_to_server(ModelService(state), server)
    health_pb2_grpc.add_HealthServicer_to_server(health.aio.HealthServicer(), server)
    return server


class PredictionService(prediction_service_pb2_grpc.PredictionServiceServicer):
    """Predict, Classify, Regress and GetModelMetadata; MultiInference stays unimplemented."""

    def __init__(self, state: ServerState):
        self._state = state

    async def Predict(self, request, context):  # noqa: N802  # names of the protocol
        async def answer(served: ServedVersion, signature: str, timeout: float | None):
            inputs = {name: _array(name, tensor) for name, tensor in request.inputs.items()}
            outputs = await answers.predict(served, signature, inputs, timeout)
            names = _filtered(request.output_filter, outputs)
            tensors = {name: tf.make_tensor_proto(outputs[name]) for name in names}
            return predict_pb2.PredictResponse(model_spec=_spec(served, signature), outputs=tensors)

        return await self._answer("predict", request, context, answer)

    async def Classify(self, request, context):  # noqa: N802
        async def answer(served: ServedVersion, signature: str, timeout: float | None):
            rows = await answers.classify(served, signature, _examples(request.input), timeout)
            response = classification_pb2.ClassificationResponse(model_spec=_spec(served, signature))
            for row in rows:
                classes = [classification_pb2.Class(label=label, score=score) for label, score in row]
                response.result.classifications.add(classes=classes)
            return response

        return await self._answer("classify", request, context, answer)

    async def Regress(self, request, context):  # noqa: N802
        async def answer(served: ServedVersion, signature: str, timeout: float | None):
            values = await answers.regress(served, signature, _examples(request.input), timeout)
            response = regression_pb2.RegressionResponse(model_spec=_spec(served, signature))
            response.result.regressions.extend(regression_pb2.Regression(value=value) for value in values)
            return response

        return await self._answer("regress", request, context, answer)

    async def GetModelMetadata(self, request, context):  # noqa: N802
        async def answer(served: ServedVersion, signature: str, _: float | None):
            if list(request.metadata_field) != ["signature_def"]:
                raise ValueError(f"`metadata_field` must be signature_def. Received: {list(request.metadata_field)}.")
            signatures = get_model_metadata_pb2.SignatureDefMap()
            json_format.ParseDict(
                answers.metadata_of(served)["metadata"]["signature_def"], signatures, ignore_unknown_fields=True
            )
            response = get_model_metadata_pb2.GetModelMetadataResponse(model_spec=_spec(served, ""))
            response.metadata["signature_def"].Pack(signatures)
            return response

        return await self._answer("metadata", request, context, answer)

    async def _answer(self, method: str, request, context, answer: Callable[..., Awaitable[Any]]):
        async def measured():
            name, version = _requested(request.model_spec)
            signature = request.model_spec.signature_name or answers.DEFAULT_SIGNATURE
            with self._state.models.hold(name, version) as served, self._state.metrics.measured(name, method, "grpc"):
                return await answer(served, signature, context.time_remaining())

        return await _or_abort(context, measured())


class ModelService(model_service_pb2_grpc.ModelServiceServicer):
    """GetModelStatus; HandleReloadConfigRequest stays unimplemented."""

    def __init__(self, state: ServerState):
        self._state = state

    async def GetModelStatus(self, request, context):  # noqa: N802
        async def answer():
            served = self._state.models.find(*_requested(request.model_spec))
            response = get_model_status_pb2.GetModelStatusResponse()
            available = get_model_status_pb2.ModelVersionStatus.AVAILABLE
            response.model_version_status.add(version=served.version.number, state=available).status.error_code = 0
            return response

        return await _or_abort(context, answer())


class _KeyInterceptor(grpc.aio.ServerInterceptor):
    """Refuses calls without the API key, except of the health service."""

    def __init__(self, state: ServerState):
        self._state = state

        async def refuse(_, context):
            await context.abort(grpc.StatusCode.UNAUTHENTICATED, "The API key is missing or wrong.")

        self._refuse = grpc.unary_unary_rpc_method_handler(refuse)

    async def intercept_service(self, continuation, handler_call_details):
        sent = {key: value for key, value in handler_call_details.invocation_metadata if isinstance(value, str)}
        is_allowed = self._state.allows(sent.get("authorization", ""), sent.get("x-api-key", ""))
        if is_allowed or handler_call_details.method.startswith("/grpc.health."):
            return await continuation(handler_call_details)
        return self._refuse


async def _or_abort(context, answer: Awaitable[Any]) -> Any:
    """Awaits an answer, and turns its exceptions into the status codes of gRPC."""
    try:
        return await answer
    except Exception as error:
        _, code = answers.codes_of(error)
        if code == "INTERNAL":
            _logger.exception("A gRPC call failed.")
        await context.abort(grpc.StatusCode[code], answers.message_of(error))


def _requested(spec: model_pb2.ModelSpec) -> tuple[str, int | None]:
    """Name and version; raises NotFoundError for labels of versions, which are not known here."""
    if spec.version_label:
        raise answers.NotFoundError(f"Version label {spec.version_label[:100]!r} is not known; pass a version.")
    return spec.name, spec.version.value if spec.HasField("version") else None


def _spec(served: ServedVersion, signature: str) -> model_pb2.ModelSpec:
    spec = model_pb2.ModelSpec(name=served.version.model, signature_name=signature)
    spec.version.value = served.version.number
    return spec


def _array(name: str, tensor) -> np.ndarray:
    # A tensor may name a large shape and one value for all of it.
    if math.prod(dim.size for dim in tensor.tensor_shape.dim) > _MAX_VALUES:
        raise ValueError(f"`{name}` must have at most {_MAX_VALUES} values; split the request.")
    try:
        array = tf.make_ndarray(tensor)
    except (TypeError, ValueError) as error:
        raise ValueError(f"`{name}` is not a valid tensor ({error}).") from None
    if array.dtype == object and not all(isinstance(value, bytes) for value in array.flat):
        raise ValueError(f"`{name}` is not a valid tensor (it has fewer values than its shape says).")
    return array


def _filtered(names: Iterable[str], outputs: Mapping[str, Any]) -> list[str]:
    if unknown := sorted(set(names) - set(outputs)):
        raise ValueError(f"`output_filter` must name outputs of the signature. Received: {unknown}.")
    return list(names) or list(outputs)


def _examples(given: input_pb2.Input) -> list[dict[str, bytes]]:
    """The features of each example, over those of the context."""
    if given.WhichOneof("kind") == "example_list_with_context":
        listed, context = given.example_list_with_context, _features(given.example_list_with_context.context)
    else:
        listed, context = given.example_list, {}
    return [context | _features(example) for example in listed.examples]


def _features(example) -> dict[str, bytes]:
    features = {}
    for name, feature in example.features.feature.items():
        if len(feature.bytes_list.value) != 1:
            raise ValueError(f"Feature `{name}` must have exactly one string.")
        features[name] = feature.bytes_list.value[0]
    return features
