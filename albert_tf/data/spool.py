"""Step 1 of `prepare`: every document is read and tokenised once, and kept on disk by shard.

A spool holds tokenised documents between tokenising them once and making examples of them many times, so that memory
does not grow with the corpus.
"""

import shutil
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel, ConfigDict

from albert_tf.data.corpus import TokenizedDocuments, Vocabulary, tokenize_documents
from albert_tf.data.document_shards import ARRAYS
from albert_tf.data.documents import Document, read_documents
from albert_tf.data.folders import Workspace
from albert_tf.data.options import Objective, PrepareOptions
from albert_tf.data.progress import Reporter
from albert_tf.data.shards import explain_disk_errors
from albert_tf.data.workers import Report, Workers
from albert_tf.tokenization import AlbertTokenizer

_BATCH_BYTES = 2**20


def append_to_spool(folder: Path, documents: TokenizedDocuments, rows: npt.ArrayLike) -> None:
    """Appends the documents at `rows` to the spool in `folder`."""
    with explain_disk_errors(folder), ExitStack() as stack:
        folder.mkdir(parents=True, exist_ok=True)
        files = {name: stack.enter_context((folder / name).open("ab")) for name in ARRAYS}
        for row in np.atleast_1d(rows):
            first, stop = documents.document_offsets[row : row + 2]
            offsets = documents.segment_offsets[first : stop + 1]
            record = {
                "tokens": documents.tokens[offsets[0] : offsets[-1]],
                "segments": np.diff(offsets),
                "documents": stop - first,
                "keys": documents.document_keys[row],
            }
            for name, dtype in ARRAYS.items():
                files[name].write(np.asarray(record[name], dtype=dtype).tobytes())


def spool_arrays(folder: Path) -> dict[str, npt.NDArray]:
    """Maps the arrays of a spool that holds at least one document into memory."""
    return {name: np.asarray(np.memmap(folder / name, dtype, "r")) for name, dtype in ARRAYS.items()}


def load_spool(folder: Path) -> TokenizedDocuments:
    """The documents of such a spool."""
    arrays = spool_arrays(folder)
    return TokenizedDocuments.from_lengths(arrays["tokens"], arrays["segments"], arrays["documents"], arrays["keys"])


class Counts(BaseModel):
    """What step 1 found, kept in the workspace; documents and tokens by shard."""

    model_config = ConfigDict(frozen=True)

    documents: tuple[int, ...]
    tokens: tuple[int, ...]
    segments: int
    longest: int


@dataclass(frozen=True)
class PrepareContext:
    """What every worker process needs."""

    options: PrepareOptions
    tokenizer: AlbertTokenizer
    vocabulary: Vocabulary
    workspace: Path


def spool_corpus(
    workers: Workers[PrepareContext],
    files: list[Path],
    options: PrepareOptions,
    workspace: Workspace,
    reporter: Reporter,
) -> Counts:
    """Tokenises the corpus into one spool a shard."""
    shutil.rmtree(workspace.folder / "spool", ignore_errors=True)
    reporter.start("tokenize", sum(file.stat().st_size for file in files))
    documents, tokens = np.zeros((2, options.num_shards), np.int64)
    segments = longest = 0
    batches = _batches(files, options, reporter.add)
    for batch in workers.map(_tokenize, batches, reporter.add):
        shards = (batch.document_keys % np.uint64(options.num_shards)).astype(np.int64)
        for shard in np.unique(shards):
            append_to_spool(spool_folder(workspace.folder, shard), batch, np.flatnonzero(shards == shard))
        documents += np.bincount(shards, minlength=options.num_shards)
        np.add.at(tokens, shards, np.diff(batch.segment_offsets[batch.document_offsets]))
        segments += len(batch.segment_offsets) - 1
        longest = max(longest, int(np.diff(batch.document_offsets).max(initial=0)))
    counts = Counts(
        documents=tuple(documents.tolist()), tokens=tuple(tokens.tolist()), segments=segments, longest=longest
    )
    workspace.remember("counts", counts)
    return counts


def spool_folder(workspace: Path, shard: int) -> Path:
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


def _tokenize(context: PrepareContext, documents: list[Document], report: Report) -> TokenizedDocuments:
    options = context.options
    return tokenize_documents(documents, context.tokenizer, None if options.reference_pairs else options.room)


def check_counts(counts: Counts, options: PrepareOptions) -> None:
    """Raises ValueError where no example, or not every example, could be made of the corpus."""
    received = f"Received: {sum(counts.documents)} documents with {counts.segments} sentences"
    if not sum(counts.tokens):
        raise ValueError(f"The input files must hold text. {received}. Check that they are the right files.")
    if options.reference_pairs or options.objective is Objective.NEXT_SENTENCE:
        if 1 in counts.documents:
            raise ValueError(
                f"Every shard must hold at least two documents, to draw random partners from. {received}, "
                f"and a shard with one of them. Use fewer shards or another objective."
            )
    elif options.objective is Objective.SENTENCE_ORDER and counts.longest < 2:
        raise ValueError(
            f"At least one document must have two sentences, to make pairs of. {received}. "
            f"Put one sentence on each line, with empty lines between documents only, or set split_sentences=True for "
            f"running text."
        )
