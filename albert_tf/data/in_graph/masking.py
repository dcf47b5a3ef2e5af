"""The masking of `albert_tf.data.masking`, which defines it, as TensorFlow operations on a batch.

Letters: B batch, L sequence, W words, A rows that are not finished, G n-gram lengths, K chosen tokens of all rows.
"""

from typing import NamedTuple

import tensorflow as tf

from albert_tf.data.in_graph.draws import below_low, child_keys, draw, from_sortable, happens, sortable, u64
from albert_tf.data.masking import CORRUPT_STREAM, ORDER_STREAM, PERMUTE_STREAM, ngram_bounds


class _Words(NamedTuple):
    """The words of each row.

    count: int32 [B]; of_token: int32 [B, L], the word of each token; first_token: int32 [B, W + G], how many tokens of
    content stand before each word, past the last word all of them.
    """

    count: tf.Tensor
    of_token: tf.Tensor
    first_token: tf.Tensor


class _Order(NamedTuple):
    """In which order words are visited and how long an n-gram each visit asks for, both int32 [B, W]."""

    words: tf.Tensor
    lengths: tf.Tensor


def choose_tokens(
    starts: tf.Tensor,
    content: tf.Tensor,
    budgets: tf.Tensor,
    keys: tf.Tensor,
    *,
    ngram: int,
    favor_shorter: bool,
    taken: tf.Tensor | None = None,
    stream: int = ORDER_STREAM,
) -> tf.Tensor:
    """See `masking.choose_tokens`: bool [B, L] twice, int32 [B], uint64 [B]; returns bool [B, L]."""
    words = _words(starts, content, ngram)
    order = _order(keys, words, ngram, favor_shorter, stream)
    chosen = tf.zeros_like(words.first_token)
    if taken is not None:
        places = tf.where(taken)
        words_taken = tf.stack([places[:, 0], tf.cast(tf.gather_nd(words.of_token, places), tf.int64)], axis=1)
        chosen = tf.tensor_scatter_nd_max(chosen, words_taken, tf.ones_like(words_taken[:, 0], tf.int32))
    chosen = _choose_words(order, words, budgets, chosen, ngram)
    tokens = content & (tf.gather(chosen, tf.maximum(words.of_token, 0), batch_dims=1) > 0)
    return tokens if taken is None else tokens & ~taken


def _words(starts: tf.Tensor, content: tf.Tensor, ngram: int) -> _Words:
    of_token = tf.cumsum(tf.cast(starts, tf.int32), axis=1) - 1  # [B, L]
    before = tf.cumsum(tf.cast(content, tf.int32), axis=1) - 1
    count = of_token[:, -1] + 1
    values = tf.RaggedTensor.from_row_lengths(tf.boolean_mask(before, starts), count, validate=False)
    columns = tf.reduce_max(count) + ngram
    first_token = values.to_tensor(shape=tf.stack([tf.size(count), columns]))
    past = ~tf.sequence_mask(count, columns)
    return _Words(count, of_token, tf.where(past, before[:, -1:] + 1, first_token))


def _order(keys: tf.Tensor, words: _Words, ngram: int, favor_shorter: bool, stream: int) -> _Order:
    columns = tf.range(tf.reduce_max(words.count))
    places = u64(2**16 - 1)
    bits = draw(child_keys(keys, stream)[:, None], columns)  # [B, W]
    bits = tf.bitwise.bitwise_or(bits - tf.bitwise.bitwise_and(bits, places), u64(columns)[None])
    bits = tf.where(columns < words.count[:, None], bits, u64(2**64 - 1))
    bits = from_sortable(tf.sort(sortable(bits), axis=1))
    fractions = tf.cast(tf.bitwise.bitwise_and(tf.bitwise.right_shift(bits, u64(16)), places), tf.int32)
    lengths = tf.ones_like(fractions)
    for bound in ngram_bounds(ngram, favor_shorter):
        lengths += tf.cast(fractions >= int(bound), tf.int32)
    return _Order(tf.cast(tf.bitwise.bitwise_and(bits, places), tf.int32), lengths)


def _choose_words(order: _Order, words: _Words, budgets: tf.Tensor, chosen: tf.Tensor, ngram: int) -> tf.Tensor:
    """Visits the words of all rows in their orders; returns which are chosen or taken, int32 [B, W + G], 0 or 1."""
    shape = tf.shape(chosen)
    stride, visits = shape[1], tf.shape(order.words)[1]
    first_token, all_words, all_lengths = (tf.reshape(t, [-1]) for t in (words.first_token, *order))
    steps = tf.range(1, ngram + 1)  # [G]

    def another_visit(visit, rows, left, chosen):
        going = tf.where((left > 0) & (visit < tf.gather(words.count, rows)))[:, 0]
        rows, left = tf.gather(rows, going), tf.gather(left, going)  # [A]
        asked = rows * visits + visit
        places = tf.gather(all_words, asked) + rows * stride
        ends = places[:, None] + steps  # [A, G]
        tokens = tf.gather(first_token, ends) - tf.gather(first_token, places)[:, None]
        fits = (steps <= tf.gather(all_lengths, asked)[:, None]) & (tokens <= left[:, None])
        free = ~tf.reduce_any(fits & (tf.gather(chosen, ends - 1) > 0), axis=1)
        fits = tf.cast(fits & free[:, None], tf.int32)
        chosen = tf.tensor_scatter_nd_add(chosen, (ends - 1)[..., None], fits)
        return visit + 1, rows, left - tf.reduce_max(tokens * fits, axis=1), chosen

    *_, chosen = tf.while_loop(
        lambda visit, rows, left, chosen: (visit < visits) & (tf.size(rows) > 0),
        another_visit,
        (0, tf.range(shape[0]), budgets, tf.reshape(chosen, [-1])),
        shape_invariants=(tf.TensorShape([]), *[tf.TensorShape([None])] * 3),
    )
    return tf.reshape(chosen, shape)


def corrupt(ids: tf.Tensor, chosen: tf.Tensor, keys: tf.Tensor, *, mask_token_id: int, vocab_size: int) -> tf.Tensor:
    """See `masking.corrupt`: int32 [B, L], bool [B, L], uint64 [B]; returns int32 [B, L]."""
    where = tf.where(chosen)  # [K, 2]
    bits = draw(tf.gather(child_keys(keys, CORRUPT_STREAM), where[:, 0]), where[:, 1])
    replaced = tf.where(happens(bits, 0.9), tf.gather_nd(ids, where), tf.cast(below_low(bits, vocab_size), tf.int32))
    return tf.tensor_scatter_nd_update(ids, where, tf.where(happens(bits, 0.8), mask_token_id, replaced))


def permute(ids: tf.Tensor, chosen: tf.Tensor, keys: tf.Tensor) -> tf.Tensor:
    """See `masking.permute`: int32 [B, L], bool [B, L], uint64 [B]; returns int32 [B, L]."""
    where = tf.where(chosen)  # [K, 2]
    bits = sortable(draw(tf.gather(child_keys(keys, PERMUTE_STREAM), where[:, 0]), where[:, 1]))
    # Sorting by the draws and then, keeping that order, by the rows is what `np.lexsort` does.
    order = tf.argsort(bits, stable=True)
    order = tf.gather(order, tf.argsort(tf.gather(where[:, 0], order), stable=True))
    return tf.tensor_scatter_nd_update(ids, where, tf.gather_nd(ids, tf.gather(where, order)))
