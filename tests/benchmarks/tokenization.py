"""Measures `AlbertTokenizer.encode_batch` beside plain SentencePiece on the same text, interleaved in one run.

    python tests/benchmarks/tokenization.py FILE... [--megabytes 5] [--rounds 7]

Plain SentencePiece reads the raw text with the model as published: no clean-up, no digit-comma rule, capitals unknown.
"Two steps" is what the reference does: clean-up in Python, then SentencePiece. Times are of the processor, so other
work on the machine does not count; the speed-up is of whole texts: the median over rounds of the other's time by ours.
"""

import argparse
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import sentencepiece

from albert_tf.tokenization import AlbertTokenizer, clean_text
from albert_tf.tokenization.folders import english_model_file


def read_lines(files: list[Path], megabytes: float) -> list[str]:
    """Returns the first lines of the files, so many megabytes in all."""
    lines, size = [], 0
    for file in files:
        for line in file.read_text(encoding="utf-8").splitlines():
            if line and size < megabytes * 1e6:
                lines.append(line)
                size += len(line.encode())
    return lines


def count_and_time(encode: Callable[[], list]) -> tuple[int, float]:
    """Returns how many tokens came out and how much processor time it took, in seconds."""
    start = time.process_time()
    rows = encode()
    return sum(map(len, rows)), time.process_time() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--megabytes", type=float, default=5)
    parser.add_argument("--rounds", type=int, default=7)
    arguments = parser.parse_args()
    lines = read_lines(arguments.files, arguments.megabytes)
    plain = sentencepiece.SentencePieceProcessor(model_file=str(english_model_file()))
    tokenizer = AlbertTokenizer.english()
    ways = {
        "plain, Python lists": lambda: plain.Encode(lines, return_type=int, num_threads=1),
        "plain, NumPy arrays": lambda: plain.Encode(lines, return_type="numpy", num_threads=1),
        "encode_batch": lambda: tokenizer.encode_batch(lines, num_threads=1),
        "two steps": lambda: plain.Encode([clean_text(line) for line in lines], return_type="numpy", num_threads=1),
    }
    seconds: dict[str, list[float]] = {way: [] for way in ways}
    tokens = {}
    for _ in range(arguments.rounds):
        for way, encode in ways.items():
            tokens[way], taken = count_and_time(encode)
            seconds[way].append(taken)
    print(f"{len(lines):,} lines, {sum(map(len, lines)) / 1e6:.1f} million characters, one thread")
    for way, of_way in seconds.items():
        rate = tokens[way] / statistics.median(of_way)
        speed_up = statistics.median(other / ours for ours, other in zip(seconds["encode_batch"], of_way, strict=True))
        print(f"{way:20s} {tokens[way]:10,} tokens {rate:12,.0f} tokens/s   speed-up of encode_batch {speed_up:.2f}")


if __name__ == "__main__":
    main()
