"""Tokenized documents as flat arrays: every segment and every example is a slice of one array of token ids.

A segment is a tokenized sentence (one line). Letters: T tokens, M segments, N documents, V vocabulary, L sequence.
"""

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from albert_tf.tokenization import AlbertTokenizer


@dataclass(frozen=True)
class Vocabulary:
    """The attributes of a tokenizer that examples are made with."""

    vocab_size: int
    vocab_hash: str
    pad_token_id: int
    cls_token_id: int
    sep_token_id: int
    mask_token_id: int
    start_of_word: npt.NDArray[np.bool_]  # [V]
    end_of_word: npt.NDArray[np.bool_]  # [V]

    @classmethod
    def of(cls, tokenizer: "AlbertTokenizer") -> "Vocabulary":
        """Copies the attributes of a tokenizer."""
        return cls(**{field.name: getattr(tokenizer, field.name) for field in fields(cls)})

    def word_starts(self, ids: npt.NDArray[np.int32]) -> npt.NDArray[np.bool_]:
        """Marks the ids [..., L] that start a word: bool [..., L].

        Their piece is marked as a word start, or the piece before it as a word end.
        """
        starts = self.start_of_word[ids]
        starts[..., 1:] |= self.end_of_word[ids[..., :-1]]
        return starts


@dataclass(frozen=True)
class TokenizedDocuments:
    """Documents concatenated into one array of tokens.

    Args:
        tokens: int32 [T], possibly memory-mapped.
        segment_offsets: int64 [M + 1]; segment m is `tokens[segment_offsets[m] : segment_offsets[m + 1]]`, never empty.
        document_offsets: int64 [N + 1]; document n has segments `document_offsets[n]` up to `document_offsets[n + 1]`.
        document_keys: uint64 [N], hash of each document's text.
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
        """Computes the offsets from lengths."""
        return cls(
            tokens,
            np.concatenate([[0], np.cumsum(segment_lengths, dtype=np.int64)]),
            np.concatenate([[0], np.cumsum(segments_per_document, dtype=np.int64)]),
            np.asarray(document_keys, dtype=np.uint64),
        )

    def __len__(self) -> int:
        return len(self.document_keys)
