"""Pieces for [MASK], and the order of two segments.

Letters: B texts, L sequence, M masks of a text, K best pieces, V vocabulary.
"""

import warnings
from collections.abc import Iterator, Sequence

import numpy as np

from albert_tf.data.finetuning.encoded import EncodedTexts, encode_texts
from albert_tf.data.finetuning.few_shapes import power_of_two
from albert_tf.tasks.base import TextTask
from albert_tf.tasks.outputs import NUMBER, STRING, Computed, TensorSpec, as_bytes, collect, softmax
from albert_tf.tasks.predictions import MaskPrediction

MASK = "[MASK]"
NO_MASK = -1  # an id that no token has
# Candidates of an exported model's signature.
TOP = 10


class MaskedLM(TextTask):
    """For each text, a tuple with a MaskPrediction for each [MASK], which stands for one piece.

    Args:
        tokenizer: AlbertTokenizer.
        settings: Settings.
        top: K.
        targets: the candidates; None: all pieces. Of a target of several pieces the first one counts, with a warning.
    """

    # Outputs over the vocabulary are large.
    max_tokens = 1024

    def __init__(self, tokenizer, settings, top=TOP, targets=None):
        super().__init__(tokenizer, settings)
        if top < 1:
            raise ValueError(f"`top` must be at least 1. Received: top={top}.")
        self.targets = np.arange(tokenizer.vocab_size) if targets is None else _target_ids(tokenizer, targets)
        self.top = min(top, len(self.targets))

    def encode(self, *texts):
        (texts,) = texts
        encoded = encode_texts(self.tokenizer, texts, None, self.max_length, allow_special=True)
        return MaskedRows(encoded, self.tokenizer.mask_token_id)

    def check(self, encoded, *texts):
        (texts,) = texts
        for text, ids in zip(texts, encoded.encoded.ids):
            if np.count_nonzero(ids == self.tokenizer.mask_token_id) < max(text.count(MASK), 1):
                raise ValueError(f"{no_mask_message(self.max_length)} Received: {text!r}.")

    def decode(self, encoded, computed):
        pieces, by_row = self.tokenizer.pieces, {}
        for part in computed:
            is_used = part.batch["masked_lm_positions"] > 0
            for row, logits, mask in zip(part.rows.tolist(), part.outputs["masked_lm_logits"], is_used):
                probabilities = softmax(logits[mask])  # [M, V]
                order = np.argsort(-probabilities[:, self.targets], axis=1, kind="stable")
                best = self.targets[order[:, : self.top]]  # [M, K]
                by_row[row] = tuple(
                    MaskPrediction(tuple(pieces[index] for index in ids), tuple(values[ids].tolist()))
                    for ids, values in zip(best, probabilities)
                )
        return [by_row[row] for row in range(len(by_row))]

    def arrays(self, predictions):
        shape = (len(predictions), max(map(len, predictions)), self.top)  # [B, M, K]
        pieces, probabilities = np.full(shape, b"", object), np.zeros(shape, np.float32)
        for row, masks in enumerate(predictions):
            for column, mask in enumerate(masks):
                pieces[row, column], probabilities[row, column] = as_bytes(mask.pieces), mask.probabilities
        return {"pieces": pieces, "probabilities": probabilities}

    def specs(self, width):
        shape = (None, None, self.top)
        return {"pieces": TensorSpec(STRING, shape), "probabilities": TensorSpec(NUMBER, shape)}


class SentenceOrder(TextTask):
    """The probability that each text precedes its pair, rather than follows it."""

    inputs = ("text", "text_pair")
    max_tokens = MaskedLM.max_tokens

    def encode(self, *texts):
        first, second = texts
        # One position a row, so that the masked-LM head, which is not needed here, costs little.
        return MaskedRows(encode_texts(self.tokenizer, first, second, self.max_length), NO_MASK)

    def decode(self, encoded, computed):
        return softmax(collect(computed, "sentence_order_logits", len(encoded)))[:, 0].tolist()

    def arrays(self, predictions):
        return {"in_order": np.array(predictions, np.float32)}

    def specs(self, width):
        return {"in_order": TensorSpec(NUMBER, (None,))}


class MaskedRows:
    """Tokenized texts, one row each, with the positions to predict; `albert_tf.tasks.outputs.Rows`.

    Args:
        encoded: EncodedTexts.
        mask: id of [MASK].
    """

    def __init__(self, encoded: EncodedTexts, mask: int):
        self.encoded, self.lengths, self._mask = encoded, encoded.lengths, mask

    def __len__(self) -> int:
        return len(self.lengths)

    def batch(self, rows: np.ndarray, multiple: int | None = 1) -> dict[str, np.ndarray]:
        """The inputs of some rows, padded to the longest of them.

        `masked_lm_positions` int32 [B, M], M being the most masks of a row, at least 1, is 0 where a row has fewer.
        """
        batch = self.encoded.batch(rows, multiple)
        is_mask = batch["input_ids"] == self._mask  # [B, L]
        most = max(1, int(is_mask.sum(axis=1).max()))
        order = np.argsort(~is_mask, axis=1, kind="stable")[:, :most]
        positions = np.where(np.take_along_axis(is_mask, order, axis=1), order, 0).astype(np.int32)
        added = power_of_two(most) - most if multiple is None else 0
        return {**batch, "masked_lm_positions": np.pad(positions, ((0, 0), (0, added)))}


class MaskedInTurn:
    """Each text once for each of its tokens, which is masked; `albert_tf.tasks.outputs.Rows`.

    Args:
        tokenizer: AlbertTokenizer.
        texts: B texts.
        max_length: maximum number of ids.

    References:
        Masked Language Model Scoring, arXiv 1910.14659 (section 2.2).
    """

    def __init__(self, tokenizer, texts: Sequence[str], max_length: int):
        counts = [len(ids) for ids in tokenizer.encode_batch(texts)]
        for text, count in zip(texts, counts):
            if not 1 <= count <= max_length - 2:
                raise ValueError(
                    f"Each text must have 1 to {max_length - 2} pieces to be scored. Received: {text[:60]!r} with "
                    f"{count}; split longer ones."
                )
        self.encoded, self.mask = encode_texts(tokenizer, texts, None, max_length), tokenizer.mask_token_id
        self.text_of_row = np.repeat(np.arange(len(texts)), counts)
        self.places = np.concatenate([np.arange(1, count + 1, dtype=np.int32) for count in counts])
        self.lengths = self.encoded.lengths[self.text_of_row]

    def __len__(self) -> int:
        return len(self.places)

    def batch(self, rows: np.ndarray, multiple: int | None = 1) -> dict[str, np.ndarray]:
        """The inputs of some rows, padded to the longest of them."""
        batch, places = self.encoded.batch(self.text_of_row[rows], multiple), self.places[rows, None]
        np.put_along_axis(batch["input_ids"], places, self.mask, axis=1)
        return {**batch, "masked_lm_positions": places}

    def sums(self, computed: Iterator[Computed]) -> list[float]:
        """The sum of the log probabilities of each text's tokens."""
        sums = np.zeros(self.text_of_row[-1] + 1)
        for part in computed:
            logits = part.outputs["masked_lm_logits"][:, 0].astype(np.float64)  # [B, V]
            shifted = logits - logits.max(axis=1, keepdims=True)
            texts, places = self.text_of_row[part.rows], self.places[part.rows]
            ids = np.array([self.encoded.ids[text][place] for text, place in zip(texts, places)])
            chosen = np.take_along_axis(shifted, ids[:, None], axis=1)[:, 0]
            np.add.at(sums, texts, chosen - np.log(np.exp(shifted).sum(axis=1)))
        return sums.tolist()


def _target_ids(tokenizer, targets: Sequence[str]) -> np.ndarray:
    """The first pieces of words; a target that is written as a piece, with "▁" or "##", is that piece."""
    known, ids = {piece: number for number, piece in enumerate(tokenizer.pieces)}, []
    for target in [targets] if isinstance(targets, str) else targets:
        is_piece = target in known and target.startswith(("▁", "##"))
        encoded = [known[target]] if is_piece else tokenizer.encode(target)
        if not encoded or encoded[0] == tokenizer.unk_token_id:
            raise ValueError(f"`targets` must be words of the vocabulary. Received: {target!r}.")
        if len(encoded) > 1:
            first = tokenizer.pieces[encoded[0]]
            warnings.warn(
                f"The target {target!r} is {len(encoded)} pieces; its first, {first!r}, is scored.", stacklevel=2
            )
        ids.append(encoded[0])
    if not ids:
        raise ValueError("`targets` must have at least one word. Received: none.")
    return np.array(list(dict.fromkeys(ids)))


def no_mask_message(max_length: int) -> str:
    """The error of a text without [MASK], or with one that is cut off."""
    return f"Each text must contain {MASK}, all of them within its first {max_length - 2} pieces."
