"""Measures `prepare`, writing included: tokens of examples per second of one core.

    python tests/benchmarks/preparation.py corpus/one.txt corpus/two.txt

The reference's `create_pretraining_data.py`, run as published on two novels, makes 80,000 to 100,000 tokens a second of
one core at length 512, writing excluded. Here processor time is counted, which other work on the machine disturbs less
than wall time, from loading the vocabulary to writing the manifest.
"""

import argparse
import tempfile
import time
from pathlib import Path

from albert_tf.data import PrepareOptions, prepare

REFERENCE = 90_000


def measure(options: PrepareOptions) -> None:
    """Prepares once and prints a line."""
    wall, processor = time.perf_counter(), time.process_time()
    statistics = prepare(options).manifest.statistics
    wall, processor = time.perf_counter() - wall, time.process_time() - processor
    size = sum(path.stat().st_size for path in options.output_dir.glob("*.tfrecord"))
    speed = statistics.tokens / processor
    print(
        f"length {options.max_seq_length:4d}, {options.dupe_factor:2d} passes: {statistics.examples:7,d} examples of "
        f"{statistics.mean_length:5.1f} tokens, {size / 2**20:6.1f} MiB in {wall:5.2f} s ({processor:5.2f} s of "
        f"processor): {speed:10,.0f} tokens/s/core, {speed / REFERENCE:5.1f} x reference"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure the preparation of pretraining examples.")
    parser.add_argument("texts", nargs="+", help="text files, running text with paragraphs")
    parser.add_argument("--lengths", type=int, nargs="+", default=[512, 128])
    parser.add_argument("--passes", type=int, nargs="+", default=[40, 10, 1])
    parser.add_argument("--gap", type=int, default=2, help="empty lines that end a document")
    arguments = parser.parse_args()
    for length in arguments.lengths:
        for passes in arguments.passes:
            with tempfile.TemporaryDirectory() as folder:
                measure(
                    PrepareOptions(
                        inputs=tuple(arguments.texts),
                        output_dir=Path(folder) / "examples",
                        max_seq_length=length,
                        dupe_factor=passes,
                        split_sentences=True,
                        document_gap=arguments.gap,
                    )
                )


if __name__ == "__main__":
    main()
