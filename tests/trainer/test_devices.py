"""Workers that do not fit each other are named before they train; what TF_CONFIG cannot be is refused."""

import json
import sys

import pytest
import tensorflow as tf
from tensorflow.python.client import device_lib

from albert_tf import AlbertConfig
from albert_tf.costs import activation_values
from albert_tf.trainer.devices import connect
from albert_tf.trainer.recipe import TrainingRecipe
from tests.trainer.runs import start_workers

# Says what it raises; each worker would train with another batch size, on the same data.
PROGRAM = """
from albert_tf.trainer.devices import connect
devices = connect("multi_worker")
print("chief" if devices.is_chief else "worker", devices.any_worker(devices.index == 1), flush=True)
devices.check_agreement({"data": {"sha256": "1"}})
try:
    devices.check_agreement({"recipe": {"batch_size": devices.index}, "data": {"sha256": "1"}})
except ValueError as error:
    print(error, flush=True)
devices.barrier()
"""


@pytest.mark.exhaustive
def test_workers_agree_or_the_one_that_differs_is_named():
    said = [worker.communicate(timeout=300)[0] for worker in start_workers(2, sys.executable, "-c", PROGRAM)]
    assert ["chief True" in said[0], "worker True" in said[1]] == [True, True], said
    for lines in said:
        assert "Different from the chief: worker 1 (127.0.0.1:" in lines
        assert ") in recipe; start all with the same recipe" in lines


def environment(cluster, task) -> str:
    return json.dumps({"cluster": cluster, "task": task})


@pytest.mark.parametrize(
    "config",
    [
        None,
        "{'cluster'",
        "[]",
        '{"cluster": {"worker": ["a:1"]}}',
        environment({"worker": ["a:1", "b:1"]}, {"type": "worker", "index": 2}),
        environment({"worker": ["a:1"]}, {"type": "ps", "index": 0}),
        environment({"worker": ["a:1", "a:1"]}, {"type": "worker", "index": 0}),
        environment({"worker": [3]}, {"type": "worker", "index": 0}),
    ],
)
def test_a_tf_config_that_cannot_be_is_refused_with_an_example(config, monkeypatch):
    if config is None:
        monkeypatch.delenv("TF_CONFIG", raising=False)
    else:
        monkeypatch.setenv("TF_CONFIG", config)
    with pytest.raises(ValueError, match=r"TF_CONFIG must name all workers .*set it like") as caught:
        connect("multi_worker")
    assert "\n" not in str(caught.value)


def test_a_tensorflow_without_tpus_is_named():
    with pytest.raises(ValueError, match="has no support for TPUs: install tensorflow-tpu in its place"):
        connect("tpu")


@pytest.mark.parametrize("gigabytes", [24, 80])
def test_a_batch_that_a_gpu_cannot_hold_is_refused(gigabytes, monkeypatch):
    """On one GPU as TensorFlow reports it; xlarge keeps 775 MiB a row."""
    gpu = device_lib.list_local_devices()[0]
    gpu.device_type, gpu.memory_limit = "GPU", int(gigabytes * 0.92e9)
    monkeypatch.setattr(tf.config, "list_logical_devices", lambda: [gpu])
    monkeypatch.setattr(device_lib, "list_local_devices", lambda: [gpu])
    training = TrainingRecipe(batch_size=64, dtype_policy="mixed_bfloat16", num_train_steps=100)
    devices = connect("one_device")
    values = activation_values(AlbertConfig.from_preset("xlarge_v2"), 512, 77, devices.keeps_scores("mixed_bfloat16"))
    if gigabytes == 80:
        devices.check_memory(training, values)
        return
    with pytest.raises(ValueError, match=r"batch_size=64 needs at least 48 GiB for .*, and a GPU has 21 GiB; lower it"):
        devices.check_memory(training, values)
