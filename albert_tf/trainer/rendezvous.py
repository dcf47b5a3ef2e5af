"""Workers meet before TensorFlow starts, so that one that is missing or trains something else is named at once.

Each sends the chief one line of JSON and gets one line back: nothing if all agree, else what is wrong.
"""

import json
import select
import socket
import time
from collections.abc import Mapping
from typing import Any

from albert_tf.trainer.cluster import Cluster, listening
from albert_tf.trainer.run_folder import differences

_RETRY_SECONDS = 0.2
_LINE_SECONDS = 10.0
_LONGEST_LINE = 1 << 20


def meet(cluster: Cluster, facts: Mapping[str, Any], timeout: float = 600.0) -> None:
    """Waits for all workers and compares what they are about to do.

    Args:
        cluster: Cluster.
        facts: values that JSON can hold and that must be the same at every worker.
        timeout: seconds to wait for the others.

    Raises:
        ValueError: the workers differ; all of them say in what.
        TimeoutError: a worker has not come in time.
        OSError: this worker's port is taken.
    """
    greeting = {"index": cluster.index, "addresses": list(cluster.addresses), "facts": json.loads(json.dumps(facts))}
    deadline = time.monotonic() + timeout
    with listening(cluster) as listener:
        if cluster.is_chief:
            _receive_all(cluster, greeting, listener, deadline)
    if not cluster.is_chief:
        _greet_chief(cluster, greeting, deadline)


def _receive_all(cluster: Cluster, own: dict, listener: socket.socket, deadline: float) -> None:
    waiting: dict[int, socket.socket] = {}
    problem = ""
    try:
        while len(waiting) < len(cluster.addresses) - 1:
            listener.settimeout(_seconds_left(deadline, cluster, waiting))
            try:
                connection, _ = listener.accept()
            except TimeoutError:
                continue
            greeting = _read_line(connection)
            waiting = {index: other for index, other in waiting.items() if not _is_closed(other)}
            problem = problem or ("" if greeting is None else _problem(own, greeting, waiting))
            if problem:
                _send_line(connection, {"problem": problem})
            if problem or greeting is None:
                connection.close()
            else:
                waiting[greeting["index"]] = connection
            if problem:
                break
        for connection in waiting.values():
            _send_line(connection, {"problem": problem})
    finally:
        for connection in waiting.values():
            connection.close()
    if problem:
        raise ValueError(problem)


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


def _greet_chief(cluster: Cluster, greeting: dict, deadline: float) -> None:
    address = (cluster.host_of(0), cluster.port_of(0))
    while time.monotonic() < deadline:
        try:
            with socket.create_connection(address, timeout=_LINE_SECONDS) as connection:
                _send_line(connection, greeting)
                connection.settimeout(max(deadline - time.monotonic(), _RETRY_SECONDS))
                answer = _read_line(connection, seconds=None)
        except OSError:
            answer = None
        if answer is None:
            time.sleep(_RETRY_SECONDS)
        elif answer.get("problem"):
            raise ValueError(answer["problem"])
        else:
            return
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
        with connection.makefile("rb") as file:
            value = json.loads(file.readline(_LONGEST_LINE))
    except (OSError, ValueError):
        return None
    return value if isinstance(value, dict) else None


def _is_closed(connection: socket.socket) -> bool:
    """Whether a worker that waits has gone: it sends nothing more, so what can be read is the end."""
    return bool(select.select([connection], [], [], 0)[0])
