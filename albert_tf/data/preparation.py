"""Text files become a folder of sharded TFRecords with a manifest, in three steps.

1. Every document is read and tokenised once, and spooled to the shard that the hash of its text chooses.
2. For every shard, `dupe_factor` passes of examples are made from the spool and written, or the spool as it is.
3. The manifest is written, and the workspace removed.

Steps 1 and 2 use worker processes, or Apache Beam; neither changes a byte of the result. A run that was killed is
taken up by the same command after its last finished shard.
"""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from albert_tf.atomic_files import exclusive_lock
from albert_tf.data.corpus import Vocabulary
from albert_tf.data.folders import Workspace, check_name, open_folder
from albert_tf.data.manifest import CorpusFile, ExampleStatistics, Manifest, Recipe
from albert_tf.data.options import ExampleOptions, PrepareOptions
from albert_tf.data.progress import PrepareProgress, Reporter
from albert_tf.data.spool import Counts, LocalRunner, PrepareContext, check_counts, spool_corpus, warn_of_unknown
from albert_tf.data.writing import write_shards
from albert_tf.text_files import find_files
from albert_tf.tokenization import AlbertTokenizer

if TYPE_CHECKING:
    from albert_tf.data.beam import BeamRunner


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
        PrepareReport. The folder holds `manifest.json` and `pretraining-00000-of-00008.tfrecord` and so on, with the
        reference's feature names, or `documents-00000-of-00008.tfrecord` and so on. Equal options and texts give equal
        bytes.

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
            counts = workspace.load("counts", Counts) or spool_corpus(runner, files, context, workspace, reporter)
            check_counts(counts, options)
        except ValueError:
            workspace.remove()
            raise
        warn_of_unknown(counts, options)
        shards, written = write_shards(runner, counts, options, workspace, reporter)
    manifest = Manifest.of(recipe, sum(counts.documents), counts.segments, sum(counts.tokens), counts.unknown, shards)
    workspace.finish(manifest)
    return manifest, written


def _open_runner(context: PrepareContext) -> "LocalRunner | BeamRunner":
    if context.options.runner == "local":
        return LocalRunner(context)
    from albert_tf.data.beam import BeamRunner

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
        corpus=tuple(CorpusFile.of(file) for file in files),
    )
