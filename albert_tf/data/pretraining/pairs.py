"""Makes sentence pairs of segments: the slices of the corpus that form each example, and its label.

All passes over all documents advance together, one chunk per step, so that a step takes a few array operations however
many documents there are. Letters: A lanes (a lane is one pass over one document), X examples.

Deliberate differences from the reference:

1. A chunk has at least two segments, and a single last segment is paired with the one before it. The reference pairs
   a single segment with a random document and labels it 1, whatever the objective: at length 128, 60 % of the labels
   are then 1, and most can be predicted from the topic, which sentence order is meant to prevent. Splitting the segment
   would leak the label as well, since swapped halves start in mid-sentence. A document of one segment therefore makes
   no example. `reference_pairs=True` restores the reference's rule.
2. A segment that is too long is truncated at both ends, and one uniform draw divides the excess between them. The
   reference draws the end for each token, which nearly always keeps the middle of long segments.
3. The random partner is always another document; the reference may take the same one after ten attempts.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from enum import IntEnum

import numpy as np
import numpy.typing as npt

from albert_tf.data.corpus import TokenizedDocuments
from albert_tf.data.options import ExampleOptions, Objective
from albert_tf.data.prng import Keys, bernoulli, fold_in, random_bits, splitmix64, uniform_int, uniform_int_low

Ints = npt.NDArray[np.int64]


class Counter(IntEnum):
    """Counters of the random draws from the key of a lane or an example."""

    LENGTH = 0
    SPLIT = 1
    COIN = 2
    PARTNER = 3
    CUT = 4
    SHUFFLE = 5


@dataclass(frozen=True)
class Pairs:
    """Pairs of segments, all arrays [X]; starts and lengths refer to the tokens of the corpus.

    Args:
        passes: index of the pass.
        keys: random key of the example.
        first_start, first_length: the segment after [CLS].
        second_start, second_length: the segment after [SEP]; of length 0 with the objective "none".
        labels: see `Objective`.
    """

    passes: Ints
    keys: Keys
    first_start: Ints
    first_length: Ints
    second_start: Ints
    second_length: Ints
    labels: Ints

    def __len__(self) -> int:
        return len(self.keys)

    def take(self, rows: npt.NDArray | slice) -> "Pairs":
        """Returns the examples at `rows`."""
        return Pairs(*(getattr(self, field.name)[rows] for field in fields(self)))

    @staticmethod
    def concatenate(parts: "Sequence[Pairs]") -> "Pairs":
        """Returns the examples of all parts, of which there is at least one."""
        return Pairs(*(np.concatenate([getattr(part, field.name) for part in parts]) for field in fields(Pairs)))

    def shuffled(self) -> "Pairs":
        """Returns the examples ordered by pass, each pass in random order."""
        return self.take(np.lexsort((random_bits(self.keys, Counter.SHUFFLE), self.passes)))


def make_pairs(documents: TokenizedDocuments, passes: npt.ArrayLike, options: ExampleOptions) -> Pairs:
    """Makes the pairs of every document, for each pass.

    Args:
        documents: the corpus, or the shard that partners are drawn from.
        passes: indices of the passes.
        options: see `ExampleOptions`.

    Returns:
        Pairs grouped by step. Example k of pass e of a document depends only on the seed, the document's text, e and k;
        random partners also depend on the other documents.

    Raises:
        ValueError: partners are needed and there is only one document.
    """
    needs_partners = options.reference_pairs or options.objective is Objective.NEXT_SENTENCE
    if needs_partners and len(documents) == 1:
        raise ValueError(
            "`documents` must hold at least two documents to draw random partners from. Received: one document. "
            "Add documents or choose another objective."
        )
    steps = list(_Chunks(documents, np.atleast_1d(passes), options))
    if not steps:
        empty = np.zeros(0, np.int64)
        return Pairs(empty, empty.astype(np.uint64), empty, empty, empty, empty, empty)
    return _truncate(Pairs.concatenate(steps), options.max_tokens)


class _Chunks:
    """Iterates over steps; yields the next pair, not yet truncated, of every lane that is not finished."""

    def __init__(self, documents: TokenizedDocuments, passes: npt.NDArray, options: ExampleOptions):
        self.documents = documents
        self.options = options
        lanes = len(documents) * len(passes)
        self.document = np.arange(lanes) % max(len(documents), 1)
        self.passes = np.repeat(passes.astype(np.int64), len(documents))
        self.keys = fold_in(fold_in(splitmix64(options.seed), documents.document_keys[self.document]), self.passes)
        self.first = documents.document_offsets[self.document]
        self.stop = documents.document_offsets[self.document + 1]
        self.target = _target_lengths(self.keys, options)

    def __iter__(self):
        lanes, cursor, step = np.arange(len(self.keys)), self.first, 0
        while len(lanes):
            begin, end = self._next_chunk(lanes, cursor)
            pairs, cursor = self._pair(lanes, step, cursor, begin, end)
            # The only segment of a document cannot be paired.
            paired = np.minimum(pairs.first_length, pairs.second_length) > 0
            yield pairs.take(paired | (self.options.objective is Objective.NONE))
            unfinished = cursor < self.stop[lanes]
            lanes, cursor, step = lanes[unfinished], cursor[unfinished], step + 1

    def _next_chunk(self, lanes: Ints, cursor: Ints) -> tuple[Ints, Ints]:
        """Returns the segments [begin, end) of each lane's next chunk."""
        offsets = self.documents.segment_offsets
        first, stop = self.first[lanes], self.stop[lanes]
        end = np.minimum(np.searchsorted(offsets, offsets[cursor] + self.target[lanes]), stop)
        if self.options.reference_pairs or self.options.objective is Objective.NONE:
            return cursor, end
        end = np.minimum(np.maximum(end, cursor + 2), stop)
        return np.where(end - cursor == 1, np.maximum(cursor - 1, first), cursor), end

    def _pair(self, lanes: Ints, step: int, cursor: Ints, begin: Ints, end: Ints) -> tuple[Pairs, Ints]:
        """Splits chunks in two, and swaps or replaces the segments; returns the pairs and each lane's next cursor."""
        options, offsets = self.options, self.documents.segment_offsets
        keys = fold_in(self.keys[lanes], step)
        single = end - begin == 1
        middle = begin + 1 + uniform_int(random_bits(keys, Counter.SPLIT), np.maximum(end - begin - 1, 1))
        middle = end if options.objective is Objective.NONE else np.minimum(middle, end)
        coin = bernoulli(random_bits(keys, Counter.COIN), 0.5)
        first_start, first_length = offsets[begin], offsets[middle] - offsets[begin]
        second_start, second_length = offsets[middle], offsets[end] - offsets[middle]
        labels = coin & (options.objective is not Objective.NONE)
        next_cursor, random = end, np.zeros(len(lanes), bool)
        if options.reference_pairs or options.objective is Objective.NEXT_SENTENCE:
            random = coin & (options.objective is Objective.NEXT_SENTENCE)
            # Random partners for single segments would leak the label; only `reference_pairs` has them.
            random = random | single if options.reference_pairs else random & ~single
            start, length = self._partners(lanes, keys, first_length)
            second_start, second_length = np.where(random, start, second_start), np.where(random, length, second_length)
            labels = labels | random
            # The next chunk begins with the segments that the partner replaced.
            next_cursor = np.where(random, np.maximum(middle, cursor + 1), end)
        if options.objective is Objective.SENTENCE_ORDER:
            swap = coin & ~random
            first_start, second_start = (
                np.where(swap, second_start, first_start),
                np.where(swap, first_start, second_start),
            )
            first_length, second_length = (
                np.where(swap, second_length, first_length),
                np.where(swap, first_length, second_length),
            )
        passes, labels = self.passes[lanes], labels.astype(np.int64)
        return Pairs(passes, keys, first_start, first_length, second_start, second_length, labels), next_cursor

    def _partners(self, lanes: Ints, keys: Keys, first_length: Ints) -> tuple[Ints, Ints]:
        """Returns start and length, in tokens, of a slice of another document that fills each example."""
        documents, bits = self.documents, random_bits(keys, Counter.PARTNER)
        other = uniform_int(bits, len(documents) - 1)
        other += other >= self.document[lanes]
        first, stop = documents.document_offsets[other], documents.document_offsets[other + 1]
        begin = first + uniform_int_low(bits, stop - first)
        missing = np.maximum(self.target[lanes] - first_length, 1)
        offsets = documents.segment_offsets
        end = np.minimum(np.searchsorted(offsets, offsets[begin] + missing), stop)
        return offsets[begin], offsets[end] - offsets[begin]


def _target_lengths(keys: Keys, options: ExampleOptions) -> Ints:
    """Returns the target length of each lane: `max_tokens` or, with `short_seq_prob`, a random length from 2 to it."""
    bits = random_bits(keys, Counter.LENGTH)
    short = 2 + uniform_int_low(bits, options.max_tokens - 1)
    return np.where(bernoulli(bits, options.short_seq_prob), short, options.max_tokens)


def _truncate(pairs: Pairs, max_tokens: int) -> Pairs:
    """Shortens the longer segment, the second if they are equal, token by token until both fit."""
    first, second = pairs.first_length, pairs.second_length
    excess = np.maximum(first + second - max_tokens, 0)
    from_longer = np.minimum(excess, np.abs(first - second))
    rest = excess - from_longer
    cut_first = np.where(first > second, from_longer, 0) + rest // 2
    cut_second = np.where(first > second, 0, from_longer) + (rest + 1) // 2
    bits = random_bits(pairs.keys, Counter.CUT)
    return Pairs(
        pairs.passes,
        pairs.keys,
        pairs.first_start + uniform_int(bits, cut_first + 1),
        first - cut_first,
        pairs.second_start + uniform_int_low(bits, cut_second + 1),
        second - cut_second,
        pairs.labels,
    )
