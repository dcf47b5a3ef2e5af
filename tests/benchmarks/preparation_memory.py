"""Peak memory of `prepare`, all of its processes together, while the corpus grows.

    python tests/benchmarks/preparation_memory.py corpus/*.txt --megabytes 200 400 2000

The texts are repeated up to each size. Memory is what the processes hold in proportion (PSS on Linux, where pages that
two share count once), pages of mapped caches included, looked at ten times a second.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from itertools import cycle
from pathlib import Path

COMMAND = "from albert_tf.cli.app import main; main()"


def family(process: int) -> list[int]:
    """A process and its descendants."""
    try:
        threads = Path(f"/proc/{process}/task").iterdir()
        children = " ".join((thread / "children").read_text() for thread in threads).split()
    except OSError:  # it ended meanwhile
        return []
    return [process, *(member for child in children for member in family(int(child)))]


def held(process: int) -> int:
    """Bytes that a process holds."""
    try:
        return 1024 * int(re.search(r"^Pss: +(\d+)", Path(f"/proc/{process}/smaps_rollup").read_text(), re.M)[1])
    except OSError:
        return 0


def measure(texts: list[Path], megabytes: int, options: list[str]) -> None:
    """Prepares once and prints a line."""
    with tempfile.TemporaryDirectory() as folder:
        corpus, size = Path(folder) / "corpus", 0
        corpus.mkdir()
        for number, text in enumerate(cycle(texts)):
            if size >= megabytes * 10**6:
                break
            os.symlink(text.resolve(), corpus / f"{number:06d}.txt")
            size += text.stat().st_size
        command = [sys.executable, "-c", COMMAND, "prepare", str(corpus), "--output", f"{folder}/examples", *options]
        begun, peak = time.perf_counter(), 0
        with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
            while process.poll() is None:
                peak = max(peak, sum(map(held, family(process.pid))))
                time.sleep(0.1)
        if process.returncode:
            raise SystemExit(process.returncode)
        written = sum(path.stat().st_size for path in Path(folder, "examples").iterdir())
    print(
        f"{size / 1e6:6.0f} MB of text: peak {peak / 1e6:5.0f} MB, {time.perf_counter() - begun:4.0f} s, "
        f"{written / 1e6:6.0f} MB written",
        flush=True,
    )


def main() -> None:
    """Prints one line for each size."""
    parser = argparse.ArgumentParser(description="Measure the memory of prepare.")
    parser.add_argument("texts", nargs="+", type=Path, help="text files, running text with paragraphs")
    parser.add_argument("--megabytes", type=int, nargs="+", default=[18, 200, 2000])
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--passes", type=int, default=2)
    arguments = parser.parse_args()
    options = ["--split-sentences", "--document-gap", "2", "--num-processes", str(arguments.processes)]
    for megabytes in arguments.megabytes:
        measure(arguments.texts, megabytes, [*options, "--dupe-factor", str(arguments.passes)])


if __name__ == "__main__":
    main()
