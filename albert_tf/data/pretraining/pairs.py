"""Segments become sentence pairs: which slices of the corpus make up each example, with which label.

All documents and passes advance side by side, one chunk a step, so a step costs the same few array operations for one
document as for thousands. Letters: A lanes (one lane is one pass over one document), X examples.

How it differs from the reference, by decision:

1. A chunk is closed only once it holds two segments, and a last segment left alone is paired with the one before it.
   The reference pairs a lone segment with a random document and labels it 1, whatever the objective: at length 128 this
   makes 60 % of the labels 1, and most of them tell by the topic, the cue that sentence order is meant to avoid.
   Splitting the lone segment would give the label away too: swapped halves begin in mid-sentence and end with a stop.
   A document with a single segment therefore makes no example. `reference_pairs=True` brings the reference's rule back.
2. Where a pair is too long, the tokens cut from a segment are shared between its front and its end by one uniform draw.
   The reference tosses a coin for each token, which for long segments always keeps their middle.
3. The random partner of a document is any other one; the reference gives up after ten attempts and takes the same.
"""

from dataclasses import dataclass, fields
from enum import IntEnum

import numpy as np
import numpy.typing as npt

from albert_tf.data.corpus import TokenizedDocuments
from albert_tf.data.options import ExampleOptions, Objective
from albert_tf.data.prng import bernoulli, fold_in, random_bits, splitmix64, uniform_int, uniform_int_low

Ints = npt.NDArray[np.int64]
Keys = npt.NDArray[np.uint64]


class Counter(IntEnum):
    """Counters of the draws from a lane's or an example's key."""

    LENGTH = 0
    SPLIT = 1
    COIN = 2
    PARTNER = 3
    CUT = 4
    SHUFFLE = 5


@dataclass(frozen=True)
class Pairs:
    """One entry for each example, all [X]; starts and lengths count tokens of the corpus, both segments are slices.

    Args:
        passes: number of the pass that the example belongs to.
        keys: the example's own random key.
        first_start, first_length: the segment after [CLS].
        second_start, second_length: the segment after [SEP]; length 0 where the objective is none.
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

    def followed_by(self, other: "Pairs") -> "Pairs":
        """Returns these examples and then those of `other`."""
        both = ((getattr(self, field.name), getattr(other, field.name)) for field in fields(self))
        return Pairs(*(np.concatenate(arrays) for arrays in both))

    def shuffled(self) -> "Pairs":
        """Returns the passes one after another, each in random order."""
        return self.take(np.lexsort((random_bits(self.keys, Counter.SHUFFLE), self.passes)))


def make_pairs(documents: TokenizedDocuments, passes: npt.ArrayLike, options: ExampleOptions) -> Pairs:
    """Cuts every document into pairs, once for each pass.

    Args:
        documents: the corpus, or the part of it that partners may be drawn from.
        passes: numbers of the passes, non-negative.
        options: see `ExampleOptions`.

    Returns:
        Pairs grouped by step. Example k of pass e of a document depends on the seed, the document's text, e and k
        only, but for random partners, which also depend on the other documents.

    Raises:
        ValueError: partners are needed and there is only one document.
    """
    needs_partners = options.reference_pairs or options.objective is Objective.NEXT_SENTENCE
    if needs_partners and len(documents) == 1:
        raise ValueError(
            "Random partners must be drawn from at least two documents. Received: one document. "
            "Add documents or choose another objective."
        )
    chunks = _Chunks(documents, np.atleast_1d(passes), options)
    steps = list(chunks)
    if not steps:
        empty = np.zeros(0, np.int64)
        return Pairs(empty, empty.astype(np.uint64), empty, empty, empty, empty, empty)
    pairs = Pairs(*(np.concatenate([getattr(step, field.name) for step in steps]) for field in fields(Pairs)))
    return _truncate(pairs, options.max_tokens)


class _Chunks:
    """Iterates over steps; each yields the next, untruncated pair of every lane that has one left."""

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
            # A document's only segment has nothing to be paired with.
            both = np.minimum(pairs.first_length, pairs.second_length) > 0
            paired = both | (self.options.objective is Objective.NONE)
            yield pairs.take(paired)
            left = cursor < self.stop[lanes]
            lanes, cursor, step = lanes[left], cursor[left], step + 1

    def _next_chunk(self, lanes: Ints, cursor: Ints) -> tuple[Ints, Ints]:
        """Returns the first segment of each lane's next chunk and the one after its last."""
        offsets = self.documents.segment_offsets
        first, stop = self.first[lanes], self.stop[lanes]
        end = np.minimum(np.searchsorted(offsets, offsets[cursor] + self.target[lanes]), stop)
        if self.options.reference_pairs or self.options.objective is Objective.NONE:
            return cursor, end
        end = np.minimum(np.maximum(end, cursor + 2), stop)
        return np.where(end - cursor == 1, np.maximum(cursor - 1, first), cursor), end

    def _pair(self, lanes: Ints, step: int, cursor: Ints, begin: Ints, end: Ints) -> tuple[Pairs, Ints]:
        """Splits chunks in two, swaps or replaces; returns the pairs and where each lane goes on."""
        options, offsets = self.options, self.documents.segment_offsets
        keys = fold_in(self.keys[lanes], step)
        lone = end - begin == 1
        middle = begin + 1 + uniform_int(random_bits(keys, Counter.SPLIT), np.maximum(end - begin - 1, 1))
        middle = end if options.objective is Objective.NONE else np.minimum(middle, end)
        coin = bernoulli(random_bits(keys, Counter.COIN), 0.5)
        first_start, first_length = offsets[begin], offsets[middle] - offsets[begin]
        second_start, second_length = offsets[middle], offsets[end] - offsets[middle]
        labels = coin & (options.objective is not Objective.NONE)
        following = end
        if options.reference_pairs or options.objective is Objective.NEXT_SENTENCE:
            random = coin & (options.objective is Objective.NEXT_SENTENCE)
            # A random partner for lone segments alone would tell the label by their number.
            random = random | lone if options.reference_pairs else random & ~lone
            start, length = self._partners(lanes, keys, first_length)
            second_start, second_length = np.where(random, start, second_start), np.where(random, length, second_length)
            labels = labels | random
            # The segments that the partner displaced go into the next chunk.
            following = np.where(random, np.maximum(middle, cursor + 1), end)
        else:
            random = np.zeros(len(lanes), bool)
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
        return Pairs(passes, keys, first_start, first_length, second_start, second_length, labels), following

    def _partners(self, lanes: Ints, keys: Keys, first_length: Ints) -> tuple[Ints, Ints]:
        """Returns start and length, in tokens, of a slice of another document that fills each example up."""
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
    """Returns the tokens to aim at: the room of an example or, now and then, a random length from 2 up to it."""
    bits = random_bits(keys, Counter.LENGTH)
    return np.where(
        bernoulli(bits, options.short_seq_prob), 2 + uniform_int_low(bits, options.max_tokens - 1), options.max_tokens
    )


def _truncate(pairs: Pairs, room: int) -> Pairs:
    """Shortens the longer segment (the second where they are equal) token by token until both fit."""
    first, second = pairs.first_length, pairs.second_length
    excess = np.maximum(first + second - room, 0)
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
