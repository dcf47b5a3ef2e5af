"""Starts several workers of one run on this machine, each a process of its own, to try out what many machines will do.

    python training/launch/local_workers.py 2 albert-tf pretrain my_recipe.toml --output runs/mine

The recipe says `strategy = "multi_worker"`. Every line that a worker prints begins with its index. SIGTERM and Ctrl-C
go on to all workers. Ends with 0 if all workers do; when one fails, the others have a minute to stop by themselves.
"""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time

PATIENCE_SECONDS = 60


def free_addresses(count: int) -> list[str]:
    """As many addresses of this machine that nobody listens on."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    addresses = [f"127.0.0.1:{one.getsockname()[1]}" for one in sockets]
    for one in sockets:
        one.close()
    return addresses


def start(command: list[str], addresses: list[str], index: int) -> subprocess.Popen:
    """Starts one worker, and a thread that passes on what it prints."""
    config = {"cluster": {"worker": addresses}, "task": {"type": "worker", "index": index}}
    process = subprocess.Popen(
        command,
        env={**os.environ, "TF_CONFIG": json.dumps(config)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )
    threading.Thread(target=pass_on, args=(process, index), daemon=True).start()
    return process


def pass_on(process: subprocess.Popen, index: int) -> None:
    """Prints what a worker prints."""
    for line in process.stdout or ():
        print(f"{index}: {line}", end="", flush=True)


def wait(processes: list[subprocess.Popen]) -> int:
    """Waits for all workers; returns the first exit status that is not 0."""
    failed_at = None
    while any(process.poll() is None for process in processes):
        if failed_at is None and any(process.poll() for process in processes):
            failed_at = time.monotonic()
        if failed_at is not None and time.monotonic() - failed_at > PATIENCE_SECONDS:
            for process in processes:
                process.kill()
        time.sleep(0.1)
    return next((process.returncode for process in processes if process.returncode), 0)


def main() -> None:
    """Runs the command line."""
    if len(sys.argv) < 3 or not sys.argv[1].isdecimal() or int(sys.argv[1]) < 1:
        sys.exit(f"usage: {sys.argv[0]} NUMBER_OF_WORKERS COMMAND...")
    count, command = int(sys.argv[1]), sys.argv[2:]
    addresses = free_addresses(count)
    processes = [start(command, addresses, index) for index in range(count)]

    def forward(number, _):
        for process in processes:
            process.send_signal(number)

    signal.signal(signal.SIGTERM, forward)
    signal.signal(signal.SIGINT, forward)
    status = wait(processes)
    sys.exit(status if status >= 0 else 128 - status)


if __name__ == "__main__":
    main()
