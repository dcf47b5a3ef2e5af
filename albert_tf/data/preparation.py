"""Text files become a folder of sharded TFRecords with a manifest, in three steps.

1. Every document is read and tokenised once, and spooled to the shard that the hash of its text chooses.
2. For every shard, `dupe_factor` passes of examples are made from the spool and written.
3. The manifest is written, and the workspace removed.

Steps 1 and 2 use worker processes; how many does not change a byte of the result. A run that was killed is taken up by
the same command after its last finished shard.
"""

import shutil
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from albert_tf.data.corpus import TokenizedDocuments, Vocabulary, append_to_spool, load_spool, tokenize_documents
from albert_tf.data.documents import Document, find_files, read_documents
from albert_tf.data.examples import make_examples
from albert_tf.data.features import PRETRAINING_FEATURES
from albert_tf.data.folders import Workspace, open_folder
from albert_tf.data.manifest import CorpusFile, ExampleStatistics, Manifest, Recipe, Shard
from albert_tf.data.options import ExampleOptions, Objective
from albert_tf.data.pairs import Pairs, make_pairs
from albert_tf.data.serialization import serialize_examples
from albert_tf.data.shards import atomic_file, write_records
from albert_tf.data.workers import Report, Workers
from albert_tf.tokenization import AlbertTokenizer

_BATCH_BYTES = 2**20
_BLOCK_TOKENS = 2**18
_PAIRS_AT_ONCE = 2**20


class PrepareOptions(ExampleOptions):
    """Options of `prepare`: those of `ExampleOptions`, and where from and where to.

    Args:
        inputs: text files, folders or patterns; one sentence a line, an empty line between documents, unless the options
            below say otherwise.
        output_dir: folder for the shards and their manifest; made if it is not there.
        tokenizer: a SentencePiece file or a folder that holds one; None: the published English vocabulary.
        do_lower_case: None: as the tokenizer's folder says, else True.
        split_sentences: lines are running text, wrapped or not, to be split into sentences.
        document_gap: how many empty lines in a row end a document; 0: only the end of a file does.
        num_shards: files to write; a document goes to the one that the hash of its text chooses.
        num_processes: worker processes. With more than one, a script that calls `prepare` needs the usual
            `if __name__ == "__main__":`.

    Example:

    >>> PrepareOptions(inputs=["corpus/*.txt"], output_dir="examples", max_seq_length=128).predictions
    19
    """

    inputs: tuple[str | Path, ...] = Field(min_length=1)
    output_dir: Path
    tokenizer: Path | None = None
    do_lower_case: bool | None = None
    split_sentences: bool = False
    document_gap: int = Field(1, ge=0)
    num_shards: int = Field(8, ge=1, le=100_000)
    num_processes: int = Field(1, ge=1)


@dataclass(frozen=True)
class PrepareProgress:
    """How far `prepare` is.

    Args:
        stage: `"tokenize"`, counted in bytes of text, then `"write"`, counted in tokens that examples were made of.
        done: amount done in this stage.
        total: amount to do in this stage.
    """

    stage: str
    done: int
    total: int


@dataclass(frozen=True)
class PrepareReport:
    """What `prepare` did.

    Args:
        folder: the output folder.
        manifest: what it holds.
        seconds: wall time.
        tokens_per_second: tokens in the examples written in this run, by wall time of the whole run.
        reused: True where the folder already held these very examples and nothing was done.
    """

    folder: Path
    manifest: Manifest
    seconds: float
    tokens_per_second: float
    reused: bool


class _Counts(BaseModel):
    """What step 1 found, kept in the workspace; documents by shard."""

    model_config = ConfigDict(frozen=True)

    documents: tuple[int, ...]
    segments: int
    tokens: int
    longest: int


@dataclass(frozen=True)
class _Context:
    """What every worker process needs."""

    options: PrepareOptions
    vocabulary: Vocabulary
    workspace: Path


def prepare(options: PrepareOptions, progress: Callable[[PrepareProgress], None] | None = None) -> PrepareReport:
    """Makes a folder of pretraining examples from text.

    Args:
        options: see `PrepareOptions`.
        progress: called now and then.

    Returns:
        PrepareReport. The folder holds `pretraining-00000-of-00008.tfrecord` and so on, with the reference's feature names,
        and `manifest.json`. Equal options and texts give equal bytes.

    Raises:
        ValueError: an input is not there or not UTF-8, the corpus is too small, or the folder holds something else.
        OSError: the disk is full; shards written before are whole, and no half one is left.
        RuntimeError: a worker process died.
    """
    started = time.monotonic()
    files = find_files(options.inputs)
    vocabulary = _load_tokenizer(options)
    recipe = _recipe(options, files, vocabulary)
    existing = open_folder(options.output_dir, recipe)
    if existing:
        return PrepareReport(options.output_dir, existing, time.monotonic() - started, 0.0, reused=True)
    workspace = Workspace.start(options.output_dir, recipe)
    reporter = _Reporter(progress or (lambda _: None))
    with Workers(_Context(options, vocabulary, workspace.folder), options.num_processes) as workers:
        counts = workspace.recall("counts", _Counts) or _spool(workers, files, options, workspace, reporter)
        try:
            _check_counts(counts, options)
        except ValueError:
            workspace.remove()
            raise
        shards, fresh = _write_shards(workers, counts, options, workspace, reporter)
    manifest = Manifest.of(recipe, sum(counts.documents), counts.segments, counts.tokens, shards)
    workspace.finish(manifest)
    seconds = time.monotonic() - started
    return PrepareReport(options.output_dir, manifest, seconds, fresh.tokens / seconds, reused=False)


class _Reporter:
    """Turns amounts of work into `PrepareProgress`."""

    def __init__(self, progress: Callable[[PrepareProgress], None]):
        self._progress = progress

    def start(self, stage: str, total: int, done: int = 0) -> None:
        self._stage, self._total, self._done = stage, total, 0
        self.add(done)

    def add(self, amount: int) -> None:
        self._done += amount
        self._progress(PrepareProgress(self._stage, min(self._done, self._total), self._total))


def _load_tokenizer(options: PrepareOptions) -> AlbertTokenizer:
    if options.tokenizer is not None:
        return AlbertTokenizer.from_pretrained(options.tokenizer, options.do_lower_case)
    return AlbertTokenizer.english(True if options.do_lower_case is None else options.do_lower_case)


def _recipe(options: PrepareOptions, files: Iterable[Path], vocabulary: Vocabulary) -> Recipe:
    # Spelled out, so that a number given and the same number derived are one recipe.
    values = {
        **options.model_dump(include=set(ExampleOptions.model_fields)),
        "max_predictions_per_seq": options.predictions,
    }
    return Recipe(
        examples=ExampleOptions(**values),
        num_shards=options.num_shards,
        split_sentences=options.split_sentences,
        document_gap=options.document_gap,
        vocab_size=vocabulary.vocab_size,
        vocab_hash=vocabulary.vocab_hash,
        corpus=tuple(CorpusFile.of(file) for file in files),
    )


def _spool(
    workers: Workers[_Context], files: list[Path], options: PrepareOptions, workspace: Workspace, reporter: _Reporter
) -> _Counts:
    """Tokenises the corpus into one spool a shard."""
    shutil.rmtree(workspace.folder / "spool", ignore_errors=True)
    reporter.start("tokenize", sum(file.stat().st_size for file in files))
    documents, segments, tokens, longest = np.zeros(options.num_shards, np.int64), 0, 0, 0
    batches = _batches(files, options, reporter.add)
    for batch in workers.map(_tokenize, batches, reporter.add):
        shards = (batch.document_keys % np.uint64(options.num_shards)).astype(np.int64)
        for shard in np.unique(shards):
            append_to_spool(_spool_folder(workspace.folder, shard), batch, np.flatnonzero(shards == shard))
        documents += np.bincount(shards, minlength=options.num_shards)
        segments, tokens = segments + len(batch.segment_offsets) - 1, tokens + len(batch.tokens)
        longest = max(longest, int(np.diff(batch.document_offsets).max(initial=0)))
    counts = _Counts(documents=tuple(documents.tolist()), segments=segments, tokens=tokens, longest=longest)
    workspace.remember("counts", counts)
    return counts


def _spool_folder(workspace: Path, shard: int) -> Path:
    return workspace / "spool" / str(shard)


def _batches(files: Iterable[Path], options: PrepareOptions, report: Report) -> Iterator[list[Document]]:
    """Yields the corpus in lists of documents, about a megabyte each."""
    batch, size = [], 0
    for file in files:
        start = 0
        for document in read_documents(file, split=options.split_sentences, gap=options.document_gap):
            batch.append(document)
            size += document.end - start
            start = document.end
            if size >= _BATCH_BYTES:
                report(size)
                yield batch
                batch, size = [], 0
    if batch:
        report(size)
        yield batch


def _tokenize(context: _Context, documents: list[Document], report: Report) -> TokenizedDocuments:
    options = context.options
    return tokenize_documents(documents, context.vocabulary, None if options.reference_pairs else options.room)


def _check_counts(counts: _Counts, options: PrepareOptions) -> None:
    """Raises ValueError where no example, or not every example, could be made of the corpus."""
    received = f"Received: {sum(counts.documents)} documents with {counts.segments} sentences"
    if not counts.tokens:
        raise ValueError(f"The input files must hold text. {received}. Check that they are the right files.")
    if options.reference_pairs or options.objective is Objective.NEXT_SENTENCE:
        if 1 in counts.documents:
            raise ValueError(
                f"Every shard must hold at least two documents, to draw random partners from. {received}, and a shard with "
                f"one of them. Use fewer shards or another objective."
            )
    elif options.objective is Objective.SENTENCE_ORDER and counts.longest < 2:
        raise ValueError(
            f"At least one document must have two sentences, to make pairs of. {received}. Put one sentence on each line, "
            f"with empty lines between documents only, or let running text be split into sentences."
        )


def _write_shards(
    workers: Workers[_Context], counts: _Counts, options: PrepareOptions, workspace: Workspace, reporter: _Reporter
) -> tuple[tuple[Shard, ...], ExampleStatistics]:
    """Writes the shards that are not there yet; returns all of them, and the statistics of the new ones."""
    numbers = [number for number, documents in enumerate(counts.documents) if documents]
    finished = {number: shard for number in numbers if (shard := workspace.recall(f"shard-{number}", Shard))}
    reporter.start("write", counts.tokens * options.dupe_factor)
    missing = [number for number in numbers if number not in finished]
    fresh = ExampleStatistics()
    for number, shard in zip(missing, workers.map(_write_shard, missing, reporter.add), strict=True):
        workspace.remember(f"shard-{number}", shard)
        finished[number] = shard
        fresh += shard.statistics
    # Documents without a partner make shards without examples; a file without records would only be in the way.
    shards = tuple(finished[number] for number in numbers if finished[number].statistics.examples)
    for number in numbers:
        if not finished[number].statistics.examples:
            (options.output_dir / finished[number].name).unlink(missing_ok=True)
    return shards, fresh


def _write_shard(context: _Context, number: int, report: Report) -> Shard:
    options = context.options
    documents = load_spool(_spool_folder(context.workspace, number))
    path = options.output_dir / f"pretraining-{number:05d}-of-{options.num_shards:05d}.tfrecord"
    statistics = ExampleStatistics()
    with atomic_file(path, context.workspace) as file:
        for pairs in _blocks(documents, options, report):
            examples = make_examples(documents, pairs, options, context.vocabulary)
            write_records(file, serialize_examples(PRETRAINING_FEATURES, vars(examples), options.sizes))
            statistics += ExampleStatistics.of(examples, context.vocabulary)
    return Shard(name=path.name, bytes=path.stat().st_size, statistics=statistics)


def _blocks(documents: TokenizedDocuments, options: ExampleOptions, report: Report) -> Iterator[Pairs]:
    """Yields the pairs of all passes, pass by pass, each in random order, in blocks that fit the processor's cache."""
    block = max(1, _BLOCK_TOKENS // options.max_seq_length)
    expected = len(documents.tokens) // options.room + len(documents)
    passes_at_once = max(1, _PAIRS_AT_ONCE // expected)
    for first in range(0, options.dupe_factor, passes_at_once):
        passes = np.arange(first, min(first + passes_at_once, options.dupe_factor))
        pairs = make_pairs(documents, passes, options).shuffled()
        work = len(documents.tokens) * len(passes)
        for start in range(0, len(pairs), block):
            stop = min(start + block, len(pairs))
            yield pairs.take(slice(start, stop))
            report(work * stop // len(pairs) - work * start // len(pairs))
