"""Starts all workers of a run, on this machine or by ssh on others, and passes on what they print.

    python training/launch/workers.py 2 albert-tf pretrain my_recipe.toml --output runs/mine
    python training/launch/workers.py host-a,host-b albert-tf pretrain my_recipe.toml --output runs/mine

The recipe says `strategy = "multi_worker"`. The first line tries out on one machine what many will do: so many
processes. The second starts one on each host, in a folder of the same name as this one, which all see (a shared disk),
and where the command is found; hosts reach each other at port 12345, or at another: `host-a:5000,host-b:5000`.

Each line that a worker prints begins with its index. Ctrl-C and SIGTERM go to all workers, which save and stop. Ends
with the first exit status that is not 0, such as 143 after SIGTERM, or else with 0; when one worker fails, the others
have a minute to stop by themselves.
"""

import json
import os
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import textwrap
import threading
import time

PATIENCE_SECONDS = 60
PORT = 12345


class Worker:
    """A process of this machine, or of another with an ssh process here.

    Args:
        index: int. Which worker it is.
        addresses: list of `host:port`.
        command: list of str.
        host: str or None. Where to start it by ssh.
    """

    def __init__(self, index: int, addresses: list[str], command: list[str], host: str | None):
        config = json.dumps({"cluster": {"worker": addresses}, "task": {"type": "worker", "index": index}})
        self.index, self.host, self.remote_id = index, host, ""
        environment = {**os.environ, "TF_CONFIG": config}
        if sys.stdout.isatty():  # tables beside the index
            environment["COLUMNS"] = str(shutil.get_terminal_size().columns - len(f"{index}: "))
        if host is not None:
            remote = (
                f"cd {shlex.quote(os.getcwd())} && export TF_CONFIG={shlex.quote(config)} && exec {shlex.join(command)}"
            )
            command, environment = self.ssh(f"echo $$ && {remote}"), dict(os.environ)
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True, "errors": "replace"}
        # A session of its own: Ctrl-C reaches it through this script alone, once.
        self.process = subprocess.Popen(
            command, env=environment, stdin=subprocess.DEVNULL, start_new_session=True, **pipes
        )
        self.printer = threading.Thread(target=self.pass_on, daemon=True)
        self.printer.start()

    def ssh(self, command: str) -> list[str]:
        """The command line that runs a command on the worker's host."""
        return ["ssh", "-o", "BatchMode=yes", str(self.host), command]

    def pass_on(self) -> None:
        """Prints what the worker prints; the first line from another host is the worker's process id."""
        lines = iter(self.process.stdout or ())
        if self.host is not None:
            self.remote_id = next(lines, "").strip()
        prefix, is_terminal = f"{self.index}: ", sys.stdout.isatty()  # which would break lines inside words
        words = {"break_long_words": False, "break_on_hyphens": False, "subsequent_indent": " " * len(prefix)}
        for line in lines:
            if is_terminal:
                line = textwrap.fill(line, shutil.get_terminal_size().columns - len(prefix), **words) + "\n"
            print(f"{prefix}{line}", end="", flush=True)

    def stop(self, number: int) -> None:
        """Passes a signal on to the worker, which saves and stops."""
        if self.host is None:
            self.process.send_signal(number)
        elif self.remote_id.isdecimal():
            subprocess.Popen(self.ssh(f"kill -{number} {self.remote_id}"), stdin=subprocess.DEVNULL)


def free_ports(count: int) -> list[int]:
    """As many ports of this machine that nobody listens on."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


def start(where: str, command: list[str]) -> list[Worker]:
    """Starts so many workers here, or one on each of the hosts."""
    if where.isdecimal():
        addresses = [f"127.0.0.1:{port}" for port in free_ports(int(where))]
        return [Worker(index, addresses, command, None) for index in range(len(addresses))]
    hosts = [host if ":" in host else f"{host}:{PORT}" for host in where.split(",")]
    addresses = [host.rpartition("@")[2] for host in hosts]
    return [Worker(index, addresses, command, host.rpartition(":")[0]) for index, host in enumerate(hosts)]


def wait(workers: list[Worker]) -> int:
    """Waits for all workers; returns the first exit status that is not 0."""
    failed_at = None
    while any(worker.process.poll() is None for worker in workers):
        if failed_at is None and any(worker.process.poll() for worker in workers):
            failed_at = time.monotonic()
        if failed_at is not None and time.monotonic() - failed_at > PATIENCE_SECONDS:
            for worker in workers:
                worker.process.kill()
        time.sleep(0.1)
    for worker in workers:
        worker.printer.join()
    return next((worker.process.returncode for worker in workers if worker.process.returncode), 0)


def main() -> None:
    """Runs the command line."""
    if len(sys.argv) < 3 or sys.argv[1] == "0":
        sys.exit(f"usage: {sys.argv[0]} NUMBER_OF_WORKERS|HOST,HOST,... COMMAND...")
    workers, told = [], []

    def stop_all(number, _):
        told.append(number)
        for worker in workers:
            worker.stop(number)

    signal.signal(signal.SIGTERM, stop_all)
    signal.signal(signal.SIGINT, stop_all)
    workers += start(sys.argv[1], sys.argv[2:])
    for number in tuple(told):  # while they were being started
        stop_all(number, None)
    status = wait(workers)
    sys.exit(status if status >= 0 else 128 - status)


if __name__ == "__main__":
    main()
