"""Proves that TensorFlow Serving's files in `saved_models` are valid and fit each other; no server is started."""

import http.server
import os
import pathlib
import re
import shutil
import subprocess
import textwrap
import threading

import pytest
import tensorflow as tf
import yaml
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, text_format, wrappers_pb2

from albert_tf.data.finetuning.few_shapes import padded_length, padded_lengths
from tests.toy_task import tokenizer

FOLDER = pathlib.Path(__file__).parents[2] / "saved_models"
METADATA = "/v1/models/task/metadata"
# tensorflow-serving-api lacks these two: session_bundle_config.proto and monitoring_config.proto of tensorflow/serving.
NUMBER, OPTIONAL = 'type_name: ".google.protobuf.Int64Value"', "label: LABEL_OPTIONAL"
PROTO = f"""
name: "serving.proto" package: "serving" syntax: "proto3" dependency: "google/protobuf/wrappers.proto"
message_type {{
  name: "BatchingParameters"
  field {{ number: 1 name: "max_batch_size" {OPTIONAL} {NUMBER} }}
  field {{ number: 2 name: "batch_timeout_micros" {OPTIONAL} {NUMBER} }}
  field {{ number: 3 name: "max_enqueued_batches" {OPTIONAL} {NUMBER} }}
  field {{ number: 4 name: "num_batch_threads" {OPTIONAL} {NUMBER} }}
  field {{ number: 6 name: "allowed_batch_sizes" label: LABEL_REPEATED type: TYPE_INT64 }}
  field {{ number: 7 name: "pad_variable_length_inputs" {OPTIONAL} type: TYPE_BOOL }}
}}
message_type {{
  name: "PrometheusConfig"
  field {{ number: 1 name: "enable" {OPTIONAL} type: TYPE_BOOL }}
  field {{ number: 2 name: "path" {OPTIONAL} type: TYPE_STRING }}
}}
message_type {{
  name: "MonitoringConfig"
  field {{ number: 1 name: "prometheus_config" {OPTIONAL} type_name: ".serving.PrometheusConfig" }}
}}
"""


def message_of(name):
    """An empty message of PROTO."""
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(wrappers_pb2.DESCRIPTOR.serialized_pb)
    pool.Add(text_format.Parse(PROTO, descriptor_pb2.FileDescriptorProto()))
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(f"serving.{name}"))()


def read(name, message):
    return text_format.Parse((FOLDER / name).read_text(encoding="utf-8"), message)


def documents(name):
    return {document.get("kind"): document for document in yaml.safe_load_all((FOLDER / name).read_text("utf-8"))}


def test_the_models():
    from tensorflow_serving.config import model_server_config_pb2

    (model,) = read("models.config", model_server_config_pb2.ModelServerConfig()).model_config_list.config
    assert (model.name, model.base_path, model.model_platform) == ("task", "/models/task", "tensorflow")


def test_batches_are_not_padded_and_metrics_are_on():
    batching = read("batching.config", message_of("BatchingParameters"))
    assert batching.max_batch_size.value >= 1
    assert batching.num_batch_threads.value >= 1
    assert not batching.pad_variable_length_inputs
    monitoring = read("monitoring.config", message_of("MonitoringConfig")).prometheus_config
    annotations = documents("kubernetes.yaml")["Deployment"]["spec"]["template"]["metadata"]["annotations"]
    assert monitoring.enable
    assert annotations["prometheus.io/path"] == monitoring.path


def test_batches_and_warm_up_on_gpus(tmp_path, monkeypatch):
    section = (FOLDER / "README.md").read_text("utf-8").partition("### On GPUs")[2]
    settings, program = re.findall(r"(?:^    .*\n|^\n(?=    ))+", section, re.MULTILINE)[:2]
    batching = text_format.Parse(settings, message_of("BatchingParameters"))
    assert batching.allowed_batch_sizes[-1] == batching.max_batch_size.value
    monkeypatch.chdir(tmp_path)
    (tmp_path / "saved_models/task/1/assets.extra").mkdir(parents=True)
    exec(textwrap.dedent(program), {})
    (file,) = tmp_path.rglob("tf_serving_warmup_requests")
    requests = [predict_log(record) for record in tf.data.TFRecordDataset(str(file)).as_numpy_iterator()]
    rows = [request.inputs["text"].tensor_shape.dim[0].size for request in requests]
    assert rows == [*reversed(batching.allowed_batch_sizes)] * 5
    texts = [request.inputs["text"].string_val[0].decode() for request in requests]
    lengths = [len(ids) + 2 for ids in tokenizer().encode_batch(texts)]
    assert sorted({padded_length(length, 128) for length in lengths}) == [*padded_lengths(128)]


def predict_log(record):
    from tensorflow_serving.apis import prediction_log_pb2

    return prediction_log_pb2.PredictionLog.FromString(record).predict_log.request


def test_compose_and_kubernetes_start_the_server_alike():
    compose = documents("compose.yaml")[None]["services"]["serving"]
    cluster = documents("kubernetes.yaml")
    pod = cluster["Deployment"]["spec"]["template"]
    (container,) = pod["spec"]["containers"]
    of_compose, of_cluster = (
        [flag.replace(folder, "FOLDER") for flag in flags]
        for flags, folder in ((compose["command"], "=/models"), (container["args"], "=/config"))
    )
    assert of_compose == of_cluster
    named = [flag.rpartition("/")[2] for flag in of_compose if "FOLDER" in flag]
    assert sorted(named) == sorted(path.name for path in FOLDER.glob("*.config"))
    assert all(f"--from-file {name}" in (FOLDER / "kubernetes.yaml").read_text("utf-8") for name in named)

    labels = pod["metadata"]["labels"]
    assert cluster["Deployment"]["spec"]["selector"]["matchLabels"] == cluster["Service"]["spec"]["selector"] == labels
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    assert ports == {"grpc": 8500, "rest": 8501}
    assert {port["targetPort"]: port["port"] for port in cluster["Service"]["spec"]["ports"]} == ports
    assert container["startupProbe"]["httpGet"] == {"path": METADATA, "port": "rest"}
    assert container["readinessProbe"]["httpGet"] == {"path": METADATA, "port": "rest"}
    volumes = {volume["name"] for volume in pod["spec"]["volumes"]}
    assert {mount["name"] for mount in container["volumeMounts"]} == volumes
    target = cluster["HorizontalPodAutoscaler"]["spec"]["scaleTargetRef"]
    assert (target["kind"], target["name"]) == ("Deployment", cluster["Deployment"]["metadata"]["name"])
    assert container["resources"]["requests"]["cpu"]  # else the autoscaler has no utilization to go by


@pytest.mark.parametrize("status", [200, 404])
def test_the_container_is_healthy_once_the_model_is_loaded(status):
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(status if self.path == METADATA else 500)
            self.end_headers()

        def log_message(self, *_):
            pass

    _, *command = documents("compose.yaml")[None]["services"]["serving"]["healthcheck"]["test"]
    with http.server.HTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        command[-1] = command[-1].replace("8501", str(server.server_port))
        done = subprocess.run(command, capture_output=True, timeout=30)
        server.shutdown()
    assert (done.returncode == 0) is (status == 200)


def test_the_check_says_that_docker_is_missing(tmp_path):
    (tmp_path / "dirname").symlink_to(shutil.which("dirname"))
    command = [shutil.which("bash"), str(FOLDER / "check_tf_serving.sh")]
    done = subprocess.run(
        command, env={**os.environ, "PATH": str(tmp_path)}, capture_output=True, text=True, timeout=30
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert "Docker is not installed or not running" in done.stderr
    assert len(done.stderr.splitlines()) == 1
