"""Two hosts with addresses of their own on one machine: network namespaces joined by a cable. Needs root on Linux."""

import contextlib
import json
import os
import subprocess
from collections.abc import Iterator

ADDRESSES = ("10.213.0.1", "10.213.0.2")
PORT = 12345


class TwoHosts:
    """Two network namespaces; a process in one reaches the other by its address alone."""

    def __init__(self):
        self.names = tuple(f"albert-{os.getpid()}-{index}" for index in range(2))

    def start(self, command: list[str], index: int, **options) -> subprocess.Popen:
        """Starts worker `index` of a cluster of both on its host."""
        addresses = [f"{address}:{PORT}" for address in ADDRESSES]
        config = {"cluster": {"worker": addresses}, "task": {"type": "worker", "index": index}}
        environment = {**os.environ, **options.pop("env", {}), "TF_CONFIG": json.dumps(config)}
        return subprocess.Popen(["ip", "netns", "exec", self.names[index], *command], env=environment, **options)

    def cut_cable(self) -> None:
        """Neither host hears of the other any more."""
        _ip("-n", self.names[0], "link", "set", "cable", "down")


@contextlib.contextmanager
def two_hosts() -> Iterator[TwoHosts]:
    """Makes the hosts, and removes them at the end.

    Raises:
        OSError: namespaces cannot be made here.
    """
    hosts = TwoHosts()
    first, second = hosts.names
    try:
        for name in hosts.names:
            _ip("netns", "add", name)
            _ip("-n", name, "link", "set", "lo", "up")
        _ip("-n", first, "link", "add", "cable", "type", "veth", "peer", "name", "cable", "netns", second)
        for name, address in zip(hosts.names, ADDRESSES):
            _ip("-n", name, "address", "add", f"{address}/24", "dev", "cable")
            _ip("-n", name, "link", "set", "cable", "up")
        yield hosts
    finally:
        for name in hosts.names:
            subprocess.run(["ip", "netns", "del", name], check=False, capture_output=True)


def _ip(*arguments: str) -> None:
    try:
        done = subprocess.run(["ip", *arguments], capture_output=True, text=True, check=False)
    except FileNotFoundError as error:
        raise OSError(f"there is no ip command ({error})") from None
    if done.returncode:
        raise OSError(f"ip {' '.join(arguments)}: {done.stderr.strip()}")
