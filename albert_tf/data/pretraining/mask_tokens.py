"""Masks batches that a tokenizer made, without a corpus on disk.

Letters: B batch, L sequence, P predictions.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from albert_tf.data.corpus import Vocabulary
from albert_tf.data.options import ExampleOptions
from albert_tf.data.pretraining.examples import Unmasked, mask_examples
from albert_tf.data.prng import random_bits

if TYPE_CHECKING:
    from albert_tf.tokenization import AlbertTokenizer


def mask_tokens(
    inputs: Mapping[str, npt.ArrayLike],
    tokenizer: "AlbertTokenizer",
    *,
    seed: int,
    masked_lm_prob: float = 0.15,
    ngram: int = 3,
    whole_word_masking: bool = True,
) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Masks tokenized texts for `AlbertForMaskedLM.fit`, as `albert-tf prepare` masks its examples.

    Args:
        inputs: what the tokenizer returned: at least input_ids and attention_mask, [B, L].
        tokenizer: the tokenizer.
        seed: of the masks. Take another one in each epoch.
        masked_lm_prob: fraction of the tokens of each row to mask.
        ngram: maximum number of words masked together; n words have probability proportional to 1 / n.
        whole_word_masking: mask whole words; False: single tokens.

    Returns:
        The inputs, masked and with masked_lm_positions, int32 [B, P]; and the labels masked_lm_ids, int32 [B, P], and
        masked_lm_weights, float32 [B, P], 0 where a row has fewer than P masked tokens.

    Raises:
        ValueError: an argument has a value out of range.
    """
    ids, attended = (np.asarray(inputs[name], np.int32) for name in ("input_ids", "attention_mask"))
    options = ExampleOptions(
        max_seq_length=max(8, ids.shape[1]),
        masked_lm_prob=masked_lm_prob,
        ngram=ngram,
        whole_word_masking=whole_word_masking,
    )
    vocabulary = Vocabulary.of(tokenizer)
    special = np.isin(ids, (vocabulary.cls_token_id, vocabulary.sep_token_id, vocabulary.mask_token_id))
    content = (attended == 1) & ~special
    first = content & ~np.roll(content, 1, axis=1)  # of a text, whose first piece may be within a word
    boundaries = vocabulary.word_starts(ids) & content
    unmasked = Unmasked(
        ids, attended, np.zeros_like(ids), (boundaries | special).astype(np.int32), boundaries | first, content
    )
    keys = random_bits(seed, np.arange(len(ids)))
    masked_ids, positions, targets, weights = mask_examples(unmasked, keys, options, vocabulary)
    labels = {"masked_lm_ids": targets, "masked_lm_weights": weights}
    arrays = {name: np.asarray(array) for name, array in inputs.items()}
    return {**arrays, "input_ids": masked_ids, "masked_lm_positions": positions}, labels
