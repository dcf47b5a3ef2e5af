"""Runs the work of `prepare` on Apache Beam: on one machine, or on Flink, Spark or Dataflow.

Beam groups the tokenized documents by shard; they are sorted back into the order of the corpus, so the result equals
that of the local runner. All workers need access to the inputs and the output folder under the same paths, or URLs.
"""

import importlib
import pickle
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache, partial
from operator import itemgetter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from albert_tf.data.documents import Document
from albert_tf.data.preparation.tokenized_cache import (
    Arrays,
    PrepareContext,
    Report,
    append_to_cache,
    cache_folder,
    read_batches,
    split_by_shard,
    tokenize_batch,
)
from albert_tf.files.atomic import move
from albert_tf.files.installation import install_command
from albert_tf.files.urls import is_remote, process_folder

# Position of a batch of documents in the corpus: index of the file, index within the file.
Position = tuple[int, int]


class BeamRunner:
    """Runs the work in pipelines of Apache Beam, one for each step of `prepare`.

    Args:
        context: sent to every worker; its `options.beam_options` configure the pipelines.

    Raises:
        ValueError: apache-beam is not installed.
    """

    def __init__(self, context: PrepareContext):
        self._beam = _import_beam()
        options = context.options.model_copy(update={"output_dir": context.options.output_dir.absolute()})
        self._context = replace(context, options=options, workspace=context.workspace.absolute())
        self._packed = pickle.dumps(self._context)

    def tokenize(self, files: list[Path], report: Report) -> None:
        """Tokenizes the corpus into the cache of each shard."""
        beam = self._beam
        numbered = [(number, file.absolute()) for number, file in enumerate(files)]
        with self._pipeline() as pipeline:
            batches = pipeline | "Files" >> beam.Create(numbered) | "Read" >> self._step(_read)
            # Without the reshuffle, a runner may tokenize a whole file on the worker that reads it.
            parts = batches | beam.Reshuffle() | "Tokenize" >> self._step(_tokenize)
            _ = parts | beam.GroupByKey() | "Store" >> self._step(_store)
        report(sum(file.stat().st_size for file in files))

    def run(self, function: Callable[[PrepareContext, int], object], items: list[int]) -> list[int]:
        """Calls the function for every item, in any order; returns the items at the end."""
        beam = self._beam
        with self._pipeline() as pipeline:
            _ = pipeline | "Shards" >> beam.Create(items) | "Write" >> self._step(partial(_without_results, function))
        return items

    def _step(self, function: Callable[[PrepareContext, Any], Iterable[Any]]) -> Any:
        return self._beam.FlatMap(partial(_run_step, function, self._packed))

    @contextmanager
    def _pipeline(self) -> Iterator[Any]:
        """A pipeline, which runs when the block ends.

        Raises:
            RuntimeError: the pipeline failed, perhaps because of an error of a step, which the message names.
        """
        options = list(self._context.options.beam_options)
        try:
            with self._beam.Pipeline(options=self._beam.pipeline.PipelineOptions(options)) as pipeline:
                yield pipeline
        except Exception as error:
            reason = (str(error).strip() or type(error).__name__).splitlines()[-1]
            raise RuntimeError(
                f"The Beam pipeline failed: {reason} (beam_options={options}). Check that albert_tf is installed on "
                f"every worker and that {self._context.options.output_dir} is accessible there, and run the same "
                f"command again; finished shards are kept."
            ) from error


def _run_step(function: Callable[[PrepareContext, Any], Iterable[Any]], packed: bytes, item: Any) -> Iterable[Any]:
    return function(_unpacked(packed), item)


@lru_cache(maxsize=1)
def _unpacked(packed: bytes) -> PrepareContext:
    # Beam unpickles steps repeatedly, and loading a tokenizer takes a third of a second.
    return pickle.loads(packed)


def _read(context: PrepareContext, numbered: tuple[int, Path]) -> Iterator[tuple[Position, list[Document]]]:
    number, file = numbered
    for batch, documents in enumerate(read_batches([file], context.options)):
        yield (number, batch), documents


def _tokenize(
    context: PrepareContext, batch: tuple[Position, list[Document]]
) -> Iterator[tuple[int, tuple[Position, Arrays]]]:
    position, documents = batch
    for shard, arrays in split_by_shard(tokenize_batch(context, documents), context.options.num_shards):
        yield shard, (position, arrays)


def _store(context: PrepareContext, shard: tuple[int, Iterable[tuple[Position, Arrays]]]) -> Iterable[None]:
    number, parts = shard
    folder = cache_folder(context.workspace, number)
    with TemporaryDirectory(dir=process_folder() if is_remote(folder) else folder.parent) as temporary:
        cache = Path(temporary) / "cache"
        for _, arrays in sorted(parts, key=itemgetter(0)):
            append_to_cache(cache, arrays)
        try:
            move(cache, folder)
        except OSError:
            # A runner may run a step twice, with equal results.
            if not folder.is_dir():
                raise
    return ()


def _without_results(
    function: Callable[[PrepareContext, int], object], context: PrepareContext, item: int
) -> Iterable[None]:
    function(context, item)
    return ()


def _import_beam() -> Any:
    try:
        return importlib.import_module("apache_beam")
    except ImportError as error:
        raise ValueError(
            f"runner='beam' needs Apache Beam, which is not installed; run: {install_command('beam')}."
        ) from error
