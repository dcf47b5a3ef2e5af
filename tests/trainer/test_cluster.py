"""Workers that do not fit each other, or do not come, are named before TensorFlow starts."""

import concurrent.futures
import json
import signal
import socket
import sys

import pytest

from albert_tf.trainer.cluster import Cluster
from albert_tf.trainer.rendezvous import meet
from tests.trainer.runs import free_addresses, start_workers


def environment(cluster, task) -> dict[str, str]:
    return {"TF_CONFIG": json.dumps({"cluster": cluster, "task": task})}


def clusters(count: int) -> list[Cluster]:
    """As many workers on ports of this machine that are free."""
    addresses = free_addresses(count)
    return [Cluster(addresses, index) for index in range(count)]


def outcomes(workers: list[Cluster], facts: list[dict], timeout: float = 20) -> list[str]:
    """What each worker says when all meet at once; nothing where it goes on."""

    def outcome(worker, own):
        try:
            company = meet(worker, own, timeout)
            for connection in company.others.values():
                connection.close()
        except (ValueError, OSError) as error:
            return str(error)
        return ""

    with concurrent.futures.ThreadPoolExecutor(len(workers)) as pool:
        return list(pool.map(outcome, workers, facts))


def test_the_chief_comes_first():
    cluster = {"worker": ["b:1", "c:1"], "chief": ["a:1"]}
    found = Cluster.from_environment(environment(cluster, {"type": "worker", "index": 1}))
    assert found == Cluster(("a:1", "b:1", "c:1"), 2)
    assert not found.is_chief
    assert Cluster.from_environment(environment(cluster, {"type": "chief", "index": 0})).is_chief


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "must be JSON"),
        ({"TF_CONFIG": "{'cluster'"}, "must be JSON"),
        ({"TF_CONFIG": "[]"}, 'must have a "cluster"'),
        ({"TF_CONFIG": '{"cluster": {"worker": ["a:1"]}}'}, 'must have a "task"'),
        (environment({"worker": ["a:1", "b:1"]}, {"type": "worker", "index": 2}), "one of the 2 of worker, not 2"),
        (environment({"worker": ["a:1", "b:1"]}, {"type": "worker", "index": "0"}), "not '0'"),
        (environment({"worker": ["a:1"]}, {"type": "ps", "index": 0}), "not 'ps'"),
        (environment({"worker": ["a:1"], "ps": ["b:1"]}, {"type": "worker", "index": 0}), r"not \['ps'\]"),
        (environment({"worker": ["a:1", "a:1"]}, {"type": "worker", "index": 0}), "each worker once"),
        (environment({"worker": ["a", "b:1"]}, {"type": "worker", "index": 0}), '"host:port"'),
        (environment({"worker": "a:1"}, {"type": "worker", "index": 0}), '"host:port"'),
    ],
)
def test_a_tf_config_that_cannot_be_is_refused_with_an_example(given, message):
    with pytest.raises(ValueError, match=message) as caught:
        Cluster.from_environment(given)
    assert "\n" not in str(caught.value)
    assert "set it like" in str(caught.value)


def test_workers_that_agree_go_on():
    assert outcomes(clusters(3), [{"recipe": {"batch_size": 8}}] * 3) == ["", "", ""]


def test_a_worker_with_another_recipe_stops_all_with_the_difference():
    said = outcomes(clusters(2), [{"recipe": {"batch_size": 8}}, {"recipe": {"batch_size": 16}}])
    assert said[0] == said[1]
    assert "worker 1, which differs from the chief in recipe.batch_size (there 8, here 16)" in said[0]


def test_clusters_that_disagree_stop_both():
    one, other = clusters(2)
    said = outcomes([one, Cluster((*other.addresses, "127.0.0.1:1"), 1)], [{}, {}])
    assert said[0] == said[1]
    assert "same cluster in TF_CONFIG" in said[0]


def test_an_index_given_twice_stops_all():
    workers = clusters(3)
    said = outcomes([workers[0], workers[1], workers[1]], [{}] * 3)
    assert all("index 1 twice" in one or "port of a worker must be free" in one for one in said)
    assert "index 1 twice" in said[0]


def test_a_worker_that_does_not_come_is_named():
    workers = clusters(3)
    said = outcomes(workers[:2], [{}, {}], timeout=2)
    assert f"nothing from worker 2 ({workers[2].addresses[2]})" in said[0]
    assert said[1] == said[0]


def test_a_chief_that_does_not_come_is_named():
    worker = clusters(2)[1]
    assert f"nothing from {worker.addresses[0]}" in outcomes([worker], [{}], timeout=1)[0]


def test_a_port_that_is_taken_is_named():
    workers = clusters(2)
    for worker in workers:
        with socket.create_server(("127.0.0.1", worker.port_of(worker.index))):
            (said,) = outcomes([worker], [{}])
        assert f"port of a worker must be free. Received: {worker.addresses[worker.index]}" in said


PARTNER = """
import sys, time
from albert_tf.trainer.cluster import Cluster
from albert_tf.trainer.rendezvous import meet
with meet(Cluster.from_environment(), {}):
    print("met", flush=True)
    time.sleep(60)
"""


@pytest.mark.parametrize("dead", [0, 1])
def test_a_worker_that_dies_while_tensorflow_starts_ends_the_others(dead):
    workers = start_workers(3, sys.executable, "-c", PARTNER)
    assert [worker.stdout.readline() for worker in workers] == ["met\n"] * 3
    workers[dead].kill()
    said = [worker.communicate(timeout=30)[0] for worker in workers]
    assert [worker.returncode for worker in workers] == [-signal.SIGKILL] * 3
    said.pop(dead)
    assert f"Received: worker {dead} (127.0.0.1:" in said[0]
    assert all("gone at the start" in one for one in said)


def test_a_stranger_on_the_port_changes_nothing():
    chief, worker = clusters(2)
    with concurrent.futures.ThreadPoolExecutor() as pool:
        said = pool.submit(outcomes, [chief], [{}])
        while True:
            try:
                with socket.create_connection(("127.0.0.1", chief.port_of(0)), timeout=5) as stranger:
                    stranger.sendall(b"GET / HTTP/1.1\r\n\r\n")
                break
            except ConnectionRefusedError:
                continue
        assert outcomes([worker], [{}]) == [""]
        assert said.result() == [""]
