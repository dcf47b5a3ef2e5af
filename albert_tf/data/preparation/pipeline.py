"""`prepare`: from text files to a folder of sharded TFRecords with a manifest.

1. Every document is tokenized once, into the cache of the shard that the hash of its text selects.
2. For every shard, `dupe_factor` passes of examples, or the documents themselves, are written from the cache.
3. The manifest is written, and the workspace removed.

Steps 1 and 2 run in worker processes or on Apache Beam, with identical results. An interrupted run resumes after its
last finished shard.
"""

import contextlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, TypeAlias

import numpy as np

from albert_tf.data.corpus import TokenizedDocuments, Vocabulary
from albert_tf.data.features import PACKED_FEATURES, PRETRAINING_FEATURES
from albert_tf.data.manifest import (
    TOKENIZER_FOLDER,
    ExampleStatistics,
    HashedFile,
    Manifest,
    PreparationSettings,
    Shard,
)
from albert_tf.data.options import ExampleOptions, PrepareOptions
from albert_tf.data.preparation.output_folder import Workspace, open_folder
from albert_tf.data.preparation.runners import LocalRunner
from albert_tf.data.preparation.serialization import serialize_examples
from albert_tf.data.preparation.tokenized_cache import (
    Counts,
    PrepareContext,
    cache_arrays,
    check_counts,
    count_caches,
    local_cache,
    warn_of_losses,
)
from albert_tf.data.pretraining.examples import make_examples
from albert_tf.data.pretraining.packing import pack_examples
from albert_tf.data.pretraining.pairs import Pairs, make_pairs
from albert_tf.data.shard_files import as_documents, write_document_shard, write_records
from albert_tf.files.atomic import atomic_open, exclusive_lock
from albert_tf.files.text import find_files
from albert_tf.files.urls import is_remote, location, make_folder, remove_tree, with_urls
from albert_tf.tokenization import AlbertTokenizer
from albert_tf.tokenization.added_tokens_files import read_token_lines
from albert_tf.tokenization.files import VOCABULARY_FILE, english_model_file, find_vocabulary

if TYPE_CHECKING:
    from albert_tf.data.preparation.beam import BeamRunner

    Runner: TypeAlias = LocalRunner | BeamRunner

_MIN_SHARDS = 8
_MAX_SHARD_TEXT = 2**28  # bytes
_BLOCK_TOKENS = 2**18
_PAIRS_AT_ONCE = 2**18


@dataclass(frozen=True)
class PrepareProgress:
    """Progress of `prepare`.

    Args:
        stage: `"tokenize"`, in bytes of text, then `"write"`, in tokens of the corpus times passes.
        done: amount done in this stage.
        total: total amount of this stage.
    """

    stage: str
    done: int
    total: int


class _Reporter:
    """Accumulates amounts of work into `PrepareProgress`."""

    def __init__(self, progress: Callable[[PrepareProgress], None] | None):
        self._progress = progress or (lambda _: None)

    def start(self, stage: str, total: int) -> None:
        self._stage, self._total, self._done = stage, total, 0
        self.add(0)

    def add(self, amount: int) -> None:
        self._done += amount
        self._progress(PrepareProgress(self._stage, min(self._done, self._total), self._total))


@dataclass(frozen=True)
class PrepareReport:
    """Result of `prepare`.

    Args:
        folder: the output folder.
        manifest: its manifest.
        reused: True if the folder already held these examples and nothing was done.
    """

    folder: Path
    manifest: Manifest
    reused: bool


def prepare(options: PrepareOptions, progress: Callable[[PrepareProgress], None] | None = None) -> PrepareReport:
    """Makes a folder of pretraining examples, or of tokenized documents, from text.

    Args:
        options: see `PrepareOptions`.
        progress: called regularly.

    Returns:
        PrepareReport. The folder holds `manifest.json`, the tokenizer in `tokenizer/`, and shards:
        `pretraining-00000-of-00008.tfrecord` and so on, with the reference's feature names, or
        `documents-00000-of-00008.tfrecord` and so on. Equal options and texts give equal bytes.

    Raises:
        ValueError: an input does not exist or is not UTF-8, the corpus is too small, or the folder holds something
            else or is being written by another run.
        OSError: a file could not be written, for example because the disk is full; finished shards are kept.
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
    vocabulary = find_vocabulary(options.tokenizer or english_model_file())
    output = location(options.output_dir)
    if is_remote(output):
        make_folder(output)  # raises if nothing can be written there
    # A folder of texts may also hold the vocabulary, and the output folder with its copy of it.
    copies = with_urls(str(vocabulary)), str(vocabulary.resolve()), str(output / TOKENIZER_FOLDER / VOCABULARY_FILE)
    copies = *copies, str((output / TOKENIZER_FOLDER / VOCABULARY_FILE).resolve())
    files = [file for file in find_files(options.inputs) if str(file.resolve()) not in copies]
    num_shards = options.num_shards or default_num_shards(files)
    options = options.model_copy(update={"num_shards": num_shards, "output_dir": output})
    tokenizer = AlbertTokenizer.from_pretrained(vocabulary, options.do_lower_case)
    if options.add_tokens is not None:
        tokenizer.add_tokens(read_token_lines(options.add_tokens))
    recipe = _recipe(options, files, tokenizer)
    with contextlib.nullcontext() if is_remote(output) else exclusive_lock(output):
        existing, workspace = open_folder(output, recipe), Workspace(output)
        if existing:
            workspace.remove()  # exists if a run was killed after it wrote the manifest
            return PrepareReport(output, existing, reused=True)
        workspace.start(recipe)
        context = PrepareContext(options, tokenizer, Vocabulary.of(tokenizer), workspace.folder)
        manifest = _prepare(context, files, recipe, workspace, _Reporter(progress))
    return PrepareReport(output, manifest, reused=False)


def _prepare(
    context: PrepareContext, files: list[Path], recipe: PreparationSettings, workspace: Workspace, reporter: _Reporter
) -> Manifest:
    """Starts or resumes the work, and finishes the folder."""
    options = context.options
    with _open_runner(context) as runner:
        try:
            counts = workspace.load("counts", Counts) or _tokenize_corpus(context, files, runner, workspace, reporter)
            check_counts(counts, options)
        except ValueError:
            workspace.remove()
            raise
        warn_of_losses(counts, options)
        shards = _write_shards(options, counts, runner, workspace, reporter)
    folder = options.output_dir / TOKENIZER_FOLDER
    context.tokenizer.save_pretrained(folder)
    manifest = Manifest(
        recipe=recipe,
        tokenizer=tuple(HashedFile.of(path) for path in sorted(folder.iterdir(), key=lambda path: path.name)),
        documents=sum(counts.documents),
        repeated_documents=counts.repeated,
        segments=counts.segments,
        tokens=sum(counts.tokens),
        unknown_tokens=counts.unknown,
        statistics=sum((shard.statistics for shard in shards), ExampleStatistics()),
        shards=shards,
    )
    workspace.finish(manifest)
    return manifest


def default_num_shards(files: Iterable[Path]) -> int:
    """Returns how many shards keep each one within `_MAX_SHARD_TEXT`; text compresses to about a quarter."""
    size = sum(file.stat().st_size * (4 if file.suffix == ".gz" else 1) for file in files)
    return max(_MIN_SHARDS, -(-size // _MAX_SHARD_TEXT))


def _open_runner(context: PrepareContext) -> "contextlib.AbstractContextManager[Runner]":
    if context.options.runner == "local":
        return LocalRunner(context)
    from albert_tf.data.preparation.beam import BeamRunner

    return contextlib.nullcontext(BeamRunner(context))


def _recipe(options: PrepareOptions, files: Iterable[Path], tokenizer: AlbertTokenizer) -> PreparationSettings:
    # Defaults are resolved, so that an explicit number and the same number by default give equal recipes.
    values = {
        **options.model_dump(include=set(ExampleOptions.model_fields)),
        "max_predictions_per_seq": options.max_masked,
    }
    if options.format == "documents":
        values["dupe_factor"] = 1  # not used
    return PreparationSettings(
        examples=ExampleOptions(**values),
        format=options.format,
        num_shards=options.num_shards,
        split_sentences=options.split_sentences,
        document_gap=options.document_gap,
        drop_repeated=options.drop_repeated,
        vocab_size=tokenizer.vocab_size,
        vocab_hash=tokenizer.vocab_hash,
        corpus=tuple(HashedFile.of(file) for file in files),
    )


def _tokenize_corpus(
    context: PrepareContext, files: list[Path], runner: "Runner", workspace: Workspace, reporter: _Reporter
) -> Counts:
    """Tokenizes the corpus into the cache of each shard, and counts its contents."""
    remove_tree(workspace.folder / "tokenized")
    make_folder(workspace.folder / "tokenized")
    reporter.start("tokenize", sum(file.stat().st_size for file in files))
    runner.tokenize(files, reporter.add)
    counts = count_caches(workspace.folder, context.options, context.tokenizer.unk_token_id)
    workspace.save("counts", counts)
    return counts


def _write_shards(
    options: PrepareOptions, counts: Counts, runner: "Runner", workspace: Workspace, reporter: _Reporter
) -> tuple[Shard, ...]:
    """Writes the missing shards; returns all."""
    numbers = [number for number, documents in enumerate(counts.documents) if documents]
    missing = [number for number in numbers if not workspace.load(f"shard-{number}", Shard)]
    passes = options.dupe_factor if options.format == "examples" else 1
    reporter.start("write", sum(counts.tokens[number] for number in missing) * passes)
    for number in runner.run(_write_shard, missing):
        reporter.add(counts.tokens[number] * passes)
    finished = [_load_finished(workspace, number) for number in numbers]
    for shard in finished:
        if not shard.records:  # all of its documents have a single sentence
            (options.output_dir / shard.name).unlink(missing_ok=True)
    return tuple(shard for shard in finished if shard.records)


def _load_finished(workspace: Workspace, number: int) -> Shard:
    shard = workspace.load(f"shard-{number}", Shard)
    if not shard:
        raise RuntimeError(
            f"A worker wrote shard {number}, but {workspace.folder} has no record of it. Choose an output folder on a "
            f"file system that all workers share."
        )
    return shard


def _write_shard(context: PrepareContext, number: int) -> None:
    """Writes a shard, and then its record in the workspace, which marks it as finished."""
    options = context.options
    kind = "pretraining" if options.format == "examples" else "documents"
    path = options.output_dir / f"{kind}-{number:05d}-of-{options.num_shards:05d}.tfrecord"
    with local_cache(context.workspace, number) as cache, atomic_open(path) as file:
        arrays = cache_arrays(cache, options.drop_repeated)
        documents = as_documents(arrays)
        if options.format == "documents":
            write_document_shard(file, arrays)
            # The number of examples per epoch, with which training can seek to any of them.
            examples = len(make_pairs(documents, [0], options))
            statistics, records = ExampleStatistics(examples=examples), len(arrays)
        else:
            statistics, records = _write_examples(file, documents, context)
    shard = Shard(name=path.name, bytes=path.stat().st_size, records=records, statistics=statistics)
    Workspace(options.output_dir).save(f"shard-{number}", shard)


def _write_examples(
    file: BinaryIO, documents: TokenizedDocuments, context: PrepareContext
) -> tuple[ExampleStatistics, int]:
    """Writes the examples of all passes; returns their statistics and the number of records."""
    options, vocabulary, statistics, records = context.options, context.vocabulary, ExampleStatistics(), 0
    features = PACKED_FEATURES if options.pack else PRETRAINING_FEATURES
    for pairs in _blocks(documents, options):
        examples = make_examples(documents, pairs, options, vocabulary)
        statistics += ExampleStatistics.of(examples, vocabulary)
        rows = pack_examples(examples, pairs.keys, options, vocabulary.pad_token_id) if options.pack else examples
        write_records(file, serialize_examples(features, vars(rows)))
        records += len(rows)
    return statistics, records


def _blocks(documents: TokenizedDocuments, options: ExampleOptions) -> Iterator[Pairs]:
    """Yields the pairs of all passes, pass by pass, each shuffled, in blocks that fit the processor's cache."""
    block = max(1, _BLOCK_TOKENS // options.max_seq_length)
    expected = len(documents.tokens) // options.max_tokens + len(documents)
    passes_at_once = max(1, _PAIRS_AT_ONCE // expected)
    for first in range(0, options.dupe_factor, passes_at_once):
        passes = np.arange(first, min(first + passes_at_once, options.dupe_factor))
        pairs = make_pairs(documents, passes, options).shuffled()
        for start in range(0, len(pairs), block):
            yield pairs.take(slice(start, min(start + block, len(pairs))))
