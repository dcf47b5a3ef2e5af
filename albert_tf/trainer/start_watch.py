"""Run as a script by a worker that starts TensorFlow, which holds Python's lock while it waits for the others.

Ends that worker with a sentence when one of the others has gone; ends itself when its input does.

    python start_watch.py PROCESS JSON

JSON is a list of pairs: the number of an open socket, and who is at its other end.
"""

import json
import os
import select
import signal
import sys


def main() -> None:
    """Watches."""
    process, names = int(sys.argv[1]), dict(json.loads(sys.argv[2]))
    # Nothing more is said on a connection, so what can be heard is its end.
    readable = select.select([sys.stdin.fileno(), *names], [], [])[0]
    if sys.stdin.fileno() in readable:
        return
    print(
        f"albert-tf: Every worker must stay alive and within reach. Received: {names[readable[0]]} gone at the start; "
        "look at its last lines, then start all workers again with the same command.",
        file=sys.stderr,
        flush=True,
    )
    os.kill(process, signal.SIGKILL)


if __name__ == "__main__":
    main()
