"""Pairs become examples: special tokens, padding, masks, as arrays of many examples at once.

Letters: B batch, L sequence, P predictions.
"""

from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt

from albert_tf.data.corpus import TokenizedDocuments, Vocabulary
from albert_tf.data.options import ExampleOptions
from albert_tf.data.pretraining.masking import PERMUTED_ORDER_STREAM, apply_masking, permute, select_masked
from albert_tf.data.pretraining.pairs import Pairs

Ints = npt.NDArray[np.int32]


@dataclass(frozen=True)
class PretrainingExamples:
    """Examples as the model takes them; the fields are those of `PRETRAINING_FEATURES`.

    Args:
        input_ids: int32 [B, L], [CLS] first [SEP] second [SEP], masked, padded.
        attention_mask: int32 [B, L], 1 where there is a token.
        token_type_ids: int32 [B, L], 1 on the second segment and its [SEP].
        token_boundary: int32 [B, L], 1 on special tokens and on tokens that start a word.
        masked_lm_positions: int32 [B, P], increasing, then 0.
        masked_lm_ids: int32 [B, P], the tokens that stood there, then 0.
        masked_lm_weights: float32 [B, P], 1 for a prediction, then 0.
        sentence_order_labels: int32 [B].
    """

    input_ids: Ints
    attention_mask: Ints
    token_type_ids: Ints
    token_boundary: Ints
    masked_lm_positions: Ints
    masked_lm_ids: Ints
    masked_lm_weights: npt.NDArray[np.float32]
    sentence_order_labels: Ints

    def __len__(self) -> int:
        return len(self.input_ids)


def make_examples(
    documents: TokenizedDocuments, pairs: Pairs, options: ExampleOptions, vocabulary: Vocabulary
) -> PretrainingExamples:
    """Makes an example of each pair.

    Args:
        documents: the corpus that `pairs` point into.
        pairs: see `make_pairs`.
        options: see `ExampleOptions`.
        vocabulary: facts about the tokenizer.

    Returns:
        PretrainingExamples, one row a pair. In each, `min(max_predictions_per_seq, max(1, round(masked_lm_prob *
        tokens)))` tokens are masked, special tokens counted, or a few less where the words left are too long. With
        `permutation` up to as many again change places.
    """
    layout = _assemble(documents.tokens, pairs, options, vocabulary)
    hidden = _hide(layout, pairs.keys, options, vocabulary)
    rows, places = np.nonzero(hidden.predicted)
    counts = hidden.predicted.sum(axis=1)
    slots = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
    positions, ids = (np.zeros((len(pairs), options.predictions), np.int32) for _ in range(2))  # [B, P]
    weights = np.zeros(positions.shape, np.float32)
    positions[rows, slots], ids[rows, slots], weights[rows, slots] = places, layout.ids[rows, places], 1.0
    return PretrainingExamples(
        hidden.ids,
        layout.attention_mask,
        layout.token_type_ids,
        layout.token_boundary,
        positions,
        ids,
        weights,
        pairs.labels.astype(np.int32),
    )


@dataclass(frozen=True)
class _Hidden:
    """What the model sees, and which tokens it has to tell: both [B, L]."""

    ids: Ints
    predicted: npt.NDArray[np.bool_]


def _hide(layout: "_Layout", keys: npt.NDArray, options: ExampleOptions, vocabulary: Vocabulary) -> _Hidden:
    """Masks tokens and, on demand, moves others."""
    lengths = layout.attention_mask.sum(axis=1)
    # np.rint rounds half to even, as the reference's round() does.
    budgets = np.maximum(1, np.rint(lengths * options.masked_lm_prob).astype(np.int64))
    budgets = np.minimum(budgets, options.max_masked)
    starts = layout.starts if options.whole_word_masking else layout.content
    choose = partial(
        select_masked,
        starts,
        layout.content,
        budgets,
        keys,
        ngram=options.ngram,
        favor_shorter=options.favor_shorter_ngram,
    )
    predicted = choose()
    ids = apply_masking(
        layout.ids, predicted, keys, mask_token_id=vocabulary.mask_token_id, vocab_size=vocabulary.vocab_size
    )
    if options.permutation:
        moved = choose(taken=predicted, stream=PERMUTED_ORDER_STREAM)
        ids, predicted = permute(ids, moved, keys), predicted | moved
    return _Hidden(ids, predicted)


@dataclass(frozen=True)
class _Layout:
    """Unmasked examples, all [B, L]; `starts` and `content` are what `select_masked` takes."""

    ids: Ints
    attention_mask: Ints
    token_type_ids: Ints
    token_boundary: Ints
    starts: npt.NDArray[np.bool_]
    content: npt.NDArray[np.bool_]


def _assemble(tokens: Ints, pairs: Pairs, options: ExampleOptions, vocabulary: Vocabulary) -> _Layout:
    """Gathers the segments into rows, with special tokens between them and padding after them."""
    places = np.arange(options.max_seq_length)[None, :]  # [1, L]
    first_end = pairs.first_length[:, None] + 1  # [B, 1], where the first [SEP] stands
    second_begin = first_end + 1
    second_end = second_begin + pairs.second_length[:, None]
    has_second = pairs.second_length[:, None] > 0
    in_first = (places >= 1) & (places < first_end)
    in_second = (places >= second_begin) & (places < second_end)
    content = in_first | in_second
    special = (places == 0) | (places == first_end) | ((places == second_end) & has_second)
    sources = places + np.where(in_second, pairs.second_start[:, None] - second_begin, pairs.first_start[:, None] - 1)
    ids = np.full(content.shape, vocabulary.pad_token_id, np.int32)
    ids[content] = tokens[sources[content]]
    ids[special] = vocabulary.sep_token_id
    ids[:, 0] = vocabulary.cls_token_id
    word_starts = vocabulary.word_starts(ids) & content
    # A segment may begin in mid-word; the reference would add such a piece to the word before [SEP].
    starts = word_starts | (places == 1) | (in_second & (places == second_begin))
    return _Layout(
        ids,
        (content | special).astype(np.int32),
        (in_second | ((places == second_end) & has_second)).astype(np.int32),
        (word_starts | special).astype(np.int32),
        starts,
        content,
    )
