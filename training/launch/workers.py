"""Starts all workers of a run, on this machine or by ssh on others, and passes on what they print.

    python training/launch/workers.py 2 albert-tf pretrain my_recipe.toml --output runs/mine
    python training/launch/workers.py host-a,host-b albert-tf pretrain my_recipe.toml --output runs/mine
    python training/launch/workers.py --restarts 10 host-a,host-b albert-tf pretrain my_recipe.toml --output runs/mine

The recipe says `strategy = "multi_worker"`. The first line tries out on one machine what many will do: so many
processes. The second starts one on each host, in a folder of the same name as this one, which all see (a shared disk),
and where the command is found; hosts reach each other at port 12345, or at another: `host-a:5000,host-b:5000`.

Each line that a worker prints begins with its index. Ctrl-C and SIGTERM go to all workers, which save and stop. When
one worker fails, the others are stopped: by SIGTERM, and ten seconds later by SIGKILL. With `--restarts N` all are then
started again, at most N times, and go on from the newest checkpoint; not after Ctrl-C or SIGTERM, and not where the
worker ended with status 2, as `albert-tf` does after a mistake that would only repeat itself. Ends with 0, or with the
exit status of the worker that failed first, such as 143 after SIGTERM.
"""

import argparse
import contextlib
import json
import os
import shlex
import signal
import socket
import subprocess
import sys
import threading
import time

GRACE_SECONDS = 10  # from SIGTERM to SIGKILL; without the one that failed, the others can only end
AT_ONCE_SECONDS, LONGEST_PAUSE_SECONDS = 10, 60  # pauses double while workers fail as soon as they start
MISTAKE, LOST_ANOTHER = 2, 75  # exit statuses of `albert-tf`
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
        for line in lines:
            print(f"{self.index}: {line}", end="", flush=True)

    def stop(self, number: int) -> None:
        """Passes a signal on to the worker, which saves and stops."""
        if self.host is None:
            self.process.send_signal(number)
        elif self.remote_id.isdecimal():
            subprocess.Popen(self.ssh(f"kill -{number} {self.remote_id}"), stdin=subprocess.DEVNULL)

    def kill(self) -> None:
        """Ends the worker; one whose host does not answer any more is left to itself."""
        if self.host is not None and self.remote_id.isdecimal():
            with contextlib.suppress(subprocess.TimeoutExpired):
                command = self.ssh(f"kill -{signal.SIGKILL:d} {self.remote_id}")
                subprocess.run(command, stdin=subprocess.DEVNULL, timeout=10, check=False)
        self.process.kill()

    def describe_end(self) -> str:
        """Which worker ended, and how."""
        status = self.process.returncode
        end = f"was killed by {signal.Signals(-status).name}" if status < 0 else f"ended with status {status}"
        return f"worker {self.index}{'' if self.host is None else f' ({self.host})'} {end}"


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


def wait(workers: list[Worker]) -> Worker | None:
    """Waits for all workers; returns the one that failed first, after which the others are stopped."""
    failed, kill_at = None, float("inf")
    while running := [worker for worker in workers if worker.process.poll() is None]:
        if failed is None and (failed := first_failure(workers)):
            kill_at = time.monotonic() + GRACE_SECONDS
            for worker in running:
                worker.stop(signal.SIGTERM)
        if time.monotonic() > kill_at:
            for worker in running:
                worker.kill()
        time.sleep(0.1)
    for worker in workers:
        worker.printer.join()
    return failed or first_failure(workers)


def first_failure(workers: list[Worker]) -> Worker | None:
    """One that failed; of several the one that the others lost, where that can be told by their exit status."""
    failed = [worker for worker in workers if worker.process.returncode]
    return min(failed, key=lambda worker: worker.process.returncode == LOST_ANOTHER, default=None)


class Launcher:
    """Runs a command as workers, again and again where it may.

    Args:
        where: str. A number of workers, or hosts.
        command: list of str.
        restarts: int. How often all are started again at most.
    """

    def __init__(self, where: str, command: list[str], restarts: int):
        self.where, self.command, self.restarts = where, command, restarts
        self.workers: list[Worker] = []
        self.signals: list[int] = []

    def stop(self, number: int, _: object = None) -> None:
        """Passes a signal on to all workers, which are not started again."""
        self.signals.append(number)
        for worker in self.workers:
            worker.stop(number)

    def run(self) -> int:
        """Runs the workers to the end; returns the exit status."""
        in_a_row = 0  # failures as soon as they had started
        for restart in range(self.restarts + 1):
            started = time.monotonic()
            failed = self.run_once()
            if failed is None:
                return 0
            if self.signals or restart == self.restarts or failed.process.returncode == MISTAKE:
                break
            pause = min(2**in_a_row - 1, LONGEST_PAUSE_SECONDS)
            in_a_row = in_a_row + 1 if time.monotonic() - started < AT_ONCE_SECONDS else 0
            again = f"all start again in {pause} s, restart {restart + 1} of {self.restarts}"
            print(f"{failed.describe_end()}; {again}", file=sys.stderr, flush=True)
            self.sleep(pause)
            if self.signals:
                return 128 + self.signals[0]
        status = failed.process.returncode
        return status if status >= 0 else 128 - status

    def run_once(self) -> Worker | None:
        """Starts all workers and waits for them; returns the one that failed first."""
        self.workers = []
        self.workers = start(self.where, self.command)
        for number in tuple(self.signals):  # while they were being started
            for worker in self.workers:
                worker.stop(number)
        return wait(self.workers)

    def sleep(self, seconds: float) -> None:
        """Waits, or until there is a signal."""
        end = time.monotonic() + seconds
        while time.monotonic() < end and not self.signals:
            time.sleep(0.1)


def parse_arguments() -> argparse.Namespace:
    """Reads the command line."""
    parser = argparse.ArgumentParser(usage="%(prog)s [--restarts N] NUMBER_OF_WORKERS|HOST,HOST,... COMMAND...")
    parser.add_argument("--restarts", type=int, default=0, help="how often all workers are started again at most")
    parser.add_argument("where", help="number of workers on this machine, or hosts")
    parser.add_argument("command", nargs=argparse.REMAINDER, help="what each worker runs")
    arguments = parser.parse_args()
    if arguments.where == "0" or not arguments.command or arguments.command[0].startswith("-"):
        parser.error("a number of workers or hosts must be followed by a command; options come first.")
    if arguments.restarts < 0:
        parser.error(f"--restarts must not be negative. Received: {arguments.restarts}.")
    return arguments


def main() -> None:
    """Runs the command line."""
    launcher = Launcher(**vars(parse_arguments()))
    signal.signal(signal.SIGTERM, launcher.stop)
    signal.signal(signal.SIGINT, launcher.stop)
    sys.exit(launcher.run())


if __name__ == "__main__":
    main()
