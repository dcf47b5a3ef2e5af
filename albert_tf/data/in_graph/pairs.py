"""The pairs of `albert_tf.data.pairs`, which defines them, as TensorFlow operations: one pass over a shard.

Letters: A lanes (one for each document that is not finished), X examples, T tokens, M segments, N documents.
"""

from typing import NamedTuple

import numpy as np
import tensorflow as tf

from albert_tf.data.draws import mix as mixed_seed
from albert_tf.data.in_graph.draws import below, below_low, child_keys, draw, happens, sortable
from albert_tf.data.options import ExampleOptions, Objective
from albert_tf.data.pairs import Draw


class GraphDocuments(NamedTuple):
    """The fields of `TokenizedDocuments` as tensors: int32 [T], int64 [M + 1], int64 [N + 1], uint64 [N]."""

    tokens: tf.Tensor
    segment_offsets: tf.Tensor
    document_offsets: tf.Tensor
    document_keys: tf.Tensor


class GraphPairs(NamedTuple):
    """The fields of `Pairs` but the pass, all [X]: uint64 keys, the others int64."""

    keys: tf.Tensor
    first_start: tf.Tensor
    first_length: tf.Tensor
    second_start: tf.Tensor
    second_length: tf.Tensor
    labels: tf.Tensor


class _Lanes(NamedTuple):
    """What is known of each lane, all [A]: document, its first segment and the one after its last, tokens aimed at."""

    document: tf.Tensor
    keys: tf.Tensor
    first: tf.Tensor
    stop: tf.Tensor
    target: tf.Tensor
    cursor: tf.Tensor


class _Segment(NamedTuple):
    start: tf.Tensor
    length: tf.Tensor


def make_pairs(documents: GraphDocuments, pass_number: tf.Tensor, options: ExampleOptions) -> GraphPairs:
    """Cuts every document into pairs, once.

    Args:
        documents: a shard.
        pass_number: int64 scalar.
        options: see `ExampleOptions`.

    Returns:
        GraphPairs, equal to `albert_tf.data.pairs.make_pairs(documents, [pass_number], options).shuffled()`.
    """
    lanes = _start(documents, pass_number, options)
    steps = tf.TensorArray(tf.int64, size=0, dynamic_size=True, infer_shape=False, element_shape=[None, 6])

    def another_step(step, lanes, steps):
        pairs, following = _next_pairs(documents, lanes, step, options)
        # A document's only segment has nothing to be paired with.
        paired = tf.minimum(pairs.first_length, pairs.second_length) > 0
        columns = tf.stack([tf.bitcast(pairs.keys, tf.int64), *pairs[1:]], axis=1)
        steps = steps.write(step, columns if options.objective is Objective.NONE else columns[paired])
        left = tf.where(following < lanes.stop)[:, 0]
        lanes = _Lanes(*(tf.gather(field, left) for field in lanes._replace(cursor=following)))
        return step + 1, lanes, steps

    _, _, steps = tf.while_loop(
        lambda step, lanes, steps: tf.size(lanes.cursor) > 0,
        another_step,
        (0, lanes, steps),
        shape_invariants=(tf.TensorShape([]), _Lanes(*[tf.TensorShape([None])] * 6), tf.TensorShape(None)),
    )
    columns = tf.unstack(tf.ensure_shape(steps.concat(), [None, 6]), axis=1)
    pairs = GraphPairs(tf.bitcast(columns[0], tf.uint64), *columns[1:])
    order = tf.argsort(sortable(draw(pairs.keys, int(Draw.SHUFFLE))))
    return _truncate(GraphPairs(*(tf.gather(field, order) for field in pairs)), options.room)


def _start(documents: GraphDocuments, pass_number: tf.Tensor, options: ExampleOptions) -> _Lanes:
    number = tf.size(documents.document_keys, tf.int64)
    seed = tf.constant(np.uint64(mixed_seed(options.seed)))
    keys = child_keys(child_keys(seed, documents.document_keys), pass_number)
    bits = draw(keys, int(Draw.LENGTH))
    room = tf.fill(tf.shape(bits), tf.constant(options.room, tf.int64))
    target = tf.where(happens(bits, options.short_seq_prob), 2 + below_low(bits, options.room - 1), room)
    first, stop = documents.document_offsets[:-1], documents.document_offsets[1:]
    return _Lanes(tf.range(number), keys, first, stop, target, first)


def _next_pairs(documents: GraphDocuments, lanes: _Lanes, step: tf.Tensor, options: ExampleOptions):
    """The next, untruncated pair of every lane, and where each lane goes on."""
    offsets = documents.segment_offsets
    begin, end = _next_chunk(offsets, lanes, options)
    keys = child_keys(lanes.keys, step)
    coin = happens(draw(keys, int(Draw.COIN)), 0.5)
    middle = begin + 1 + below(draw(keys, int(Draw.SPLIT)), tf.maximum(end - begin - 1, 1))
    middle = end if options.objective is Objective.NONE else tf.minimum(middle, end)
    edges = tf.gather(offsets, tf.stack([begin, middle, end]))
    first, second = _Segment(edges[0], edges[1] - edges[0]), _Segment(edges[1], edges[2] - edges[1])
    labels, following = coin, end
    if options.objective is Objective.NONE:
        labels = tf.zeros_like(coin)
    if options.reference_pairs or options.objective is Objective.NEXT_SENTENCE:
        random = coin if options.objective is Objective.NEXT_SENTENCE else tf.zeros_like(coin)
        lone = tf.equal(end - begin, 1)
        random = random | lone if options.reference_pairs else random & ~lone
        second = _choose(random, _partners(documents, lanes, keys, first.length), second)
        labels = labels | random if options.objective is Objective.SENTENCE_ORDER else random
        # The segments that the partner displaced go into the next chunk.
        following = tf.where(random, tf.maximum(middle, lanes.cursor + 1), end)
        coin = coin & ~random
    if options.objective is Objective.SENTENCE_ORDER:
        first, second = _choose(coin, second, first), _choose(coin, first, second)
    return GraphPairs(keys, *first, *second, tf.cast(labels, tf.int64)), following


def _next_chunk(offsets: tf.Tensor, lanes: _Lanes, options: ExampleOptions) -> tuple[tf.Tensor, tf.Tensor]:
    cursor, stop = lanes.cursor, lanes.stop
    wanted = tf.gather(offsets, cursor) + lanes.target
    end = tf.minimum(tf.searchsorted(offsets, wanted, out_type=tf.int64), stop)
    if options.reference_pairs or options.objective is Objective.NONE:
        return cursor, end
    end = tf.minimum(tf.maximum(end, cursor + 2), stop)
    return tf.where(tf.equal(end - cursor, 1), tf.maximum(cursor - 1, lanes.first), cursor), end


def _partners(documents: GraphDocuments, lanes: _Lanes, keys: tf.Tensor, first_length: tf.Tensor) -> _Segment:
    bits = draw(keys, int(Draw.PARTNER))
    other = below(bits, tf.size(documents.document_keys, tf.int64) - 1)
    other += tf.cast(other >= lanes.document, tf.int64)
    first, stop = tf.gather(documents.document_offsets, other), tf.gather(documents.document_offsets, other + 1)
    begin = first + below_low(bits, stop - first)
    start = tf.gather(documents.segment_offsets, begin)
    wanted = start + tf.maximum(lanes.target - first_length, 1)
    end = tf.minimum(tf.searchsorted(documents.segment_offsets, wanted, out_type=tf.int64), stop)
    return _Segment(start, tf.gather(documents.segment_offsets, end) - start)


def _choose(condition: tf.Tensor, one: _Segment, other: _Segment) -> _Segment:
    return _Segment(*(tf.where(condition, a, b) for a, b in zip(one, other)))


def _truncate(pairs: GraphPairs, room: int) -> GraphPairs:
    first, second = pairs.first_length, pairs.second_length
    excess = tf.maximum(first + second - room, 0)
    from_longer = tf.minimum(excess, tf.abs(first - second))
    rest = excess - from_longer
    cut_first = tf.where(first > second, from_longer, tf.zeros_like(rest)) + rest // 2
    cut_second = excess - cut_first
    bits = draw(pairs.keys, int(Draw.CUT))
    return pairs._replace(
        first_start=pairs.first_start + below(bits, cut_first + 1),
        first_length=first - cut_first,
        second_start=pairs.second_start + below_low(bits, cut_second + 1),
        second_length=second - cut_second,
    )
