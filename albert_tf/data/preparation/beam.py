"""The work of `prepare` on Apache Beam: on one machine, or on the many of Flink, Spark or Dataflow.

Beam carries each document to its shard. What is done there are the functions of the local runner, with the documents
of a shard back in the order of the corpus, so the bytes are the same. Files are handed over in the workspace: every
Beam worker must see the inputs and the output folder under the same paths.
"""

import importlib
import pickle
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
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

# Where a batch of documents stands in the corpus: number of its file, its own number in the file.
Position = tuple[int, int]
_FAULT = "fault"


class BeamRunner:
    """Does the work in pipelines of Apache Beam, one for each step of `prepare`.

    Args:
        context: sent to every worker; the pipelines have its `options.beam_options`.

    Raises:
        ValueError: apache-beam is not installed.
    """

    def __init__(self, context: PrepareContext):
        self._beam = _import_beam()
        options = context.options.model_copy(update={"output_dir": context.options.output_dir.absolute()})
        self._context = replace(context, options=options, workspace=context.workspace.absolute())
        self._packed = pickle.dumps(self._context)

    def __enter__(self) -> "BeamRunner":
        return self

    def __exit__(self, *exception: object) -> None:
        pass

    def tokenize(self, files: list[Path], report: Report) -> None:
        """Tokenises the corpus into the cache of each shard."""
        beam = self._beam
        numbered = [(number, file.absolute()) for number, file in enumerate(files)]
        with self._pipeline() as pipeline:
            batches = pipeline | "Files" >> beam.Create(numbered) | "Read" >> self._step(_read)
            # Without the reshuffle, a runner may tokenise a file where it reads it, all of it on one worker.
            parts = batches | beam.Reshuffle() | "Tokenize" >> self._step(_tokenize)
            _ = parts | beam.GroupByKey() | "Store" >> self._step(_store)
        report(sum(file.stat().st_size for file in files))

    def run(self, function: Callable[[PrepareContext, int, Report], object], items: list[int], report: Report) -> None:
        """Calls the function for every item, in any order; Beam reports nothing of its progress."""
        beam = self._beam
        with self._pipeline() as pipeline:
            _ = pipeline | "Shards" >> beam.Create(items) | "Write" >> self._step(partial(_quietly, function))

    def _step(self, function: Callable[[PrepareContext, Any], Iterable[Any]]) -> Any:
        return self._beam.FlatMap(_Step(function, self._packed))

    @contextmanager
    def _pipeline(self) -> Iterator[Any]:
        """A pipeline, which runs when the block ends.

        Raises:
            ValueError, OSError: a step raised it.
            RuntimeError: the pipeline failed for another reason.
        """
        fault, options = self._context.workspace / _FAULT, self._context.options.beam_options
        fault.unlink(missing_ok=True)
        try:
            with self._beam.Pipeline(options=self._beam.pipeline.PipelineOptions(list(options))) as pipeline:
                yield pipeline
        except Exception as error:
            if fault.is_file():
                raise pickle.loads(fault.read_bytes()) from None
            raise RuntimeError(
                f"Beam's pipeline must run to its end. Received: {_last_line(error)}, with beam_options="
                f"{list(options)}. See that every worker has albert_tf and sees {self._context.options.output_dir}, "
                f"and run the same command again; finished shards are kept."
            ) from error


@dataclass(frozen=True)
class _Step:
    """A function as Beam calls it. Beam rewords errors: one that is for the user is left in the workspace, too."""

    function: Callable[[PrepareContext, Any], Iterable[Any]]
    packed: bytes

    def __call__(self, item: Any) -> Iterator[Any]:
        context = _unpacked(self.packed)
        try:
            yield from self.function(context, item)
        except (ValueError, OSError) as error:
            with suppress(OSError):
                (context.workspace / _FAULT).write_bytes(pickle.dumps(error))
            raise


@lru_cache(maxsize=1)
def _unpacked(packed: bytes) -> PrepareContext:
    # Beam unpickles steps over and over, and a tokenizer takes a third of a second.
    return pickle.loads(packed)


def _read(context: PrepareContext, numbered: tuple[int, Path]) -> Iterator[tuple[Position, list[Document]]]:
    number, file = numbered
    for batch, documents in enumerate(read_batches([file], context.options, _ignore)):
        yield (number, batch), documents


def _tokenize(
    context: PrepareContext, batch: tuple[Position, list[Document]]
) -> Iterator[tuple[int, tuple[Position, Arrays]]]:
    place, documents = batch
    for shard, arrays in split_by_shard(tokenize_batch(context, documents, _ignore), context.options.num_shards):
        yield shard, (place, arrays)


def _store(context: PrepareContext, shard: tuple[int, Iterable[tuple[Position, Arrays]]]) -> Iterable[None]:
    number, parts = shard
    folder = cache_folder(context.workspace, number)
    with TemporaryDirectory(dir=folder.parent) as making:
        for _, arrays in sorted(parts, key=itemgetter(0)):
            append_to_cache(Path(making) / "cache", arrays)
        try:
            (Path(making) / "cache").rename(folder)
        except OSError:
            # A runner may do work twice; the first one's is as good.
            if not folder.is_dir():
                raise
    return ()


def _quietly(
    function: Callable[[PrepareContext, int, Report], object], context: PrepareContext, item: int
) -> Iterable[None]:
    function(context, item, _ignore)
    return ()


def _ignore(amount: int) -> None:
    pass


def _last_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[-1]


def _import_beam() -> Any:
    try:
        return importlib.import_module("apache_beam")
    except ImportError as error:
        raise ValueError(
            "runner='beam' must have its package. Received: an environment without apache-beam; "
            "`pip install albert_tf[beam]`."
        ) from error
