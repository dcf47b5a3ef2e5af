"""Tokens that a text is split at: special tokens with `allow_special`, and tokens added to a vocabulary."""

import itertools
import operator
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from albert_tf.tokenization.interface import EncodedWithOffsets, SpecialTokens, VocabularyModel, as_text

_NO_OFFSETS = np.zeros((0, 2), np.int32)


class Encoder(Protocol):
    """What a text is split in front of: a piece model, or another `SplitAtTokens`."""

    def encode_batch(self, texts: Sequence[str | bytes], num_threads: int | None = None) -> list[np.ndarray]: ...
    def encode_with_offsets(self, text: str | bytes) -> EncodedWithOffsets: ...
    def tokenize(self, text: str | bytes) -> list[str]: ...


@dataclass(frozen=True)
class _Part:
    """A part of a text: a token, or text between tokens, whose `token` is None."""

    text: str | bytes
    token: str | None = None


class SplitAtTokens:
    """Splits texts at tokens and encodes the parts in between with a piece model.

    At each position the longest token is taken.

    Args:
        model: encodes what is between tokens.
        tokens: ids by token as it is written in a text, or in a cleaned text with `cleaned_by`. With `inside_words`, a
            part that follows a token without white space continues its word, as "s" in "[MASK]s": its first piece is
            replaced by the piece without the word start, if there is one.
        names: of tokens that are written differently in a cleaned text, what `tokenize` calls them.
        cleaned_by: the piece model after whose clean-up tokens are matched; a token is made of whole characters of the
            original text. None: tokens are matched in the original text.
    """

    def __init__(
        self,
        model: Encoder,
        tokens: SpecialTokens,
        names: Mapping[str, str] | None = None,
        cleaned_by: VocabularyModel | None = None,
    ):
        self._model = model
        self._names = names or {}
        self._tokens = tokens
        self._cleaned_by = cleaned_by
        self._pattern = re.compile(pattern_of(tokens.ids))

    def encode_batch(self, texts: Sequence[str | bytes], num_threads: int | None = None) -> list[np.ndarray]:
        parts = list(map(self._split, texts))
        between = [part.text for row in parts for part in row if part.token is None]
        rows = iter(self._model.encode_batch(between, num_threads))
        if len(between) == len(parts):  # no text has a token
            return list(rows)
        return [self._join(row, lambda _: EncodedWithOffsets(next(rows), _NO_OFFSETS)).ids for row in parts]

    def encode_with_offsets(self, text: str | bytes) -> EncodedWithOffsets:
        return self._join(self._split(text), self._model.encode_with_offsets)

    def tokenize(self, text: str | bytes) -> list[str]:
        rows = (
            [self._names.get(part.token, part.token)] if part.token else self._model.tokenize(part.text)
            for part in self._split(text)
        )
        return [piece for row in rows for piece in row]

    def _split(self, text: str | bytes) -> list[_Part]:
        """Returns parts of the text: every second one is a token."""
        written, parts, start = as_text(text), [], 0
        for begin, end, token in self._find(written):
            parts += [_Part(written[start:begin]), _Part(written[begin:end], token)]
            start = end
        parts.append(_Part(written[start:]))
        if isinstance(text, bytes):
            parts = [_Part(part.text.encode("utf-8", "surrogateescape"), part.token) for part in parts]
        return parts

    def _find(self, text: str) -> Iterator[tuple[int, int, str]]:
        """Start, end and name of each token."""
        if self._cleaned_by is None:
            yield from ((*match.span(), match[0]) for match in self._pattern.finditer(text))
            return
        cleaned, origins = self._cleaned_by.clean(text)
        for match in self._pattern.finditer(cleaned):
            start, end = match.span()
            if (not start or origins[start - 1] < origins[start]) and origins[end - 1] < origins[end]:
                yield int(origins[start]), int(origins[end]), match[0]

    def _join(self, parts: Sequence[_Part], encode: Callable[[str | bytes], EncodedWithOffsets]) -> EncodedWithOffsets:
        ids, offsets, start = [], [], 0
        for index, part in enumerate(parts):
            if part.token is not None:
                token = self._tokens.ids[part.token]
                one = EncodedWithOffsets(np.array([token], np.int32), np.array([[0, len(part.text)]], np.int32))
            else:
                one = encode(part.text)
                one = self._continue_word(one) if index and not _begins_with_space(part.text) else one
            ids.append(one.ids)
            offsets.append(one.offsets + np.int32(start))
            start += len(part.text)
        return EncodedWithOffsets(np.concatenate(ids), np.concatenate(offsets))

    def _continue_word(self, encoded: EncodedWithOffsets) -> EncodedWithOffsets:
        if self._tokens.inside_words is None or not len(encoded.ids):
            return encoded
        first = self._tokens.inside_words[encoded.ids[:1]]
        used = slice(int(first[0] < 0), None)
        return EncodedWithOffsets(np.concatenate([first, encoded.ids[1:]])[used], encoded.offsets[used])


def pattern_of(tokens: Iterable[str]) -> str:
    """A regular expression, for Python and TensorFlow, that matches the longest of the tokens at a position.

    Tokens with the same beginning share it, so that the time does not grow with the number of tokens.

    >>> pattern_of(["[E1]", "x", "[E"])
    '((?:\\\\[E(?:1\\\\])?|x))'
    """
    return f"({_alternatives(sorted(set(tokens)))})"


def _alternatives(tokens: list[str]) -> str:
    """An expression for sorted tokens; of those that begin alike, the longest is tried first."""
    shared = os.path.commonprefix(tokens)  # noqa: RUF071 (characters are meant)
    ends = [token[len(shared) :] for token in tokens]
    groups = [list(group) for _, group in itertools.groupby(filter(None, ends), key=operator.itemgetter(0))]
    choices = f"(?:{'|'.join(map(_alternatives, groups))})" if groups else ""
    return re.escape(shared) + choices + ("?" if groups and "" in ends else "")


def _begins_with_space(part: str | bytes) -> bool:
    first = part[:4].decode(errors="replace") if isinstance(part, bytes) else part
    return first[:1].isspace()
