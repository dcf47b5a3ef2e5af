"""Measures how many examples a core makes or reads for training, and so how many cores one accelerator needs.

    python -m tests.benchmarks.input_pipeline corpus/*.txt

Counted is processor time of all threads, which other work on the machine disturbs less than wall time. "on the fly" is
`documents_dataset`, "from disk" is `pretraining_dataset`, "written" is `prepare` with ten passes, writing included.
"""

import argparse
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from albert_tf.data import PrepareOptions, documents_dataset, prepare, pretraining_dataset
from albert_tf.tokenization import AlbertTokenizer

_PASSES = 10


def examples_per_second(batches: Iterator, batch_size: int, examples: int) -> float:
    """Examples for each second of processor time, after a warm-up."""
    for _ in range(8):
        next(batches)
    begun = time.process_time()
    for _ in range(examples // batch_size):
        next(batches)
    return examples / (time.process_time() - begun)


def measure(texts: list[str], folder: Path, length: int, batch_size: int, examples: int, gap: int) -> None:
    """Prepares once and prints a line for each way."""
    options = {
        "inputs": tuple(texts),
        "max_seq_length": length,
        "split_sentences": True,
        "document_gap": gap,
        "dupe_factor": _PASSES,
    }
    begun = time.process_time()
    report = prepare(PrepareOptions(output_dir=folder / f"examples-{length}", **options))
    rates = {"written": report.manifest.statistics.examples / (time.process_time() - begun)}
    prepare(PrepareOptions(output_dir=folder / f"documents-{length}", format="documents", **options))
    for name, dataset in (
        ("from disk", pretraining_dataset(folder / f"examples-{length}", batch_size)),
        ("on the fly", documents_dataset(folder / f"documents-{length}", AlbertTokenizer.english(), batch_size)),
    ):
        rates[name] = examples_per_second(iter(dataset), batch_size, examples)
    for name, rate in rates.items():
        step = 1000 * batch_size / rate
        print(
            f"length {length:4d}, batch {batch_size:4d}, {name:10}: {rate:8,.0f} examples/s/core, "
            f"{step:7.2f} ms of a core for a batch, {rate / rates['written']:5.2f} x written"
        )
    begun = time.process_time()
    documents_dataset(
        folder / f"documents-{length}", AlbertTokenizer.english(), batch_size, first_batch=10**6 // batch_size
    )
    print(f"length {length:4d}: {time.process_time() - begun:.1f} s to go on after a million examples")


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure the input of pretraining.")
    parser.add_argument("texts", nargs="+", help="text files, running text with paragraphs")
    parser.add_argument("--lengths", type=int, nargs="+", default=[128, 512])
    parser.add_argument("--batch-size", type=int, default=256)
    parser.add_argument("--examples", type=int, default=20_000)
    parser.add_argument("--gap", type=int, default=2, help="empty lines that end a document")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for length in arguments.lengths:
            measure(arguments.texts, Path(folder), length, arguments.batch_size, arguments.examples, arguments.gap)


if __name__ == "__main__":
    main()
