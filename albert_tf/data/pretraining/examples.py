"""Makes examples of pairs, in batches: special tokens, padding and masking.

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
    """A batch of examples; the fields are those of `PRETRAINING_FEATURES`.

    Args:
        input_ids: int32 [B, L], [CLS] first [SEP] second [SEP], masked and padded.
        attention_mask: int32 [B, L], 0 on padding.
        token_type_ids: int32 [B, L], 1 on the second segment and its [SEP].
        token_boundary: int32 [B, L], 1 on special tokens and on tokens that start a word.
        masked_lm_positions: int32 [B, P], increasing, padded with 0.
        masked_lm_ids: int32 [B, P], the original tokens at these positions, padded with 0.
        masked_lm_weights: float32 [B, P], 1 for a prediction, 0 for padding.
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
    """Makes one example of each pair.

    In each, `min(max_predictions_per_seq, max(1, round(masked_lm_prob * tokens)))` tokens are masked, counting special
    tokens, or a few less if the remaining words are too long. With `permutation`, up to as many others are permuted.

    Args:
        documents: the corpus that the pairs were made of.
        pairs: see `make_pairs`.
        options: see `ExampleOptions`.
        vocabulary: special ids and word boundaries.
    """
    unmasked = _assemble(documents.tokens, pairs, options, vocabulary)
    masked_ids, positions, targets, weights = mask_examples(unmasked, pairs.keys, options, vocabulary)
    return PretrainingExamples(
        masked_ids,
        unmasked.attention_mask,
        unmasked.token_type_ids,
        unmasked.token_boundary,
        positions,
        targets,
        weights,
        pairs.labels.astype(np.int32),
    )


def mask_examples(
    unmasked: "Unmasked", keys: npt.NDArray, options: ExampleOptions, vocabulary: Vocabulary
) -> tuple[Ints, Ints, Ints, npt.NDArray[np.float32]]:
    """Masks tokens and, with `permutation`, permutes others.

    Returns:
        The ids, [B, L], and the positions, original ids and weights of the predictions, [B, P].
    """
    lengths = unmasked.attention_mask.sum(axis=1)
    # np.rint rounds half to even, as the reference's round() does.
    budgets = np.maximum(1, np.rint(lengths * options.masked_lm_prob).astype(np.int64))
    budgets = np.minimum(budgets, options.max_masked)
    starts = unmasked.starts if options.whole_word_masking else unmasked.content
    choose = partial(
        select_masked,
        starts,
        unmasked.content,
        budgets,
        keys,
        ngram=options.ngram,
        favor_shorter=options.favor_shorter_ngram,
    )
    predicted = choose()
    ids = apply_masking(
        unmasked.ids, predicted, keys, mask_token_id=vocabulary.mask_token_id, vocab_size=vocabulary.vocab_size
    )
    if options.permutation:
        moved = choose(taken=predicted, stream=PERMUTED_ORDER_STREAM)
        ids, predicted = permute(ids, moved, keys), predicted | moved
    rows, columns = np.nonzero(predicted)
    counts = predicted.sum(axis=1)
    slots = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
    positions, targets = (np.zeros((len(ids), options.predictions), np.int32) for _ in range(2))  # [B, P]
    weights = np.zeros(positions.shape, np.float32)
    positions[rows, slots], targets[rows, slots], weights[rows, slots] = columns, unmasked.ids[rows, columns], 1.0
    return ids, positions, targets, weights


@dataclass(frozen=True)
class Unmasked:
    """Unmasked examples, all [B, L]; `starts` and `content` are arguments of `select_masked`."""

    ids: Ints
    attention_mask: Ints
    token_type_ids: Ints
    token_boundary: Ints
    starts: npt.NDArray[np.bool_]
    content: npt.NDArray[np.bool_]


def _assemble(tokens: Ints, pairs: Pairs, options: ExampleOptions, vocabulary: Vocabulary) -> Unmasked:
    """Gathers the segments into rows with special tokens and padding."""
    positions = np.arange(options.max_seq_length)[None, :]  # [1, L]
    first_end = pairs.first_length[:, None] + 1  # [B, 1], position of the first [SEP]
    second_begin = first_end + 1
    second_end = second_begin + pairs.second_length[:, None]
    has_second = pairs.second_length[:, None] > 0
    in_first = (positions >= 1) & (positions < first_end)
    in_second = (positions >= second_begin) & (positions < second_end)
    content = in_first | in_second
    special = (positions == 0) | (positions == first_end) | ((positions == second_end) & has_second)
    sources = positions + np.where(
        in_second, pairs.second_start[:, None] - second_begin, pairs.first_start[:, None] - 1
    )
    ids = np.full(content.shape, vocabulary.pad_token_id, np.int32)
    ids[content] = tokens[sources[content]]
    ids[special] = vocabulary.sep_token_id
    ids[:, 0] = vocabulary.cls_token_id
    word_starts = vocabulary.word_starts(ids) & content
    # A truncated segment may begin within a word; the reference would append such a piece to the word before [SEP].
    starts = word_starts | (positions == 1) | (in_second & (positions == second_begin))
    return Unmasked(
        ids,
        (content | special).astype(np.int32),
        (in_second | ((positions == second_end) & has_second)).astype(np.int32),
        (word_starts | special).astype(np.int32),
        starts,
        content,
    )
