"""Step 1 of `prepare`: every document is tokenized once and cached on disk by shard, in bounded memory."""

import contextlib
import tempfile
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel, ConfigDict

from albert_tf.data.corpus import TokenizedDocuments, Vocabulary
from albert_tf.data.documents import Document, read_documents
from albert_tf.data.options import Objective, PrepareOptions
from albert_tf.data.shard_files import DOCUMENT_ARRAYS
from albert_tf.files.atomic import could_not_write, move
from albert_tf.files.urls import fetch, is_remote, process_folder
from albert_tf.tokenization import AlbertTokenizer

_BATCH_CHARACTERS = 2**20
_LONG_SENTENCE = 10_000  # characters
_MAX_SINGLE = 0.5  # of the documents
_MANY_SEGMENTS = 1000  # from which a single document is probably several texts
_MAX_UNKNOWN = 0.05  # with a vocabulary of the same language, less than 1 % of tokens are unknown
Arrays = Mapping[str, npt.NDArray]
Report = Callable[[int], None]  # called with numbers of bytes


def cut_segment(
    ids: npt.NDArray[np.int32], starts: npt.NDArray[np.bool_], max_tokens: int
) -> list[npt.NDArray[np.int32]]:
    """Splits a segment that is longer than an example, at word starts, into parts of at most a quarter of an example.

    Otherwise each example would use one window of a very long line and discard the rest.

    Example:

    >>> ids = np.arange(10, dtype=np.int32)
    >>> [part.tolist() for part in cut_segment(ids, ids % 2 == 0, max_tokens=9)]
    [[0, 1], [2, 3], [4, 5], [6, 7], [8, 9]]
    """
    if len(ids) <= max_tokens:
        return [ids]
    longest = max(max_tokens // 4, 1)
    word_starts = np.flatnonzero(np.append(True, starts[1:]))
    cuts = [0]
    while len(ids) - cuts[-1] > longest:
        last = word_starts[np.searchsorted(word_starts, cuts[-1] + longest, side="right") - 1]
        # Words longer than a part are cut, too.
        cuts.append(int(last) if last > cuts[-1] else cuts[-1] + longest)
    return np.split(ids, cuts[1:])


def tokenize_documents(
    documents: Sequence[Document], tokenizer: AlbertTokenizer, max_tokens: int | None = None
) -> TokenizedDocuments:
    """Tokenizes documents in one batch; segments and documents without tokens are dropped.

    With `max_tokens`, the number of tokens in an example, longer segments are split by `cut_segment`.
    """
    texts = [text for document in documents for text in document.sentences]
    encoded = iter(tokenizer.encode_batch(texts, num_threads=1))
    vocabulary = Vocabulary.of(tokenizer)
    segments, counts, keys = [], [], []
    for document in documents:
        parts = [next(encoded) for _ in document.sentences]
        if max_tokens is not None:
            parts = [cut for ids in parts for cut in cut_segment(ids, vocabulary.word_starts(ids), max_tokens)]
        parts = [ids for ids in parts if len(ids)]
        if parts:
            segments.extend(parts)
            counts.append(len(parts))
            keys.append(document.key)
    tokens = np.concatenate(segments) if segments else np.zeros(0, np.int32)
    return TokenizedDocuments.from_lengths(tokens, [len(ids) for ids in segments], counts, keys)


def split_by_shard(documents: TokenizedDocuments, num_shards: int) -> Iterator[tuple[int, Arrays]]:
    """Yields the number of each shard and the arrays of its documents, in order."""
    shards, of_document = np.unique(documents.document_keys % np.uint64(num_shards), return_inverse=True)
    segments, tokens = np.diff(documents.document_offsets), np.diff(documents.segment_offsets)
    of_segment = np.repeat(of_document, segments)
    parts = {
        "keys": _group(documents.document_keys, of_document),
        "documents": _group(segments, of_document),
        "segments": _group(tokens, of_segment),
        "tokens": _group(documents.tokens, np.repeat(of_segment, tokens)),
    }
    for index, shard in enumerate(shards):
        yield int(shard), {name: parts[name][index] for name in DOCUMENT_ARRAYS}


def _group(values: npt.NDArray, groups: npt.NDArray) -> list[npt.NDArray]:
    return np.split(values[np.argsort(groups, kind="stable")], np.cumsum(np.bincount(groups))[:-1])


def append_to_cache(folder: Path, arrays: Arrays) -> None:
    """Appends the arrays of `DOCUMENT_ARRAYS` to the cache in `folder`; raises OSError if the disk is full."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, dtype in DOCUMENT_ARRAYS.items():
            with (folder / name).open("ab") as file:
                file.write(np.asarray(arrays[name], dtype=dtype).tobytes())
    except OSError as error:
        raise could_not_write(folder, error) from None


def cache_arrays(folder: Path, drop_repeated: bool) -> dict[str, npt.NDArray]:
    """Memory-maps the arrays of a cache; where equal documents are left out but for the first, loads them."""
    arrays = {name: np.asarray(np.memmap(folder / name, dtype, "r")) for name, dtype in DOCUMENT_ARRAYS.items()}
    if not drop_repeated:
        return arrays
    documents = np.isin(np.arange(len(arrays["keys"])), np.unique(arrays["keys"], return_index=True)[1])
    segments = np.repeat(documents, arrays["documents"])
    tokens = np.repeat(segments, arrays["segments"])
    kept = {"keys": documents, "documents": documents, "segments": segments, "tokens": tokens}
    return {name: array[kept[name]] for name, array in arrays.items()}


class Counts(BaseModel):
    """Counts of the tokenized corpus, saved in the workspace.

    Args:
        documents, tokens: by shard.
        segments: in all shards.
        longest: segments of the longest document.
        repeated: documents whose text is that of an earlier one, whether these are left out or not.
        single: documents of one segment.
        unknown: number of unknown tokens.
    """

    model_config = ConfigDict(frozen=True)

    documents: tuple[int, ...]
    tokens: tuple[int, ...]
    segments: int
    longest: int
    repeated: int = 0
    single: int = 0
    unknown: int = 0


@dataclass(frozen=True)
class PrepareContext:
    """What every worker needs; sent to it once."""

    options: PrepareOptions
    tokenizer: AlbertTokenizer
    vocabulary: Vocabulary
    workspace: Path


def count_caches(workspace: Path, options: PrepareOptions, unknown_id: int) -> Counts:
    """Counts the contents of the caches of all shards."""
    documents, tokens = np.zeros((2, options.num_shards), np.int64)
    segments = longest = repeated = single = unknown = 0
    for shard in range(options.num_shards):
        if not cache_folder(workspace, shard).is_dir():
            continue
        with local_cache(workspace, shard) as folder:
            keys = cache_arrays(folder, drop_repeated=False)["keys"]
            repeated += len(keys) - len(np.unique(keys))
            arrays = cache_arrays(folder, options.drop_repeated)
            documents[shard], tokens[shard] = len(arrays["documents"]), len(arrays["tokens"])
            segments, longest = segments + len(arrays["segments"]), max(longest, int(arrays["documents"].max()))
            single += int((arrays["documents"] == 1).sum())
            for start in range(0, len(arrays["tokens"]), 2**20):  # does not load all memory-mapped tokens at once
                unknown += int((arrays["tokens"][start : start + 2**20] == unknown_id).sum())
    return Counts(
        documents=tuple(documents.tolist()),
        tokens=tuple(tokens.tolist()),
        segments=segments,
        longest=longest,
        repeated=repeated,
        single=single,
        unknown=unknown,
    )


def cache_folder(workspace: Path, shard: int) -> Path:
    """The folder of a shard's cache."""
    return workspace / "tokenized" / str(shard)


@contextlib.contextmanager
def local_cache(workspace: Path, shard: int) -> Iterator[Path]:
    """The folder of a shard's cache or, in a workspace behind a URL, a copy for the time of the block."""
    folder = cache_folder(workspace, shard)
    if not is_remote(folder):
        yield folder
        return
    with tempfile.TemporaryDirectory(dir=process_folder()) as copy:
        fetch(folder, DOCUMENT_ARRAYS, Path(copy))
        yield Path(copy)


@contextlib.contextmanager
def written_caches(workspace: Path) -> Iterator[Path]:
    """A workspace on disk to append caches in; those of one behind a URL are uploaded at the end."""
    if not is_remote(workspace):
        yield workspace
        return
    with tempfile.TemporaryDirectory(dir=process_folder()) as local:
        yield Path(local)
        move(Path(local), workspace)


def read_batches(
    files: Iterable[Path], options: PrepareOptions, report: Report = lambda amount: None
) -> Iterator[list[Document]]:
    """Yields the corpus in lists of documents, about a megabyte of text each; reports the bytes that were read."""
    batch, characters, warned = [], 0, False
    for file in files:
        reported = 0
        for document in read_documents(file, split=options.split_sentences, gap=options.document_gap):
            if not warned and not options.split_sentences:
                warned = _warn_of_long_sentence(file, document)
            batch.append(document)
            characters += sum(map(len, document.sentences))
            if characters >= _BATCH_CHARACTERS:
                report(document.end - reported)
                reported = document.end
                yield batch
                batch, characters = [], 0
        report(file.stat().st_size - reported)
    if batch:
        yield batch


def _warn_of_long_sentence(file: Path, document: Document) -> bool:
    """Warns of a sentence that is probably running text; returns whether there is one."""
    longest = max(document.sentences, key=len)
    if len(longest) <= _LONG_SENTENCE:
        return False
    warnings.warn(
        f"{file} has a line of {len(longest):,} characters ({longest[:40]!r} ...), which is treated as one sentence. "
        f"For running text set split_sentences=True (--split-sentences).",
        stacklevel=2,
    )
    return True


def tokenize_batch(context: PrepareContext, documents: list[Document]) -> TokenizedDocuments:
    """Tokenizes a batch of documents in a worker."""
    options = context.options
    return tokenize_documents(documents, context.tokenizer, None if options.reference_pairs else options.max_tokens)


def check_counts(counts: Counts, options: PrepareOptions) -> None:
    """Raises ValueError if the corpus is too small for the options."""
    if not sum(counts.tokens):
        raise ValueError(f"No text was found in {', '.join(map(str, options.inputs))}; give other files.")
    if (options.reference_pairs or options.objective is Objective.NEXT_SENTENCE) and 1 in counts.documents:
        raise ValueError(
            "Random partners are drawn from the other documents of a shard, but a shard has a single document "
            f"(documents in all: {sum(counts.documents)}). Use fewer shards or another objective."
        )
    if options.objective is not Objective.NONE and not options.reference_pairs and counts.longest < 2:
        raise ValueError(
            f"No document has two sentences to make a pair of (documents: {sum(counts.documents)}, sentences: "
            f"{counts.segments}). Put one sentence on each line, with blank lines between documents only, or set "
            f"split_sentences=True for running text."
        )


def warn_of_losses(counts: Counts, options: PrepareOptions) -> None:
    """Warns if the vocabulary hardly fits the corpus, or if most documents are too short for an example."""
    documents, needs_pairs = sum(counts.documents), options.objective is not Objective.NONE
    if needs_pairs and not options.reference_pairs and counts.single > _MAX_SINGLE * documents:
        warnings.warn(
            f"{counts.single:,} of {documents:,} documents have a single sentence, of which no pair can be made, so "
            f"they are left out. Put blank lines between documents only, or set split_sentences=True "
            f"(--split-sentences) for running text, or objective='none'.",
            stacklevel=3,
        )
    is_ordered = options.objective is Objective.SENTENCE_ORDER and options.document_gap
    if is_ordered and documents == 1 and counts.segments >= _MANY_SEGMENTS:
        warnings.warn(
            f"All {counts.segments:,} sentences are a single document, whose sentences are paired in their order. Put "
            f"blank lines between documents, or set objective='none' (--objective none) for unrelated lines, or "
            f"document_gap=0 (--document-gap 0) if each file is one document.",
            stacklevel=3,
        )
    unknown = counts.unknown / sum(counts.tokens)
    if unknown > _MAX_UNKNOWN:
        warnings.warn(
            f"{unknown:.0%} of the tokens are unknown to {options.tokenizer or 'the published English vocabulary'}; "
            f"give a `tokenizer` for their language, or train one on this text with `albert-tf train-tokenizer`.",
            stacklevel=3,
        )
