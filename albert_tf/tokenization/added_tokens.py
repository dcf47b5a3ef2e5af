"""Tokens added to a vocabulary, such as "[E1]" or the words of a domain, with the ids that follow those of its pieces.

They are those of transformers: a text is split at added tokens first, and each part in between is a text of its own.
"""

import hashlib
import itertools
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np

from albert_tf.files.urls import location
from albert_tf.tokenization.added_tokens_files import write_added_tokens
from albert_tf.tokenization.interface import (
    AddedToken,
    EncodedWithOffsets,
    PiecesInGraph,
    SpecialTokens,
    VocabularyModel,
)
from albert_tf.tokenization.splitting import Encoder, SplitAtTokens


class AddedTokensModel:
    """A piece model with added tokens; see `PieceModel` for its members.

    Args:
        model: the piece model.
        tokens: the added tokens in order of their ids.

    Raises:
        ValueError: after the clean-up, nothing is left of a token, or it is equal to another one.
    """

    def __init__(self, model: VocabularyModel, tokens: Sequence[AddedToken]):
        self._model, self.tokens = model, tuple(tokens)
        self._size = len(model.pieces)
        self.source, self.options, self.special = model.source, model.options, model.special
        self.pieces = (*model.pieces, *(token.content for token in tokens))
        written: dict[bool, dict[str, int]] = {False: {}, True: {}}
        for index, token in enumerate(tokens, self._size):
            text = self._written(token)
            if text in written[token.normalized]:
                raise ValueError(
                    f"Added tokens must differ after the clean-up. Received: {token.content!r}, which becomes {text!r} "
                    f"like {self.pieces[written[token.normalized][text]]!r}; leave one out, or pass "
                    "normalized=False."
                )
            written[token.normalized][text] = index
        self._cleaned, self._exact = SpecialTokens(written[True]), SpecialTokens(written[False])
        # As in transformers, those that are matched exactly come first.
        self._encoder: Encoder = model
        if self._cleaned.ids:
            names = {text: self.pieces[index] for text, index in self._cleaned.ids.items()}
            self._encoder = SplitAtTokens(self._encoder, self._cleaned, names, model)
        if self._exact.ids:
            self._encoder = SplitAtTokens(self._encoder, self._exact)

    def _written(self, token: AddedToken) -> str:
        """What is looked for in texts."""
        text = self._model.clean(token.content)[0] if token.normalized else token.content
        if not text.strip():
            raise ValueError(
                f"Something must be left of an added token after the clean-up. Received: {token.content!r}; pass "
                "normalized=False."
            )
        return text

    def with_tokens(self, tokens: Iterable[AddedToken]) -> "AddedTokensModel":
        """The model with these tokens added, without those that are pieces or added tokens already."""
        known, fresh = set(self.pieces), {}
        for token in tokens:
            if token.content not in known:
                fresh.setdefault(token.content, token)
        return AddedTokensModel(self._model, (*self.tokens, *fresh.values()))

    def encode_batch(self, texts: Sequence[str | bytes], num_threads: int | None = None) -> list[np.ndarray]:
        return self._encoder.encode_batch(texts, num_threads)

    def encode_with_offsets(self, text: str | bytes) -> EncodedWithOffsets:
        return self._encoder.encode_with_offsets(text)

    def tokenize(self, text: str | bytes) -> list[str]:
        return self._encoder.tokenize(text)

    def decode(self, ids: list[int]) -> str:
        groups = itertools.groupby(ids, key=lambda index: index if index >= self._size else -1)
        parts = (
            self._model.decode(list(group)) if token < 0 else " ".join(self.pieces[index] for index in group)
            for token, group in groups
        )
        return " ".join(filter(None, parts))

    def in_graph(self, *, with_offsets: bool = False) -> PiecesInGraph:
        # Imported here, because nothing else needs TensorFlow.
        from albert_tf.tokenization.splitting_graph import SplitInGraph

        pieces = self._model.in_graph(with_offsets=with_offsets)
        if self._cleaned.ids:
            pieces = SplitInGraph(pieces, self._cleaned, self._model.clean_in_graph())
        return SplitInGraph(pieces, self._exact) if self._exact.ids else pieces

    def special_tokens(self) -> SpecialTokens:
        special = self._model.special_tokens()
        if special.inside_words is None:
            return special
        added = np.arange(self._size, len(self.pieces), dtype=np.int32)
        return SpecialTokens(special.ids, np.concatenate([special.inside_words, added]))

    def hash_vocabulary(self) -> str:
        parts = [self._model.hash_vocabulary(), *(str(asdict(token)) for token in self.tokens)]
        return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()

    def find_word_starts(self) -> np.ndarray:
        return np.concatenate([self._model.find_word_starts(), np.ones(len(self.tokens), bool)])

    def find_word_ends(self) -> np.ndarray:
        ends = self._model.find_word_ends()  # none at all if pieces do not mark the ends of words
        return np.concatenate([ends, np.full(len(self.tokens), ends.any())])

    def save(self, folder: str | Path) -> None:
        self._model.save(folder)
        write_added_tokens(location(folder), self.tokens, self._size)

    def __reduce__(self):
        return AddedTokensModel, (self._model, self.tokens)
