"""Special tokens in text: with `allow_special` a literal "[MASK]" becomes its id."""

import re
from collections.abc import Callable, Sequence

import numpy as np

from albert_tf.tokenization.interface import EncodedWithOffsets, PieceModel, raise_not_text

_NO_OFFSETS = np.zeros((0, 2), np.int32)


class SplitAtSpecialTokens:
    """Splits texts at special tokens and encodes the parts in between with a piece model.

    A part that follows a special token without white space continues its word, as "s" in "[MASK]s": its first piece is
    replaced by the piece without the word start, if there is one.
    """

    def __init__(self, model: PieceModel):
        self._model = model
        self._special = model.special_tokens()
        literals = "|".join(map(re.escape, self._special.ids))
        self._pattern, self._bytes_pattern = re.compile(f"({literals})"), re.compile(f"({literals})".encode())

    def encode_batch(self, texts: Sequence[str | bytes], num_threads: int | None = None) -> list[np.ndarray]:
        parts = [self._split(text, index) for index, text in enumerate(texts)]
        rows = iter(self._model.encode_batch([part for row in parts for part in row[::2]], num_threads))
        return [self._join(row, lambda _: EncodedWithOffsets(next(rows), _NO_OFFSETS)).ids for row in parts]

    def encode_with_offsets(self, text: str | bytes) -> EncodedWithOffsets:
        return self._join(self._split(text), self._model.encode_with_offsets)

    def _split(self, text: str | bytes, index: int = 0) -> list[str] | list[bytes]:
        """Returns parts of the text and, at odd indices, special tokens."""
        if isinstance(text, bytes):
            return self._bytes_pattern.split(text)
        return self._pattern.split(text) if isinstance(text, str) else raise_not_text(text, index)

    def _join(
        self, parts: Sequence[str | bytes], encode: Callable[[str | bytes], EncodedWithOffsets]
    ) -> EncodedWithOffsets:
        ids, offsets, start = [], [], 0
        for index, part in enumerate(parts):
            if index % 2:
                special = self._special.ids[part.decode() if isinstance(part, bytes) else part]
                one = EncodedWithOffsets(np.array([special], np.int32), np.array([[0, len(part)]], np.int32))
            else:
                one = encode(part)
                one = self._continue_word(one) if index and not _begins_with_space(part) else one
            ids.append(one.ids)
            offsets.append(one.offsets + np.int32(start))
            start += len(part)
        return EncodedWithOffsets(np.concatenate(ids), np.concatenate(offsets))

    def _continue_word(self, encoded: EncodedWithOffsets) -> EncodedWithOffsets:
        if self._special.inside_words is None or not len(encoded.ids):
            return encoded
        first = self._special.inside_words[encoded.ids[:1]]
        kept = slice(int(first[0] < 0), None)
        return EncodedWithOffsets(np.concatenate([first, encoded.ids[1:]])[kept], encoded.offsets[kept])


def _begins_with_space(part: str | bytes) -> bool:
    first = part[:4].decode(errors="replace") if isinstance(part, bytes) else part
    return first[:1].isspace()
