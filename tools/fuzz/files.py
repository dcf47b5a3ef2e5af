"""Damages files of every format in thousands of ways and reads them: `python -m tools.fuzz.files [COUNT]`, `make fuzz`.

A reader may succeed or raise a ValueError of one line. Anything else is a find: another exception, a crash, a hang, or
more memory than its target allows. A find is named by target and seed.
"""

import argparse
import collections
import pathlib
import resource
import signal
import subprocess
import sys
import tempfile

from tests.fuzz.targets import SECONDS, TARGETS, copy_of, damaged, read_damaged


def run_target(target: str, start: int, count: int) -> int:
    """In a process of its own: prints a line for each find, then the outcomes; a hang ends the process."""
    finds = collections.Counter()
    with tempfile.TemporaryDirectory() as place:
        folder = copy_of(target, pathlib.Path(place))
        TARGETS[target].read(folder)  # as it is; what this imports does not count
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        for seed in range(start, start + count):
            pathlib.Path(place, "seed").write_text(str(seed))
            print(seed, file=sys.stderr)
            signal.alarm(SECONDS)
            try:
                finds[read_damaged(target, damaged(target, seed), folder)] += 1
            except Exception as error:
                finds["finds"] += 1
                print(f"  FIND {target} seed {seed}: {type(error).__name__}: {str(error)[:200]!r}")
        signal.alarm(0)
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    outcomes = ", ".join(f"{count} {name}" for name, count in sorted(finds.items()))
    print(f"{target}: {outcomes}; the process grew by {grown:.0f} MiB", flush=True)
    return finds["finds"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("count", nargs="?", type=int, default=10_800, help="inputs over all targets")
    parser.add_argument("--target", choices=TARGETS, help="this one alone, in this process")
    parser.add_argument("--start", type=int, default=0, help="first seed")
    arguments = parser.parse_args()
    if arguments.target:
        return run_target(arguments.target, arguments.start, arguments.count)
    each, finds = -(-arguments.count // len(TARGETS)), 0
    for target in TARGETS:
        command = [sys.executable, "-m", "tools.fuzz.files", str(each), "--target", target]
        done = subprocess.run(
            [*command, "--start", str(arguments.start)], stderr=subprocess.PIPE, text=True, check=False
        )
        if "Traceback" in done.stderr:
            raise RuntimeError(done.stderr[-2000:])
        if done.returncode < 0:
            last = [line for line in done.stderr.splitlines() if line.isdigit()][-1:]
            print(f"  FIND {target} seed {last}: the process ended by signal {-done.returncode}", flush=True)
        finds += done.returncode != 0
    print(f"{each * len(TARGETS):,} inputs, {finds} targets with finds")
    return int(finds > 0)


if __name__ == "__main__":
    sys.exit(min(main(), 100))
