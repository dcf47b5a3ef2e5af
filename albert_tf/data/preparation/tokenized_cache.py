"""Step 1 of `prepare`: every document is read and tokenised once, and kept on disk by shard.

The tokenized cache holds documents between tokenising them once and making examples of them many times, so that memory
does not grow with the corpus.
"""

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel, ConfigDict

from albert_tf.atomic_files import could_not_write
from albert_tf.data.corpus import TokenizedDocuments, Vocabulary
from albert_tf.data.documents import Document, read_documents
from albert_tf.data.options import Objective, PrepareOptions
from albert_tf.data.shard_files import DOCUMENT_ARRAYS
from albert_tf.tokenization import AlbertTokenizer

_BATCH_CHARACTERS = 2**20
_MAX_USUAL_SENTENCE = 10_000  # characters
_UNKNOWN_SHARE = 0.05  # vocabularies of a text's own language leave less than a hundredth
Arrays = Mapping[str, npt.NDArray]
Report = Callable[[int], None]  # called with an amount of work that was done


def cut_segment(ids: npt.NDArray[np.int32], starts: npt.NDArray[np.bool_], room: int) -> list[npt.NDArray[np.int32]]:
    """Cuts a segment that does not fit an example into parts of at most a quarter of one, at starts of words.

    Without this, all of a very long line but one example's worth would be thrown away whenever it is used.

    Args:
        ids: int32 [T], one segment.
        starts: bool [T], True where a word starts.
        room: tokens that an example holds.

    Example:

    >>> ids = np.arange(10, dtype=np.int32)
    >>> [part.tolist() for part in cut_segment(ids, ids % 2 == 0, room=9)]
    [[0, 1], [2, 3], [4, 5], [6, 7], [8, 9]]
    """
    if len(ids) <= room:
        return [ids]
    largest = max(room // 4, 1)
    word_starts = np.flatnonzero(np.append(True, starts[1:]))
    cuts = [0]
    while len(ids) - cuts[-1] > largest:
        last = word_starts[np.searchsorted(word_starts, cuts[-1] + largest, side="right") - 1]
        # A single word longer than a part leaves no start of a word to cut at.
        cuts.append(int(last) if last > cuts[-1] else cuts[-1] + largest)
    return np.split(ids, cuts[1:])


def tokenize_documents(
    documents: Sequence[Document], tokenizer: AlbertTokenizer, room: int | None = None
) -> TokenizedDocuments:
    """Tokenises documents in one batch; segments and documents without tokens are left out.

    Args:
        documents: texts.
        tokenizer: turns sentences into ids.
        room: tokens that an example holds; longer segments are cut (see `cut_segment`). None leaves them whole.
    """
    texts = [text for document in documents for text in document.sentences]
    encoded = iter(tokenizer.encode_batch(texts, num_threads=1))
    vocabulary = Vocabulary.of(tokenizer)
    segments, counts, keys = [], [], []
    for document in documents:
        parts = [next(encoded) for _ in document.sentences]
        if room is not None:
            parts = [cut for ids in parts for cut in cut_segment(ids, vocabulary.word_starts(ids), room)]
        parts = [ids for ids in parts if len(ids)]
        if parts:
            segments.extend(parts)
            counts.append(len(parts))
            keys.append(document.key)
    tokens = np.concatenate(segments) if segments else np.zeros(0, np.int32)
    return TokenizedDocuments.from_lengths(tokens, [len(ids) for ids in segments], counts, keys)


def split_by_shard(documents: TokenizedDocuments, num_shards: int) -> Iterator[tuple[int, Arrays]]:
    """Yields shards and what goes to the cache of each, the documents in their order."""
    shards, of_document = np.unique(documents.document_keys % np.uint64(num_shards), return_inverse=True)
    segments, tokens = np.diff(documents.document_offsets), np.diff(documents.segment_offsets)
    of_segment = np.repeat(of_document, segments)
    parts = {
        "keys": _parts(documents.document_keys, of_document),
        "documents": _parts(segments, of_document),
        "segments": _parts(tokens, of_segment),
        "tokens": _parts(documents.tokens, np.repeat(of_segment, tokens)),
    }
    for place, shard in enumerate(shards):
        yield int(shard), {name: parts[name][place] for name in DOCUMENT_ARRAYS}


def _parts(values: npt.NDArray, places: npt.NDArray) -> list[npt.NDArray]:
    return np.split(values[np.argsort(places, kind="stable")], np.cumsum(np.bincount(places))[:-1])


def append_to_cache(folder: Path, arrays: Arrays) -> None:
    """Appends the arrays that `DOCUMENT_ARRAYS` names to the cache in `folder`."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, dtype in DOCUMENT_ARRAYS.items():
            with (folder / name).open("ab") as file:
                file.write(np.asarray(arrays[name], dtype=dtype).tobytes())
    except OSError as error:
        raise could_not_write(folder, error) from None


def cache_arrays(folder: Path) -> dict[str, npt.NDArray]:
    """Maps the arrays of a cache that holds at least one document into memory."""
    return {name: np.asarray(np.memmap(folder / name, dtype, "r")) for name, dtype in DOCUMENT_ARRAYS.items()}


def load_cache(folder: Path) -> TokenizedDocuments:
    """The documents of such a cache."""
    arrays = cache_arrays(folder)
    return TokenizedDocuments.from_lengths(arrays["tokens"], arrays["segments"], arrays["documents"], arrays["keys"])


class Counts(BaseModel):
    """What step 1 found, kept in the workspace; documents and tokens by shard, and how many tokens are unknown."""

    model_config = ConfigDict(frozen=True)

    documents: tuple[int, ...]
    tokens: tuple[int, ...]
    segments: int
    longest: int
    unknown: int = 0


@dataclass(frozen=True)
class PrepareContext:
    """What every worker process needs."""

    options: PrepareOptions
    tokenizer: AlbertTokenizer
    vocabulary: Vocabulary
    workspace: Path


def count_caches(workspace: Path, num_shards: int, unknown_id: int) -> Counts:
    documents, tokens = np.zeros((2, num_shards), np.int64)
    segments = longest = unknown = 0
    for shard in range(num_shards):
        folder = cache_folder(workspace, shard)
        if folder.is_dir():
            arrays = cache_arrays(folder)
            documents[shard], tokens[shard] = len(arrays["documents"]), len(arrays["tokens"])
            segments, longest = segments + len(arrays["segments"]), max(longest, int(arrays["documents"].max()))
            unknown += _count_tokens(folder, unknown_id)
    return Counts(
        documents=tuple(documents.tolist()),
        tokens=tuple(tokens.tolist()),
        segments=segments,
        longest=longest,
        unknown=unknown,
    )


def _count_tokens(folder: Path, token_id: int) -> int:
    """How often a token is in a cache, of which little is in memory at once."""
    count = 0
    with (folder / "tokens").open("rb") as file:
        while len(block := np.fromfile(file, DOCUMENT_ARRAYS["tokens"], 2**20)):
            count += int((block == token_id).sum())
    return count


def cache_folder(workspace: Path, shard: int) -> Path:
    return workspace / "tokenized" / str(shard)


def read_batches(files: Iterable[Path], options: PrepareOptions, report: Report) -> Iterator[list[Document]]:
    """Yields the corpus in lists of documents, about a megabyte of text each."""
    batch, characters, hinted = [], 0, False
    for file in files:
        reported = 0
        for document in read_documents(file, split=options.split_sentences, gap=options.document_gap):
            if not hinted and not options.split_sentences:
                hinted = _hint_at_splitting(file, document)
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


def _hint_at_splitting(file: Path, document: Document) -> bool:
    """Warns of a sentence that is rather a page of running text; returns whether there is one."""
    longest = max(document.sentences, key=len)
    if len(longest) <= _MAX_USUAL_SENTENCE:
        return False
    warnings.warn(
        f"{file} has a line of {len(longest):,} characters ({longest[:40]!r} ...), which is taken as one sentence. For "
        f"running text set split_sentences=True (--split-sentences).",
        stacklevel=2,
    )
    return True


def tokenize_batch(context: PrepareContext, documents: list[Document], report: Report) -> TokenizedDocuments:
    """Tokenises a few documents."""
    options = context.options
    return tokenize_documents(documents, context.tokenizer, None if options.reference_pairs else options.room)


def check_counts(counts: Counts, options: PrepareOptions) -> None:
    """Raises ValueError where no example, or not every example, could be made of the corpus."""
    received = f"Received: {sum(counts.documents)} documents with {counts.segments} sentences"
    if not sum(counts.tokens):
        raise ValueError(f"No text was found in {', '.join(map(str, options.inputs))}. {received}; give other files.")
    if (options.reference_pairs or options.objective is Objective.NEXT_SENTENCE) and 1 in counts.documents:
        raise ValueError(
            f"Every shard must hold at least two documents, to draw random partners from. {received}, "
            f"and a shard with one of them. Use fewer shards or another objective."
        )
    if options.objective is not Objective.NONE and not options.reference_pairs and counts.longest < 2:
        raise ValueError(
            f"At least one document must have two sentences, to make pairs of. {received}. "
            f"Put one sentence on each line, with empty lines between documents only, or set split_sentences=True for "
            f"running text."
        )


def warn_of_unknown(counts: Counts, options: PrepareOptions) -> None:
    """Warns where the vocabulary is hardly that of the texts."""
    share, vocabulary = counts.unknown / sum(counts.tokens), options.tokenizer or "the published English vocabulary"
    if share > _UNKNOWN_SHARE:
        warnings.warn(
            f"A vocabulary should know its texts. Received: {share:.0%} of tokens unknown to {vocabulary}; give one of "
            "their language by `tokenizer`, or make it of the texts by `albert-tf train-tokenizer`.",
            stacklevel=3,
        )
