"""The machines of a run as the environment variable TF_CONFIG names them, checked before TensorFlow starts."""

import dataclasses
import json
import os
import socket
from collections.abc import Mapping
from typing import Any

VARIABLE = "TF_CONFIG"
_EXAMPLE = (
    '{"cluster": {"worker": ["host-a:12345", "host-b:12345"]}, "task": {"type": "worker", "index": 0}}, '
    "with an index of its own on each host"
)
_JOBS = ("chief", "worker")


@dataclasses.dataclass(frozen=True)
class Cluster:
    """All workers of a run, and which of them this process is.

    Args:
        addresses: `host:port` of each worker; the first is the chief, which alone writes.
        index: this worker's place among them.
    """

    addresses: tuple[str, ...]
    index: int

    @property
    def is_chief(self) -> bool:
        """Whether this worker is the one that writes."""
        return self.index == 0

    def port_of(self, index: int) -> int:
        """The port that a worker listens on."""
        return int(self.addresses[index].rpartition(":")[2])

    def host_of(self, index: int) -> str:
        """The name or number of a worker's machine."""
        return self.addresses[index].rpartition(":")[0].strip("[]")

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> "Cluster":
        """Reads TF_CONFIG.

        Raises:
            ValueError: it is not set, or says what cannot be.

        Example:

        >>> text = '{"cluster": {"worker": ["a:1", "b:1"]}, "task": {"type": "worker", "index": 1}}'
        >>> Cluster.from_environment({"TF_CONFIG": text})
        Cluster(addresses=('a:1', 'b:1'), index=1)
        """
        text = environment.get(VARIABLE, "")
        try:
            values = json.loads(text)
        except json.JSONDecodeError as error:
            raise _refused(f"must be JSON ({error})", text) from None
        cluster, task = (_part(values, key, text) for key in ("cluster", "task"))
        unknown = sorted(set(cluster) - set(_JOBS))
        if unknown:
            raise _refused(f"must name workers alone, and at most one chief among them, not {unknown}", text)
        jobs = {job: _addresses(cluster.get(job, []), text) for job in _JOBS}
        return cls((*jobs["chief"], *jobs["worker"]), _index(jobs, task, text))


def listening(cluster: Cluster) -> socket.socket:
    """A socket that listens on this worker's port.

    Raises:
        OSError: the port is taken.
    """
    port = cluster.port_of(cluster.index)
    family = {"family": socket.AF_INET6, "dualstack_ipv6": True} if socket.has_dualstack_ipv6() else {}
    try:
        return socket.create_server(("", port), backlog=len(cluster.addresses), **family)
    except OSError as error:
        raise OSError(
            f"The port of a worker must be free. Received: {cluster.addresses[cluster.index]} ({error.strerror}); "
            "wait until an earlier run has stopped, or give another port in every worker's TF_CONFIG."
        ) from None


def _part(values: Any, key: str, text: str) -> dict[str, Any]:
    part = values.get(key) if isinstance(values, dict) else None
    if not isinstance(part, dict):
        raise _refused(f'must have a "{key}"', text)
    return part


def _addresses(given: Any, text: str) -> tuple[str, ...]:
    if not isinstance(given, list) or not all(_is_address(address) for address in given):
        raise _refused('must list workers as "host:port"', text)
    return tuple(given)


def _is_address(value: Any) -> bool:
    if not isinstance(value, str):
        return False
    host, _, port = value.rpartition(":")
    return bool(host) and port.isdecimal() and 0 < int(port) < 65536


def _index(jobs: Mapping[str, tuple[str, ...]], task: Mapping[str, Any], text: str) -> int:
    addresses = [address for job in _JOBS for address in jobs[job]]
    if len(jobs["chief"]) > 1 or len(set(addresses)) < len(addresses):
        raise _refused("must name each worker once, and at most one chief", text)
    kind, index = str(task.get("type")), task.get("index")
    if kind not in jobs:
        raise _refused(f'must have a task of type "worker" or "chief", not {kind!r}', text)
    if type(index) is not int or not 0 <= index < len(jobs[kind]):
        raise _refused(f"must have a task whose index is one of the {len(jobs[kind])} of {kind}, not {index!r}", text)
    return index + (len(jobs["chief"]) if kind == "worker" else 0)


def _refused(what: str, text: str) -> ValueError:
    return ValueError(f"{VARIABLE} {what}. Received: {VARIABLE}={text!r}; set it like {_EXAMPLE}.")
