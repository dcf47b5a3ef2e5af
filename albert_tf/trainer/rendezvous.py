"""Workers meet before TensorFlow starts, so that one that is missing or trains something else is named at once.

Each sends the chief one line of JSON and gets one line back: nothing if all agree, else what is wrong. The connections
stay open while TensorFlow starts, because it waits without end for a worker that dies then.
"""

import contextlib
import json
import os
import select
import socket
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping
from typing import Any

from albert_tf.trainer import start_watch
from albert_tf.trainer.cluster import Cluster, listening
from albert_tf.trainer.run_folder import differences

_RETRY_SECONDS = 0.2
_LINE_SECONDS = 10.0
_LONGEST_LINE = 1 << 20


class Company:
    """Workers that have met. While it is entered, this process is ended with a sentence when one of them has gone.

    It has to be kept as long as the process lives: connections end with it.

    Args:
        cluster: Cluster.
        others: connections by the index of who is at the other end: the workers for the chief, the chief for them.
    """

    def __init__(self, cluster: Cluster, others: Mapping[int, socket.socket]):
        self.cluster, self.others = cluster, others

    def __enter__(self) -> "Company":
        addresses = self.cluster.addresses
        names = [(one.fileno(), f"worker {index} ({addresses[index]})") for index, one in self.others.items()]
        command = [sys.executable, "-I", start_watch.__file__, str(os.getpid()), json.dumps(names)]
        self._watch = subprocess.Popen(command, stdin=subprocess.PIPE, pass_fds=[number for number, _ in names])
        return self

    def __exit__(self, *_) -> None:
        self._watch.communicate()


def meet(cluster: Cluster, facts: Mapping[str, Any], timeout: float = 600.0) -> Company:
    """Waits for all workers and compares what they are about to do.

    Args:
        cluster: Cluster.
        facts: values that JSON can hold and that must be the same at every worker.
        timeout: seconds to wait for the others.

    Returns:
        Company.

    Raises:
        ValueError: the workers differ; all of them say in what.
        TimeoutError: a worker has not come in time.
        OSError: this worker's port is taken.
    """
    greeting = {"index": cluster.index, "addresses": list(cluster.addresses), "facts": json.loads(json.dumps(facts))}
    deadline = time.monotonic() + timeout
    with listening(cluster) as listener:
        if cluster.is_chief:
            return Company(cluster, _receive_all(cluster, greeting, listener, deadline))
    return Company(cluster, {0: _greet_chief(cluster, greeting, deadline)})


def _receive_all(cluster: Cluster, own: dict, listener: socket.socket, deadline: float) -> dict[int, socket.socket]:
    waiting: dict[int, socket.socket] = {}
    try:
        while len(waiting) < len(cluster.addresses) - 1:
            listener.settimeout(_seconds_left(deadline, cluster, waiting))
            with contextlib.suppress(TimeoutError):
                _receive(own, listener.accept()[0], waiting)
    except BaseException as error:
        if isinstance(error, (ValueError, TimeoutError)):
            _tell(waiting.values(), str(error))
        for connection in waiting.values():
            connection.close()
        raise
    _tell(waiting.values(), "")
    return waiting


def _receive(own: dict, connection: socket.socket, waiting: dict[int, socket.socket]) -> None:
    """Lets one worker in, or who else comes to the port out again."""
    greeting = _read_line(connection)
    for index in _gone(waiting):
        waiting.pop(index).close()
    if greeting is None:
        connection.close()
        return
    problem = _problem(own, greeting, waiting)
    if not problem:
        waiting[greeting["index"]] = connection
        return
    _tell([connection], problem)
    connection.close()
    raise ValueError(problem)


def _tell(connections: Iterable[socket.socket], problem: str) -> None:
    for connection in connections:
        with contextlib.suppress(OSError):  # who has gone hears nothing
            _send_line(connection, {"problem": problem})


def _problem(own: dict, other: dict, here: Mapping[int, Any]) -> str:
    """What keeps the chief and another worker from training together; empty where nothing does."""
    index = other.get("index")
    if other.get("addresses") != own["addresses"]:
        return (
            f"Every worker must have the same cluster in TF_CONFIG. Received: {own['addresses']} at the chief, "
            f"{other.get('addresses')} at worker {index}; give all the same list in the same order."
        )
    if index == 0 or index in here:
        return (
            f"Every worker must have an index of its own in TF_CONFIG. Received: index {index} twice; number them anew."
        )
    found = differences(own["facts"], other.get("facts"))
    if found:
        return (
            f"Every worker must train the same run. Received: worker {index}, which differs from the chief in "
            f"{'; '.join(found[:5])}; start all with the same recipe, vocabulary, examples and output folder."
        )
    return ""


def _seconds_left(deadline: float, cluster: Cluster, here: Mapping[int, Any]) -> float:
    seconds = deadline - time.monotonic()
    if seconds <= 0:
        missing = [
            f"worker {index} ({address})"
            for index, address in enumerate(cluster.addresses)
            if index and index not in here
        ]
        raise TimeoutError(
            f"Every worker must start in time. Received: nothing from {', '.join(missing)}; start it with the same "
            "command, or correct its TF_CONFIG."
        )
    return min(seconds, 1.0)


def _greet_chief(cluster: Cluster, greeting: dict, deadline: float) -> socket.socket:
    address = (cluster.host_of(0), cluster.port_of(0))
    while time.monotonic() < deadline:
        connection, answer = None, None
        with contextlib.suppress(OSError):
            connection = socket.create_connection(address, timeout=_LINE_SECONDS)
            _send_line(connection, greeting)
            # The chief, whose time ends no later, says who else is missing.
            connection.settimeout(max(deadline - time.monotonic(), 0) + _LINE_SECONDS)
            answer = _read_line(connection, seconds=None)
        if connection is not None and answer is not None and not answer.get("problem"):
            return connection
        if connection is not None:
            connection.close()
        if answer is not None:
            raise ValueError(answer["problem"])
        time.sleep(_RETRY_SECONDS)
    raise TimeoutError(
        f"The chief must start in time. Received: nothing from {cluster.addresses[0]}; start it with the same command, "
        "or correct TF_CONFIG."
    )


def _send_line(connection: socket.socket, value: dict) -> None:
    connection.sendall(json.dumps(value).encode() + b"\n")


def _read_line(connection: socket.socket, seconds: float | None = _LINE_SECONDS) -> dict | None:
    """One line of JSON; None where something else comes, or nothing."""
    if seconds is not None:
        connection.settimeout(seconds)
    try:
        with connection.makefile("rb", buffering=0) as file:
            value = json.loads(file.readline(_LONGEST_LINE))
    except (OSError, ValueError):
        return None
    return value if isinstance(value, dict) else None


def _gone(others: Mapping[int, socket.socket]) -> list[int]:
    """Who of those that have said all has gone."""
    readable = select.select(list(others.values()), [], [], 0)[0]
    return [index for index, connection in others.items() if connection in readable]
