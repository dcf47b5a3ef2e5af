"""Measures our tokenizers, in Python and in the graph, beside plain sentencepiece and transformers' fast tokenizers.

    python -m tests.benchmarks.tokenization ENGLISH_FOLDER KOREAN_FOLDER --vocabularies FOLDER [--megabytes 10]

Needs transformers. The texts are lines of the folders' *.txt files, drawn at random. English SentencePiece is the
published model; the other vocabularies are trained with ours on all of the text and kept in the folder given. All ways
run in one process, by turns; every one starts anew in each round, so that no cache outlives it.

Plain sentencepiece reads the raw text with the same model: no clean-up, no digit-comma rule, capitals unknown. The
"padded" ways make arrays of ids, mask and token types, 512 ids at most; the others make ids only. A ratio is a way's
time divided by ours for the same text, the median over rounds: above 1, ours is faster.
"""

import argparse
import gc
import os
import random
import statistics
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import keras
import numpy as np
import sentencepiece
import tensorflow as tf
import transformers

from albert_tf.tokenization import AlbertTokenizer, train_sentencepiece, train_wordpiece
from albert_tf.tokenization.batching import BatchLayout, TokenRows, build_inputs
from albert_tf.tokenization.interface import SpecialPieceIds
from albert_tf.tokenization.loading import load_piece_model

_MAX_LENGTH, _BATCH = 512, 1024
_IDS, _PADDED = ("ours, Python", "ours, graph"), ("ours, Python, padded", "ours, graph, padded")
_CHECKED_LINES = 2000


@dataclass(frozen=True)
class Corpus:
    """A language's files and the lines drawn from them."""

    language: str
    files: list[Path]
    lines: list[str]

    @classmethod
    def draw(cls, language: str, folder: Path, megabytes: float) -> "Corpus":
        """Draws so many megabytes of lines; where the files hold less, lines come again."""
        files = sorted(folder.rglob("*.txt"))
        own = [line for file in files for line in file.read_text(encoding="utf-8").splitlines() if line.strip()]
        size = sum(len(line.encode()) for line in own)
        wanted = int(megabytes * 1e6)
        if size < wanted:
            print(f"{language}: {size / 1e6:.1f} MB of text, repeated to make {megabytes:g} MB")
        lines = random.Random(0).sample(own, len(own)) * (1 + wanted // size)
        ends = np.cumsum([len(line.encode()) for line in lines])
        return cls(language, files, lines[: int(np.searchsorted(ends, wanted)) + 1])

    def vocabulary(self, kind: str, folder: Path) -> Path:
        """Returns the folder of a vocabulary, made if it is not there."""
        place = folder / f"{self.language}_{kind}"
        if not place.exists():
            if (self.language, kind) == ("english", "sentencepiece"):
                AlbertTokenizer.english().save_pretrained(place)
            else:
                train = train_sentencepiece if kind == "sentencepiece" else train_wordpiece
                train(self.files, place, keep_accents=self.language == "korean")
        return place


@dataclass(frozen=True)
class Way:
    """A way to tokenize: `start` makes a function that encodes all lines and returns how many ids came out."""

    name: str
    start: Callable[[], Callable[[], int]]


def plain_ways(model_file: Path, lines: list[str], threads: int) -> list[Way]:
    """Plain sentencepiece, with either of its return types."""

    def start(return_type: object) -> Callable[[], int]:
        plain = sentencepiece.SentencePieceProcessor(model_file=str(model_file))
        return lambda: count(plain.Encode(lines, return_type=return_type, num_threads=threads))

    return [Way("sentencepiece, lists", lambda: start(int)), Way("sentencepiece, NumPy", lambda: start("numpy"))]


def peer_ways(folder: Path, lines: list[str]) -> list[Way]:
    """transformers' fast tokenizer, the tokenizers library's fastest call inside it, and padded batches."""

    def start_bare() -> Callable[[], int]:
        inner = load_peer(folder).backend_tokenizer
        return lambda: sum(len(row.ids) for row in inner.encode_batch_fast(lines, add_special_tokens=False))

    def start_call() -> Callable[[], int]:
        peer = load_peer(folder)
        only_ids = {"add_special_tokens": False, "return_attention_mask": False, "return_token_type_ids": False}
        return lambda: count(peer(lines, **only_ids)["input_ids"])

    def start_padded() -> Callable[[], int]:
        peer = load_peer(folder)
        options = {"padding": True, "truncation": True, "max_length": _MAX_LENGTH, "return_tensors": "np"}
        return lambda: count_padded(peer(batch, return_token_type_ids=True, **options) for batch in in_batches(lines))

    return [
        Way("tokenizers", start_bare),
        Way("transformers", start_call),
        Way("transformers, padded", start_padded),
    ]


def our_ways(folder: Path, lines: list[str], threads: int) -> list[Way]:
    """Ours, in Python and in a tf.data map."""
    batches = [tf.constant(batch) for batch in in_batches(lines)]
    ragged = tf.RaggedTensor.from_row_lengths(tf.concat(batches, 0), [len(batch) for batch in batches])

    def start_ids() -> Callable[[], int]:
        tokenizer = AlbertTokenizer.from_pretrained(folder)
        return lambda: count(tokenizer.encode_batch(lines, num_threads=threads))

    def start_padded() -> Callable[[], int]:
        tokenizer = AlbertTokenizer.from_pretrained(folder)
        names = ("pad", "unk", "cls", "sep", "mask")
        special = SpecialPieceIds(*(getattr(tokenizer, f"{name}_token_id") for name in names))
        layout = BatchLayout(_MAX_LENGTH)

        def pad(batch: list[str]) -> dict[str, np.ndarray]:
            # What a call of the tokenizer does, which always takes all cores.
            rows = tokenizer.encode_batch(batch, num_threads=threads)
            return build_inputs(TokenRows(rows), None, special, layout)

        return lambda: count_padded(map(pad, in_batches(lines)))

    def start_dataset(function: Callable, count_all: Callable[[Iterable], int]) -> Callable[[], int]:
        options = tf.data.Options()
        options.threading.private_threadpool_size = threads
        options.threading.max_intra_op_parallelism = 1
        data = tf.data.Dataset.from_tensor_slices(ragged).map(function, num_parallel_calls=threads)
        return lambda: count_all(data.with_options(options))

    def start_graph_ids() -> Callable[[], int]:
        pieces = load_piece_model(next(file for file in folder.iterdir() if file.suffix in (".model", ".txt")))
        tokenize = pieces.in_graph().tokenize
        return start_dataset(lambda texts: tokenize(texts).values, count)

    def start_layer() -> Callable[[], int]:
        return start_dataset(AlbertTokenizer.from_pretrained(folder).as_layer(max_length=_MAX_LENGTH), count_padded)

    starts = (start_ids, start_graph_ids, start_padded, start_layer)
    return [Way(name, start) for name, start in zip((*_IDS, *_PADDED), starts, strict=True)]


def load_peer(folder: Path) -> transformers.PreTrainedTokenizerBase:
    """Loads what we saved as transformers does; without a `model_max_length` it does not warn of long lines."""
    kind = transformers.BertTokenizerFast if (folder / "vocab.txt").exists() else transformers.AlbertTokenizer
    return kind.from_pretrained(folder, model_max_length=1 << 30)


def in_batches(lines: list[str]) -> Iterable[list[str]]:
    """Cuts the lines into batches."""
    return (lines[first : first + _BATCH] for first in range(0, len(lines), _BATCH))


def count(rows: Iterable) -> int:
    """Counts the ids of rows."""
    return sum(map(len, rows))


def count_padded(batches: Iterable) -> int:
    """Counts the ids of padded batches, without [CLS] and [SEP]."""
    return sum(int(np.sum(batch["attention_mask"])) - 2 * len(batch["attention_mask"]) for batch in batches)


@dataclass(frozen=True)
class Times:
    """What a way took: ids, seconds by the clock and of the processor, round by round."""

    tokens: int
    clock: list[float]
    processor: list[float]


def measure(ways: list[Way], rounds: int) -> dict[str, Times]:
    """Runs all ways by turns; what the way before has left is cleared away before the clock starts."""
    times: dict[str, Times] = {}
    for _ in range(rounds):
        for way in ways:
            run = way.start()
            gc.collect()
            clock, processor = time.perf_counter(), time.process_time()
            tokens = run()
            clock, processor = time.perf_counter() - clock, time.process_time() - processor
            before = times.get(way.name, Times(tokens, [], []))
            times[way.name] = Times(tokens, [*before.clock, clock], [*before.processor, processor])
    return times


def print_table(title: str, times: dict[str, Times]) -> None:
    """Prints a row for each way: speeds, and ratios to our two ways that make the same."""
    print(f"\n{title}; load of the machine {os.getloadavg()[0]:.1f}")
    print(
        f"{'':24s}{'tokens':>11s}{'tokens/s':>12s}{'tokens/cpu-s':>14s}   by clock: Python graph   by cpu: Python graph"
    )
    for name, own in times.items():
        rates = [own.tokens / statistics.median(seconds) for seconds in (own.clock, own.processor)]
        ours = _PADDED if name.endswith("padded") else _IDS
        by_clock, by_processor = (
            [ratio(getattr(own, kind), getattr(times[our], kind)) for our in ours] for kind in ("clock", "processor")
        )
        print(
            f"{name:24s}{own.tokens:11,}{rates[0]:12,.0f}{rates[1]:14,.0f}   "
            f"{by_clock[0]:16.2f}{by_clock[1]:6.2f}   {by_processor[0]:14.2f}{by_processor[1]:6.2f}",
            flush=True,
        )


def ratio(seconds: list[float], ours: list[float]) -> float:
    """Returns the median over rounds of a way's time divided by ours."""
    return statistics.median(other / our for other, our in zip(seconds, ours, strict=True))


def compare_ids(folder: Path, lines: list[str]) -> str:
    """Tells on how many lines transformers gives our ids."""
    peer = load_peer(folder)(lines, add_special_tokens=False)["input_ids"]
    ours = AlbertTokenizer.from_pretrained(folder).encode_batch(lines)
    equal = sum(one == other.tolist() for one, other in zip(peer, ours, strict=True))
    return f"transformers' ids are ours on {equal:,} of {len(lines):,} lines"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("english", type=Path)
    parser.add_argument("korean", type=Path)
    parser.add_argument("--vocabularies", type=Path, required=True)
    parser.add_argument("--megabytes", type=float, default=10)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, os.cpu_count() or 1])
    arguments = parser.parse_args()
    transformers.logging.set_verbosity_error()
    keras.config.disable_interactive_logging()
    for language in ("english", "korean"):
        corpus = Corpus.draw(language, getattr(arguments, language), arguments.megabytes)
        for kind in ("sentencepiece", "wordpiece"):
            folder = corpus.vocabulary(kind, arguments.vocabularies)
            print(f"\n{language}, {kind}: {compare_ids(folder, corpus.lines[:_CHECKED_LINES])}")
            for threads in dict.fromkeys(arguments.threads):
                # The library looks at this at every call; it takes all cores or one.
                os.environ["TOKENIZERS_PARALLELISM"] = "false" if threads == 1 else "true"
                ways = [*peer_ways(folder, corpus.lines), *our_ways(folder, corpus.lines, threads)]
                if kind == "sentencepiece":
                    ways = plain_ways(folder / "spiece.model", corpus.lines, threads) + ways
                title = (
                    f"{language}, {kind}, {arguments.megabytes:g} MB, {len(corpus.lines):,} lines, {threads} threads"
                )
                print_table(title, measure(ways, arguments.rounds))


if __name__ == "__main__":
    main()
