"""How the data side grows: `prepare`, many shards, resuming, many hosts. Prints rows of a table.

    python -m tests.benchmarks.growth prepare training/sample_data/novels/*.txt --megabytes 20 200
    python -m tests.benchmarks.growth shards training/sample_data/novels/*.txt
    python -m tests.benchmarks.growth resume training/sample_data/novels/*.txt
    python -m tests.benchmarks.growth hosts training/sample_data/novels/*.txt

Texts of any size are made of the paragraphs given, drawn at random, twenty a document (two for `shards`), so that no
document repeats.
"""

import argparse
import random
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from albert_tf.data.manifest import Manifest
from tests.benchmarks.preparation_memory import COMMAND, family, held

PARAGRAPHS = 20
FILE_BYTES = 10**7
BATCH = 4096
HOSTS = 64


def make_corpus(texts: list[Path], megabytes: float, folder: Path, count: int = PARAGRAPHS) -> Path:
    """Writes documents of `count` random paragraphs, files of 10 MB."""
    paragraphs = [
        paragraph
        for text in texts
        for paragraph in text.read_text(encoding="utf-8").split("\n\n")
        if len(paragraph) > 40
    ]
    folder.mkdir()
    chance, left, number = random.Random(0), megabytes * 10**6, 0
    while left > 0:
        size, number = 0, number + 1
        with (folder / f"{number:06d}.txt").open("w", encoding="utf-8") as file:
            while size < min(FILE_BYTES, left):
                size += file.write("\n\n".join(chance.choices(paragraphs, k=count)) + "\n\n\n")
        left -= size
    return folder


def prepare(corpus: Path, output: Path, length: int, *options: object) -> tuple[float, float, int]:
    """Runs the command; returns seconds of wall and of processors, and the peak of all processes' memory in bytes."""
    fixed = ["--split-sentences", "--document-gap", 2, "--max-seq-length", length, "--quiet"]
    command = [sys.executable, "-c", COMMAND, "prepare", corpus, "--output", output, *fixed, *options]
    begun, before, peak = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN), 0
    with subprocess.Popen([str(part) for part in command], stdout=subprocess.DEVNULL) as process:
        while process.poll() is None:
            peak = max(peak, sum(map(held, family(process.pid))))
            time.sleep(0.2)
    if process.returncode:
        raise SystemExit(process.returncode)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    processor = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return time.perf_counter() - begun, processor, peak


def row(*cells: object) -> None:
    """Prints a row of a Markdown table."""
    print("| " + " | ".join(map(str, cells)) + " |", flush=True)


def size_of(folder: Path) -> int:
    """Bytes of the shards."""
    return sum(file.stat().st_size for file in folder.glob("*.tfrecord"))


def grow_prepare(texts: list[Path], megabytes: list[float], length: int, folder: Path, shards: int) -> None:
    """Time and memory for texts of each size, one pass."""
    row("text", "tokens", "shards", "processor, microseconds a token", "wall", "peak memory", "bytes written a token")
    for size in megabytes:
        corpus, output = make_corpus(texts, size, folder / f"corpus-{size:g}"), folder / f"examples-{size:g}"
        wall, processor, peak = prepare(
            corpus, output, length, "--dupe-factor", 1, "--num-shards", shards, "--num-processes", 2
        )
        manifest = Manifest.load(output)
        examples = manifest.statistics.tokens
        row(
            f"{size:,.0f} MB",
            f"{manifest.tokens:,}",
            len(manifest.shards),
            f"{1e6 * processor / manifest.tokens:.2f}",
            f"{wall:,.0f} s",
            f"{peak / 1e6:,.0f} MB",
            f"{size_of(output) / examples:.2f}",
        )


def open_and_read(make, count: int, **options) -> tuple[float, float]:
    """Seconds until the first batch, and batches a second after it."""
    begun = time.perf_counter()
    batches = iter(make(**options))
    next(batches)
    first = time.perf_counter() - begun
    for _ in range(count):
        next(batches)
    return first, count / (time.perf_counter() - begun - first)


def grow_shards(texts: list[Path], megabytes: float, length: int, folder: Path) -> None:
    """The same text in few shards and in 10,000."""
    from albert_tf.data import pretraining_dataset

    corpus = make_corpus(texts, megabytes, folder / "corpus", count=2)  # enough documents for all shards
    row("shards", "examples", "bytes a shard", "prepare", "first batch", "examples a second", "memory")
    for shards in (8, 1000, 10_000):
        output = folder / f"examples-{shards}"
        wall, _, _ = prepare(corpus, output, length, "--dupe-factor", 2, "--num-shards", shards, "--num-processes", 2)
        manifest, batch = Manifest.load(output), 256
        count = manifest.statistics.examples // batch - 1
        first, speed = open_and_read(lambda output=output: pretraining_dataset(output, 256), count)
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
        row(
            f"{len(manifest.shards):,}",
            f"{manifest.statistics.examples:,}",
            f"{size_of(output) / len(manifest.shards):,.0f}",
            f"{wall:.0f} s",
            f"{first:.2f} s",
            f"{speed * batch:,.0f}",
            f"{memory:,.0f} MB",
        )


def both_formats(texts: list[Path], megabytes: float, length: int, folder: Path):
    """Folders of examples and of documents of the same text, and the functions that read them."""
    from albert_tf.data import documents_dataset, pretraining_dataset

    corpus = make_corpus(texts, megabytes, folder / "corpus")
    for kind, read, options in (
        ("examples", pretraining_dataset, ("--dupe-factor", 10)),
        ("documents", documents_dataset, ("--format", "documents")),
    ):
        prepare(corpus, folder / kind, length, *options, "--num-processes", 2)
        manifest = Manifest.load(folder / kind)
        yield kind, manifest.statistics.examples, lambda read=read, kind=kind, **more: read(folder / kind, **more)


def grow_resume(texts: list[Path], megabytes: float, length: int, folder: Path) -> None:
    """Seconds until the first batch, from the start of an epoch to its end."""
    row("format", "examples skipped in the epoch", "first batch", "examples skipped a second")
    for kind, examples, read in both_formats(texts, megabytes, length, folder):
        start, _ = open_and_read(read, 1, batch_size=32)
        for share in (0, 0.5, 1):
            step = max(int(share * examples / 32) - 2, 0)
            first, _ = open_and_read(read, 1, batch_size=32, first_batch=step)
            speed = f"{32 * step / (first - start):,.0f}" if step and first - start > 0.5 else ""
            row(kind, f"{32 * step:,}", f"{first:.2f} s", speed)


def grow_hosts(texts: list[Path], megabytes: float, length: int, folder: Path) -> None:
    """How fast one of so many hosts comes by its rows of the batches, in examples of all hosts; the best of three."""
    from albert_tf.data.sharding import InputShard

    row("format", "hosts", "examples a second of all hosts", "tokens a second of all hosts")
    for kind, examples, read in both_formats(texts, megabytes, length, folder):
        for hosts in (1, 8, HOSTS):
            count, shard = max(examples // BATCH - 2, 2), InputShard(hosts - 1, hosts)
            speed = max(open_and_read(read, count, batch_size=BATCH, shard=shard)[1] for _ in range(3))
            row(kind, hosts, f"{speed * BATCH:,.0f}", f"{speed * BATCH * length:,.0f}")


def main() -> None:
    """Runs the command line."""
    parser = argparse.ArgumentParser(description="Measure how the data side grows.")
    parser.add_argument("what", choices=("prepare", "shards", "resume", "hosts"))
    parser.add_argument("texts", nargs="+", type=Path, help="text files, running text with paragraphs")
    parser.add_argument("--megabytes", type=float, nargs="+", default=[20])
    parser.add_argument("--length", type=int, default=128)
    parser.add_argument("--shards", type=int, default=0, help="for `prepare`; 0: those of its default")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder, sizes, length = Path(name), arguments.megabytes, arguments.length
        if arguments.what == "prepare":
            grow_prepare(arguments.texts, sizes, length, folder, arguments.shards)
        else:
            grow = {"shards": grow_shards, "resume": grow_resume, "hosts": grow_hosts}[arguments.what]
            grow(arguments.texts, sizes[0], length, folder)


if __name__ == "__main__":
    main()
