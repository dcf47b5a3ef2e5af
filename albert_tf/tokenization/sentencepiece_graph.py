"""SentencePiece inside a TensorFlow graph.

tensorflow-text has two SentencePiece ops. `FastSentencepieceTokenizer` is two to four times as fast, but it is silently
wrong for models other than unigram, and cannot take pieces that stand for bytes or are unused. `SentencepieceTokenizer`
takes every model. Each model gets the fast op where it can have it.

Known limit: where two splits of a text have exactly equal scores ("!!!!" as "!" + "!!!" or "!!!" + "!"), rounding
decides, and it is not the Python library's. The fast op weighs unknown characters and user-defined symbols otherwise,
so it can differ only behind one of these; the general op compares sums in mixed precision and can differ anywhere. On
164,959 lines, half of them Korean under the English vocabulary, that was 17 lines for the fast op and 126 for the
general one.
"""

# The checker's stubs of TensorFlow know little of ragged tensors.
# pyright: reportAttributeAccessIssue=false, reportArgumentType=false, reportReturnType=false

import tensorflow as tf
import tensorflow_text

from albert_tf.tokenization.digit_comma import DigitCommaTable


class SentencePieceInGraph(tf.Module):
    """Pieces of texts in the graph, with the ids that `SentencePieceModel` gives.

    Args:
        model_proto: the serialised SentencePiece model with the clean-up inside.
        digit_comma: the digit-comma rule.
        fast: use the fast op, which takes unigram models without byte pieces and unused ones.
    """

    def __init__(self, model_proto: bytes, digit_comma: DigitCommaTable, *, fast: bool):
        super().__init__()
        self._sentencepiece = _fast_op(model_proto) if fast else _general_op(model_proto)
        self._digit_comma = digit_comma

    def tokenize(self, texts: tf.Tensor) -> tf.RaggedTensor:
        """Turns tf.string [B] into int32 ids [B, (T)], without special ones."""
        ids = self._sentencepiece.tokenize(texts).with_row_splits_dtype(tf.int32)  # [B, (T)]
        if not self._digit_comma.pieces:
            return ids
        table = tf.RaggedTensor.from_row_splits(self._digit_comma.values, self._digit_comma.row_splits, validate=False)
        return ids.with_flat_values(tf.gather(table, ids.flat_values)).merge_dims(1, 2)


def _fast_op(model_proto: bytes) -> tensorflow_text.FastSentencepieceTokenizer:
    return tensorflow_text.FastSentencepieceTokenizer(model_proto)


def _general_op(model_proto: bytes) -> tensorflow_text.SentencepieceTokenizer:
    return tensorflow_text.SentencepieceTokenizer(model=model_proto, out_type=tf.int32)
