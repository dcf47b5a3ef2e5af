"""Tokenised documents as flat arrays: every segment and every example is a slice of one array of token ids.

A segment is a sentence (a line) in tokens. Letters: T tokens, M segments, N documents.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
import numpy.typing as npt

from albert_tf.data.documents import Document
from albert_tf.tokenization import AlbertTokenizer, mark_word_starts


@dataclass(frozen=True)
class Vocabulary:
    """What making examples needs to know of a tokenizer; the fields are attributes of it."""

    vocab_size: int
    vocab_hash: str
    pad_token_id: int
    cls_token_id: int
    sep_token_id: int
    mask_token_id: int
    start_of_word: npt.NDArray[np.bool_]  # [V]
    end_of_word: npt.NDArray[np.bool_]  # [V]

    @classmethod
    def of(cls, tokenizer: AlbertTokenizer) -> "Vocabulary":
        """Takes the facts from a tokenizer."""
        return cls(**{field.name: getattr(tokenizer, field.name) for field in fields(cls)})

    def word_starts(self, ids: npt.NDArray[np.int32]) -> npt.NDArray[np.bool_]:
        """Tells where words begin in rows of ids: bool, like `ids`."""
        return mark_word_starts(ids, self.start_of_word, self.end_of_word)


@dataclass(frozen=True)
class TokenizedDocuments:
    """Documents in one array of tokens.

    Args:
        tokens: int32 [T], may be memory-mapped.
        segment_offsets: int64 [M + 1]; segment m is `tokens[segment_offsets[m] : segment_offsets[m + 1]]`, never empty.
        document_offsets: int64 [N + 1]; document n has segments `document_offsets[n]` up to `document_offsets[n + 1]`.
        document_keys: uint64 [N], a hash of each document's text.
    """

    tokens: npt.NDArray[np.int32]
    segment_offsets: npt.NDArray[np.int64]
    document_offsets: npt.NDArray[np.int64]
    document_keys: npt.NDArray[np.uint64]

    @classmethod
    def from_lengths(
        cls,
        tokens: npt.NDArray[np.int32],
        segment_lengths: npt.ArrayLike,
        segments_per_document: npt.ArrayLike,
        document_keys: npt.ArrayLike,
    ) -> "TokenizedDocuments":
        """Builds the offsets from lengths."""
        return cls(
            tokens,
            np.concatenate([[0], np.cumsum(segment_lengths, dtype=np.int64)]),
            np.concatenate([[0], np.cumsum(segments_per_document, dtype=np.int64)]),
            np.asarray(document_keys, dtype=np.uint64),
        )

    def __len__(self) -> int:
        return len(self.document_keys)


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
