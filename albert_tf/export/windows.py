"""Windows of long texts in a TensorFlow graph, and where their tokens are in the text.

Letters: B texts, R windows of all texts, L sequence, T tokens of a text, N parts of all texts.
"""

import dataclasses
from collections.abc import Mapping

import tensorflow as tf

from albert_tf.tokenization.ragged import sums, take
from albert_tf.tokenization.splitting_graph import WHITE_SPACE

_SPACES = f"[{WHITE_SPACE}]*"


@dataclasses.dataclass(frozen=True)
class WindowTensors:
    """What TokenizerLayer returns with `doc_stride` and offsets, and what follows from it.

    Attributes:
        samples: index of the text of each window, int32 [R].
        position: position in the window of its first token of the text, int32 [R].
        count: number of tokens of the text in the window, int32 [R].
        start: which token of the text the first is, int32 [R].
        offsets: start and end of each token in bytes, int32 [R, L, 2].
    """

    samples: tf.Tensor
    position: tf.Tensor
    count: tf.Tensor
    start: tf.Tensor
    offsets: tf.Tensor

    @classmethod
    def of(cls, encoded: Mapping[str, tf.Tensor], max_length: int, doc_stride: int) -> "WindowTensors":
        """From the layer's outputs for texts, or for pairs, of which the second text is split."""
        samples = encoded["overflow_to_sample_mapping"]
        length, second = (tf.reduce_sum(encoded[name], axis=1) for name in ("attention_mask", "token_type_ids"))
        is_pair = second > 0
        count = tf.where(is_pair, second - 1, length - 2)
        position = tf.where(is_pair, length - second, 1)
        step = tf.minimum(max_length - 1 - position, doc_stride)
        number = tf.range(tf.size(samples)) - tf.searchsorted(samples, samples)
        return cls(samples, position, count, step * number, encoded["offsets"])

    def tokens(self) -> tuple[tf.Tensor, tf.Tensor]:
        """Which token of its text each one is, and whether it is one at all: int32 and bool [R, L]."""
        index = tf.range(tf.shape(self.offsets)[1]) - self.position[:, tf.newaxis]
        return self.start[:, tf.newaxis] + index, (index >= 0) & (index < self.count[:, tf.newaxis])

    def is_best(self) -> tf.Tensor:
        """Whether this window shows most of a token's surroundings, as `best_windows`: bool [R, L]."""
        tokens, is_token = self.tokens()
        index = tokens - self.start[:, tf.newaxis]
        count = self.count[:, tf.newaxis]
        shown = tf.cast(tf.minimum(index, count - 1 - index), tf.float64) + 0.01 * tf.cast(count, tf.float64)
        keys = self.keys()
        total = tf.reduce_max(keys) + 1
        most = tf.math.unsorted_segment_max(shown, tf.where(is_token, keys, -1), total)
        is_most = is_token & tf.equal(shown, tf.gather(most, tf.maximum(keys, 0)))
        rows = tf.broadcast_to(tf.range(tf.size(self.samples))[:, tf.newaxis], tf.shape(keys))
        first = tf.math.unsorted_segment_min(rows, tf.where(is_most, keys, -1), total)
        return is_most & tf.equal(rows, tf.gather(first, tf.maximum(keys, 0)))

    def keys(self) -> tf.Tensor:
        """A number for each token that is in order of texts and tokens: int64 [R, L]."""
        tokens, is_token = self.tokens()
        longest = tf.cast(tf.reduce_max(self.start + self.count) + 1, tf.int64)
        keys = tf.cast(self.samples[:, tf.newaxis], tf.int64) * longest + tf.cast(tokens, tf.int64)
        return tf.where(is_token, keys, 0)


def parts_of(texts: tf.RaggedTensor, samples: tf.Tensor, starts: tf.Tensor, ends: tf.Tensor) -> tf.Tensor:
    """Cuts parts out of texts, without copying the whole text for each part as `tf.strings.substr` does.

    Args:
        texts: the single bytes of each text, tf.string [B, (bytes)], see `bytes_of`.
        samples: index of the text of each part, int32 [N].
        starts, ends: in bytes, int32 [N].

    Returns:
        tf.string [N].
    """
    return tf.strings.reduce_join(take(texts, samples, starts, tf.maximum(ends - starts, 0)), axis=1)


def bytes_of(texts: tf.Tensor) -> tf.RaggedTensor:
    """The single bytes of texts: tf.string [B, (bytes)]."""
    return tf.strings.bytes_split(texts).with_row_splits_dtype(tf.int32)


def cut(
    texts: tf.RaggedTensor, samples: tf.Tensor, starts: tf.Tensor, ends: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """As `parts_of`, without surrounding white space.

    Returns:
        The parts, tf.string [N], and where they start and end, in characters, int32 [N].
    """
    part = parts_of(texts, samples, starts, ends)
    stripped = tf.strings.regex_replace(part, f"^{_SPACES}", "", replace_global=False)
    starts += tf.strings.length(part) - tf.strings.length(stripped)
    stripped = tf.strings.regex_replace(stripped, f"{_SPACES}$", "", replace_global=False)
    characters = sums(tf.strings.length(texts.values, unit="UTF8_CHAR"))  # 1 of the byte that begins one, else 0
    first = tf.gather(texts.row_starts(), samples)
    start = tf.gather(characters, first + starts) - tf.gather(characters, first)
    return stripped, start, start + tf.strings.length(stripped, unit="UTF8_CHAR")
