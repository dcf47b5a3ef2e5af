"""Proves that TensorFlow Serving's own stubs are answered."""

import contextlib

import grpc
import numpy as np
import pytest
import tensorflow as tf
from grpc_health.v1 import health_pb2, health_pb2_grpc
from tensorflow_serving.apis import (
    classification_pb2,
    get_model_metadata_pb2,
    get_model_status_pb2,
    model_service_pb2_grpc,
    predict_pb2,
    prediction_service_pb2_grpc,
    regression_pb2,
)

from albert_tf.serving.grpc_service import make_server
from tests.serving.toy_server import run, toy_server, write_version


@contextlib.asynccontextmanager
async def channel(root, **options):
    """A channel to a server of a toy model, and its metrics."""
    write_version(root / "task", 3)
    async with toy_server(root, **options) as server:
        grpc_server = make_server(server.state)
        port = grpc_server.add_insecure_port("127.0.0.1:0")
        await grpc_server.start()
        async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as opened:
            yield opened, server.state.metrics
        await grpc_server.stop(0)


def predict_request(texts=("aaab", "bb"), name="task", signature="", **inputs):
    request = predict_pb2.PredictRequest()
    request.model_spec.name, request.model_spec.signature_name = name, signature
    for key, value in (inputs or {"text": list(texts)}).items():
        request.inputs[key].CopyFrom(tf.make_tensor_proto(value))
    return request


def example(**features):
    lists = {name: tf.train.Feature(bytes_list=tf.train.BytesList(value=[value])) for name, value in features.items()}
    return tf.train.Example(features=tf.train.Features(feature=lists))


def test_predictions_classes_metadata_and_state(tmp_path):
    async def scenario():
        async with channel(tmp_path) as (opened, _):
            stub = prediction_service_pb2_grpc.PredictionServiceStub(opened)
            reply = await stub.Predict(predict_request())
            assert (reply.model_spec.name, reply.model_spec.version.value) == ("task", 3)
            assert reply.model_spec.signature_name == "serving_default"
            arrays = {name: tf.make_ndarray(tensor) for name, tensor in reply.outputs.items()}
            assert arrays["label"].tolist() == [b"vowels", b"consonants"]
            np.testing.assert_array_equal(arrays["probabilities"], np.array([[0.25, 0.75], [1, 0]], np.float32))
            ids = predict_request(signature="tokens", input_ids=np.array([[1, 2]], np.int32))
            assert tf.make_ndarray((await stub.Predict(ids)).outputs["sum"]).tolist() == [3]
            request = predict_request()
            request.output_filter.append("score")
            assert list((await stub.Predict(request)).outputs) == ["score"]

            classified = classification_pb2.ClassificationRequest()
            classified.model_spec.name = "task"
            classified.input.example_list.examples.append(example(text=b"aaab"))
            (row,) = (await stub.Classify(classified)).result.classifications
            assert [(item.label, item.score) for item in row.classes] == [("consonants", 0.25), ("vowels", 0.75)]

            described = get_model_metadata_pb2.GetModelMetadataRequest(metadata_field=["signature_def"])
            described.model_spec.name = "task"
            signatures = get_model_metadata_pb2.SignatureDefMap()
            (await stub.GetModelMetadata(described)).metadata["signature_def"].Unpack(signatures)
            text = signatures.signature_def["serving_default"].inputs["text"]
            assert (text.dtype, [dim.size for dim in text.tensor_shape.dim]) == (tf.string.as_datatype_enum, [-1])

            asked = get_model_status_pb2.GetModelStatusRequest()
            asked.model_spec.name = "task"
            (state,) = (
                await model_service_pb2_grpc.ModelServiceStub(opened).GetModelStatus(asked)
            ).model_version_status
            assert (state.version, state.state) == (3, get_model_status_pb2.ModelVersionStatus.AVAILABLE)
            health = await health_pb2_grpc.HealthStub(opened).Check(health_pb2.HealthCheckRequest())
            assert health.status == health_pb2.HealthCheckResponse.SERVING

    run(scenario)


def test_mistakes_have_their_code(tmp_path, caplog):
    wrong_version = predict_request()
    wrong_version.model_spec.version.value = 9
    labelled = predict_request()
    labelled.model_spec.version_label = "stable"
    filtered = predict_request()
    filtered.output_filter.append("none")
    damaged = predict_request()
    damaged.inputs["text"].tensor_shape.dim[0].size = 7
    del damaged.inputs["text"].string_val[:]
    expected = [
        (predict_request(["bad"]), "INVALID_ARGUMENT", "The text is bad."),
        (predict_request(["bad" + "🙂" * 10_000]), "INVALID_ARGUMENT", "🙂 ..."),
        (predict_request([b"\xff"]), "INVALID_ARGUMENT", "must be valid UTF-8"),
        (predict_request(words=["a"]), "INVALID_ARGUMENT", "inputs must be text"),
        (predict_request(text=[[b"a"]]), "INVALID_ARGUMENT", "must have the shape"),
        (predict_request(text=[1]), "INVALID_ARGUMENT", "`text` must be string. Received: int32"),
        (filtered, "INVALID_ARGUMENT", "must name outputs"),
        (damaged, "INVALID_ARGUMENT", "`text`"),
        (predict_request(["crash"]), "INTERNAL", "the log of the server says why"),
        (predict_request(name="none"), "NOT_FOUND", "any versions of model none"),
        (predict_request(signature="none"), "NOT_FOUND", "not found"),
        (wrong_version, "NOT_FOUND", "version 9"),
        (labelled, "NOT_FOUND", "'stable'"),
    ]

    async def scenario():
        async with channel(tmp_path) as (opened, metrics):
            stub = prediction_service_pb2_grpc.PredictionServiceStub(opened)
            for request, code, complaint in expected:
                with pytest.raises(grpc.aio.AioRpcError) as error:
                    await stub.Predict(request)
                assert (error.value.code().name, complaint in error.value.details()) == (code, True), complaint
            regress = regression_pb2.RegressionRequest()
            regress.model_spec.name = "task"
            with pytest.raises(grpc.aio.AioRpcError, match="does not predict a number"):
                await stub.Regress(regress)
            return metrics.text().decode()

    text = run(scenario)
    assert 'code="INTERNAL",method="predict",model="task",protocol="grpc"} 1.0' in text


def test_two_servers_do_not_share_a_port(tmp_path):
    async def scenario():
        write_version(tmp_path / "task", 1)
        async with toy_server(tmp_path) as other:
            first, second = make_server(other.state), make_server(other.state)
            port = first.add_insecure_port("127.0.0.1:0")
            with pytest.raises(RuntimeError, match="bind"):
                second.add_insecure_port(f"127.0.0.1:{port}")
            await first.stop(0)

    run(scenario)


def test_the_key_is_needed_but_for_health(tmp_path):
    async def scenario():
        async with channel(tmp_path, api_key="key") as (opened, _):
            stub = prediction_service_pb2_grpc.PredictionServiceStub(opened)
            for metadata in ((), (("x-api-key", "wrong"),)):
                with pytest.raises(grpc.aio.AioRpcError) as error:
                    await stub.Predict(predict_request(), metadata=metadata)
                assert error.value.code() == grpc.StatusCode.UNAUTHENTICATED
            for metadata in ((("x-api-key", "key"),), (("authorization", "Bearer key"),)):
                assert (await stub.Predict(predict_request(), metadata=metadata)).outputs
            assert await health_pb2_grpc.HealthStub(opened).Check(health_pb2.HealthCheckRequest())

    run(scenario)
