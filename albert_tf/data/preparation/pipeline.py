"""Text files become a folder of sharded TFRecords with a manifest, in three steps.

1. Every document is read and tokenised once, and cached for the shard that the hash of its text chooses.
2. For every shard, `dupe_factor` passes of examples are made from the cache and written, or the documents as they are.
3. The manifest is written, and the workspace removed.

Steps 1 and 2 use worker processes, or Apache Beam; neither changes a byte of the result. A run that was killed is
taken up by the same command after its last finished shard.
"""

import shutil
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import numpy as np

from albert_tf.atomic_files import atomic_open, exclusive_lock
from albert_tf.data.corpus import TokenizedDocuments, Vocabulary
from albert_tf.data.features import PACKED_FEATURES, PRETRAINING_FEATURES
from albert_tf.data.manifest import (
    TOKENIZER_FOLDER,
    ExampleStatistics,
    HashedFile,
    Manifest,
    Recipe,
    Shard,
    VocabularyRecord,
)
from albert_tf.data.options import ExampleOptions, PrepareOptions
from albert_tf.data.preparation.output_folder import Workspace, check_name, open_folder
from albert_tf.data.preparation.runners import LocalRunner, Runner
from albert_tf.data.preparation.serialization import serialize_examples
from albert_tf.data.preparation.tokenized_cache import (
    Counts,
    PrepareContext,
    Report,
    cache_arrays,
    cache_folder,
    check_counts,
    count_caches,
    load_cache,
    warn_of_unknown,
)
from albert_tf.data.pretraining.examples import make_examples
from albert_tf.data.pretraining.packing import pack_examples
from albert_tf.data.pretraining.pairs import Pairs, make_pairs
from albert_tf.data.shard_files import write_document_shard, write_records
from albert_tf.text_files import find_files
from albert_tf.tokenization import AlbertTokenizer

if TYPE_CHECKING:
    from albert_tf.data.preparation.beam import BeamRunner


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


class Reporter:
    """Turns amounts of work into `PrepareProgress`."""

    def __init__(self, progress: Callable[[PrepareProgress], None] | None):
        self._progress = progress or (lambda _: None)

    def start(self, stage: str, total: int, done: int = 0) -> None:
        self._stage, self._total, self._done = stage, total, 0
        self.add(done)

    def add(self, amount: int) -> None:
        self._done += amount
        self._progress(PrepareProgress(self._stage, min(self._done, self._total), self._total))


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


def prepare(options: PrepareOptions, progress: Callable[[PrepareProgress], None] | None = None) -> PrepareReport:
    """Makes a folder of pretraining examples, or of tokenised documents, from text.

    Args:
        options: see `PrepareOptions`.
        progress: called now and then.

    Returns:
        PrepareReport. The folder holds `manifest.json`, the tokenizer in `tokenizer/`, and
        `pretraining-00000-of-00008.tfrecord` and so on, with the reference's feature names, or
        `documents-00000-of-00008.tfrecord` and so on. Equal options and texts give equal bytes.

    Raises:
        ValueError: an input is not there or not UTF-8, the corpus is too small, or the folder holds something else or
            is being written by another run.
        OSError: the disk is full; shards written before are whole, and no half one is left.
        RuntimeError: a worker process died, or Beam's pipeline failed.

    Example:

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     text, examples = Path(folder) / "text.txt", Path(folder) / "examples"
    ...     _ = text.write_text("It rained.\\nIt stopped.\\n")
    ...     report = prepare(PrepareOptions(inputs=[text], output_dir=examples, max_seq_length=16, dupe_factor=4))
    >>> report.manifest.statistics.examples, [shard.name for shard in report.manifest.shards]
    (4, ['pretraining-00006-of-00008.tfrecord'])

    References: `create_pretraining_data.py` of google-research/albert.
    """
    started = time.monotonic()
    files = find_files(options.inputs)
    options = options.model_copy(update={"num_shards": options.num_shards or default_num_shards(files)})
    tokenizer = _load_tokenizer(options)
    recipe = _recipe(options, files, tokenizer)
    check_name(options.output_dir)
    with exclusive_lock(options.output_dir):
        existing, workspace = open_folder(options.output_dir, recipe), Workspace(options.output_dir)
        if existing:
            workspace.remove()  # left there by a run that was killed at its very end
            return PrepareReport(options.output_dir, existing, time.monotonic() - started, 0.0, reused=True)
        workspace.start(recipe)
        manifest, written = _prepare(options, files, tokenizer, recipe, workspace, Reporter(progress))
    seconds = time.monotonic() - started
    return PrepareReport(options.output_dir, manifest, seconds, written.tokens / seconds, reused=False)


def _prepare(
    options: PrepareOptions,
    files: list[Path],
    tokenizer: AlbertTokenizer,
    recipe: Recipe,
    workspace: Workspace,
    reporter: Reporter,
) -> tuple[Manifest, ExampleStatistics]:
    """Does what an earlier run has not done; returns the manifest and the statistics of the shards written now."""
    context = PrepareContext(options, tokenizer, Vocabulary.of(tokenizer), workspace.folder)
    with _open_runner(context) as runner:
        try:
            counts = workspace.load("counts", Counts) or tokenize_corpus(runner, files, context, workspace, reporter)
            check_counts(counts, options)
        except ValueError:
            workspace.remove()
            raise
        warn_of_unknown(counts, options)
        shards, written = write_shards(runner, counts, options, workspace, reporter)
    tokenizer.save_pretrained(options.output_dir / TOKENIZER_FOLDER)
    vocabulary = VocabularyRecord.of(context.vocabulary, options.output_dir / TOKENIZER_FOLDER)
    documents, tokens = sum(counts.documents), sum(counts.tokens)
    manifest = Manifest.of(recipe, vocabulary, documents, counts.segments, tokens, counts.unknown, shards)
    workspace.finish(manifest)
    return manifest, written


def default_num_shards(files: Iterable[Path]) -> int:
    """How many shards hold the files, so that no shard outgrows memory; text compresses to about a quarter."""
    size = sum(file.stat().st_size * (4 if file.suffix == ".gz" else 1) for file in files)
    return max(_MIN_SHARDS, -(-size // _MAX_SHARD_TEXT))


def _open_runner(context: PrepareContext) -> "LocalRunner | BeamRunner":
    if context.options.runner == "local":
        return LocalRunner(context)
    from albert_tf.data.preparation.beam import BeamRunner

    return BeamRunner(context)


def _load_tokenizer(options: PrepareOptions) -> AlbertTokenizer:
    if options.tokenizer is not None:
        return AlbertTokenizer.from_pretrained(options.tokenizer, options.do_lower_case)
    return AlbertTokenizer.english(True if options.do_lower_case is None else options.do_lower_case)


def _recipe(options: PrepareOptions, files: Iterable[Path], tokenizer: AlbertTokenizer) -> Recipe:
    # Spelled out, so that a number given and the same number derived are one recipe.
    values = {
        **options.model_dump(include=set(ExampleOptions.model_fields)),
        "max_predictions_per_seq": options.largest_budget,
    }
    if options.format == "documents":
        values["dupe_factor"] = 1  # which decides nothing there
    return Recipe(
        examples=ExampleOptions(**values),
        format=options.format,
        num_shards=options.num_shards,
        split_sentences=options.split_sentences,
        document_gap=options.document_gap,
        vocab_size=tokenizer.vocab_size,
        vocab_hash=tokenizer.vocab_hash,
        corpus=tuple(HashedFile.of(file) for file in files),
    )


def tokenize_corpus(
    runner: Runner, files: list[Path], context: PrepareContext, workspace: Workspace, reporter: Reporter
) -> Counts:
    """Has the corpus tokenised into the cache of each shard, and counts what it holds."""
    shutil.rmtree(workspace.folder / "tokenized", ignore_errors=True)
    (workspace.folder / "tokenized").mkdir()
    reporter.start("tokenize", sum(file.stat().st_size for file in files))
    runner.tokenize(files, reporter.add)
    counts = count_caches(workspace.folder, context.options.num_shards, context.tokenizer.unk_token_id)
    workspace.save("counts", counts)
    return counts


_MIN_SHARDS = 8
_MAX_SHARD_TEXT = 2**28  # bytes
_BLOCK_TOKENS = 2**18
_PAIRS_AT_ONCE = 2**18


def write_shards(
    runner: Runner, counts: Counts, options: PrepareOptions, workspace: Workspace, reporter: Reporter
) -> tuple[tuple[Shard, ...], ExampleStatistics]:
    """Writes the shards that are not there yet; returns all of them, and the statistics of the new ones."""
    numbers = [number for number, documents in enumerate(counts.documents) if documents]
    missing = [number for number in numbers if not workspace.load(f"shard-{number}", Shard)]
    passes = options.dupe_factor if options.format == "examples" else 1
    reporter.start("write", sum(counts.tokens[number] for number in missing) * passes)
    runner.run(_write_shard, missing, reporter.add)
    finished = {number: _finished(workspace, number) for number in numbers}
    fresh = sum((finished[number].statistics for number in missing), ExampleStatistics())
    # Documents without a partner make shards without examples; a file without records would only be in the way.
    shards = tuple(finished[number] for number in numbers if finished[number].records)
    for number in numbers:
        if not finished[number].records:
            (options.output_dir / finished[number].name).unlink(missing_ok=True)
    return shards, fresh


def _finished(workspace: Workspace, number: int) -> Shard:
    shard = workspace.load(f"shard-{number}", Shard)
    if not shard:
        raise RuntimeError(
            f"Every worker must write to the folder that this process sees. Received: no word of shard {number} in "
            f"{workspace.folder}. Choose an output folder on a file system that all of them share."
        )
    return shard


def _write_shard(context: PrepareContext, number: int, report: Report) -> None:
    """Writes a shard and leaves word of it in the workspace: with it the shard is finished."""
    options = context.options
    kind = "pretraining" if options.format == "examples" else "documents"
    path = options.output_dir / f"{kind}-{number:05d}-of-{options.num_shards:05d}.tfrecord"
    cache = cache_folder(context.workspace, number)
    with atomic_open(path) as file:
        if options.format == "documents":
            arrays = cache_arrays(cache)
            write_document_shard(file, arrays)
            report(len(arrays["tokens"]))
            # How many examples an epoch takes from the shard, so that training finds any of them by arithmetic.
            examples = len(make_pairs(load_cache(cache), [0], options))
            statistics, records = ExampleStatistics(examples=examples), len(arrays)
        else:
            statistics, records = _write_examples(file, load_cache(cache), context, report)
    shard = Shard(name=path.name, bytes=path.stat().st_size, records=records, statistics=statistics)
    Workspace(options.output_dir).save(f"shard-{number}", shard)


def _write_examples(
    file: BinaryIO, documents: TokenizedDocuments, context: PrepareContext, report: Report
) -> tuple[ExampleStatistics, int]:
    """Returns what was counted in the examples, and how many records they made."""
    options, vocabulary, statistics, records = context.options, context.vocabulary, ExampleStatistics(), 0
    features = PACKED_FEATURES if options.pack else PRETRAINING_FEATURES
    for pairs in _blocks(documents, options, report):
        examples = make_examples(documents, pairs, options, vocabulary)
        statistics += ExampleStatistics.of(examples, vocabulary)
        rows = pack_examples(examples, pairs.keys, options, vocabulary.pad_token_id) if options.pack else examples
        write_records(file, serialize_examples(features, vars(rows), options.sizes))
        records += len(rows)
    return statistics, records


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
