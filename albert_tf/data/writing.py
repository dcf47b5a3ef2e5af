"""Step 2 of `prepare`: for every shard, examples are made from its spool and written, or its documents as they are."""

from collections.abc import Iterator
from typing import BinaryIO

import numpy as np

from albert_tf.atomic_files import atomic_open
from albert_tf.data.corpus import TokenizedDocuments
from albert_tf.data.examples import make_examples
from albert_tf.data.features import PACKED_FEATURES, PRETRAINING_FEATURES
from albert_tf.data.folders import Workspace
from albert_tf.data.manifest import ExampleStatistics, Shard
from albert_tf.data.options import ExampleOptions, PrepareOptions
from albert_tf.data.packing import pack_examples
from albert_tf.data.pairs import Pairs, make_pairs
from albert_tf.data.progress import Reporter
from albert_tf.data.serialization import serialize_examples
from albert_tf.data.shard_files import write_document_shard, write_records
from albert_tf.data.spool import Counts, PrepareContext, Runner, load_spool, spool_arrays, spool_folder
from albert_tf.data.workers import Report

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
    spool = spool_folder(context.workspace, number)
    with atomic_open(path) as file:
        if options.format == "documents":
            arrays = spool_arrays(spool)
            write_document_shard(file, arrays)
            report(len(arrays["tokens"]))
            # How many examples an epoch takes from the shard, so that training finds any of them by arithmetic.
            examples = len(make_pairs(load_spool(spool), [0], options))
            statistics, records = ExampleStatistics(examples=examples), len(arrays)
        else:
            statistics, records = _write_examples(file, load_spool(spool), context, report)
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
