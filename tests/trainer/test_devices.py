"""Workers that do not fit each other are named before they train; what TF_CONFIG cannot be is refused."""

import json
import sys

import pytest

from albert_tf.trainer.devices import connect
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
