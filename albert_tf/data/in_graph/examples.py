"""The examples of `albert_tf.data.examples`, which defines them, as TensorFlow operations, in two steps.

Rows are laid out where the corpus is at hand, and masked later, many of any shards at once.

Letters: B batch, L sequence, P predictions, X examples of a shard.
"""

from functools import partial
from typing import NamedTuple

import tensorflow as tf

from albert_tf.data.corpus import Vocabulary
from albert_tf.data.in_graph.masking import choose_tokens, corrupt, permute
from albert_tf.data.in_graph.pairs import GraphDocuments, GraphPairs
from albert_tf.data.masking import PERMUTED_ORDER_STREAM
from albert_tf.data.options import ExampleOptions


class Rows(NamedTuple):
    """Examples before masking: ids int32 [B, L], the lengths of both segments and labels int32 [B], keys uint64 [B]."""

    ids: tf.Tensor
    first_length: tf.Tensor
    second_length: tf.Tensor
    labels: tf.Tensor
    keys: tf.Tensor


class _Layout(NamedTuple):
    """What stands where, all bool [B, L]."""

    content: tf.Tensor
    special: tf.Tensor
    in_second: tf.Tensor
    ends_second: tf.Tensor
    begins_segment: tf.Tensor


def lay_out(documents: GraphDocuments, pairs: GraphPairs, options: ExampleOptions, vocabulary: Vocabulary) -> Rows:
    """Gathers the segments of each pair into a row, with special tokens between them and padding after them."""
    first_start, first_length, second_start, second_length, labels = (tf.cast(field, tf.int32) for field in pairs[1:])
    layout = _layout(first_length, second_length, options.max_seq_length)
    begins = tf.where(
        layout.in_second, (second_start - first_length - 2)[:, None], (first_start - 1)[:, None]
    )  # where in the corpus a row would begin
    sources = tf.where(layout.content, begins + tf.range(options.max_seq_length), 0)
    ids = tf.where(layout.content, tf.gather(documents.tokens, sources), vocabulary.pad_token_id)
    ids = tf.where(layout.special, vocabulary.sep_token_id, ids)
    starts = tf.fill([tf.shape(ids)[0], 1], vocabulary.cls_token_id)
    ids = tf.ensure_shape(tf.concat([starts, ids[:, 1:]], axis=1), [None, options.max_seq_length])
    return Rows(ids, first_length, second_length, labels, pairs.keys)


def make_examples(rows: Rows, options: ExampleOptions, vocabulary: Vocabulary) -> dict[str, tf.Tensor]:
    """Masks rows.

    Returns:
        A dict of the arrays of `PretrainingExamples` but `token_boundary`, with their shapes and types.
    """
    layout = _layout(rows.first_length, rows.second_length, options.max_seq_length)
    shown, predicted = _hide(rows, layout, options, vocabulary)
    counts = tf.reduce_sum(tf.cast(predicted, tf.int32), axis=1)
    where = tf.where(predicted)
    shape = [rows.ids.shape[0], options.predictions]  # [B, P]

    def slots(values):
        ragged = tf.RaggedTensor.from_row_lengths(values, counts, validate=False)
        return tf.ensure_shape(ragged.to_tensor(shape=[None, options.predictions]), shape)

    return {
        "input_ids": tf.ensure_shape(shown, [shape[0], options.max_seq_length]),
        "attention_mask": tf.cast(layout.content | layout.special, tf.int32),
        "token_type_ids": tf.cast(layout.in_second | layout.ends_second, tf.int32),
        "masked_lm_positions": slots(tf.cast(where[:, 1], tf.int32)),
        "masked_lm_ids": slots(tf.gather_nd(rows.ids, where)),
        "masked_lm_weights": tf.sequence_mask(counts, options.predictions, tf.float32),
        "sentence_order_labels": rows.labels,
    }


def _layout(first_length: tf.Tensor, second_length: tf.Tensor, length: int) -> _Layout:
    places = tf.range(length)[None]  # [1, L]
    first_end = first_length[:, None] + 1  # [B, 1], where the first [SEP] stands
    second_begin = first_end + 1
    second_end = second_begin + second_length[:, None]
    in_first = (places >= 1) & (places < first_end)
    in_second = (places >= second_begin) & (places < second_end)
    ends_second = (places == second_end) & (second_length > 0)[:, None]
    return _Layout(
        content=in_first | in_second,
        special=(places == 0) | (places == first_end) | ends_second,
        in_second=in_second,
        ends_second=ends_second,
        begins_segment=(places == 1) | (in_second & (places == second_begin)),
    )


def _word_starts(ids: tf.Tensor, vocabulary: Vocabulary) -> tf.Tensor:
    """`Vocabulary.word_starts` in the graph: bool [B, L]."""
    starts = tf.gather(tf.constant(vocabulary.start_of_word), ids)
    if not vocabulary.end_of_word.any():
        return starts
    return starts | tf.pad(tf.gather(tf.constant(vocabulary.end_of_word), ids[:, :-1]), [[0, 0], [1, 0]])


def _hide(rows: Rows, layout: _Layout, options: ExampleOptions, vocabulary: Vocabulary) -> tuple[tf.Tensor, tf.Tensor]:
    """What the model sees, and which tokens it has to tell: int32 and bool [B, L]."""
    lengths = tf.reduce_sum(tf.cast(layout.content | layout.special, tf.int32), axis=1)
    shares = tf.round(tf.cast(lengths, tf.float64) * options.masked_lm_prob)  # half to even
    budgets = tf.clip_by_value(tf.cast(shares, tf.int32), 1, options.largest_budget)
    starts = layout.content
    if options.whole_word_masking:
        starts = (_word_starts(rows.ids, vocabulary) & layout.content) | layout.begins_segment
    choose = partial(
        choose_tokens,
        starts,
        layout.content,
        budgets,
        rows.keys,
        ngram=options.ngram,
        favor_shorter=options.favor_shorter_ngram,
    )
    predicted = choose()
    shown = corrupt(
        rows.ids, predicted, rows.keys, mask_token_id=vocabulary.mask_token_id, vocab_size=vocabulary.vocab_size
    )
    if options.permutation:
        moved = choose(taken=predicted, stream=PERMUTED_ORDER_STREAM)
        shown, predicted = permute(shown, moved, rows.keys), predicted | moved
    return shown, predicted
