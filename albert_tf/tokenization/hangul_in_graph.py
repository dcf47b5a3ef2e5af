"""Syllables of Hangul put together inside a TensorFlow graph. B texts, T characters, N characters of all texts."""

# The checker's stubs of TensorFlow know little of ragged tensors.
# pyright: reportAttributeAccessIssue=false, reportArgumentType=false, reportReturnType=false
# pyright: reportOperatorIssue=false

import tensorflow as tf

from albert_tf.tokenization.ragged import follows_in_row, precedes_in_row

# The conjoining letters that Unicode composes, and the syllables: for each leading letter and vowel one without and 27
# with a trailing letter.
_LEADING, _VOWELS, _TRAILING = range(0x1100, 0x1113), range(0x1161, 0x1176), range(0x11A8, 0x11C3)
_SYLLABLES = range(0xAC00, 0xD7A4)
_OF_A_VOWEL = len(_TRAILING) + 1
_BLOCK_OF_LETTERS = 0x11


def compose_syllables(texts: tf.RaggedTensor) -> tf.RaggedTensor:
    """Does what `hangul.compose_syllables` does: int32 [B, (T)] in and out, code points."""
    has_letters = tf.reduce_any(tf.equal(tf.bitwise.right_shift(texts.values, 8), _BLOCK_OF_LETTERS))
    return texts.with_values(tf.cond(has_letters, lambda: _compose(texts), lambda: texts.values))


def _compose(texts: tf.RaggedTensor) -> tf.Tensor:
    """Returns the code points of all texts, int32 [N]: a syllable for its first letter, 0 for its others."""
    letters = texts.values
    starts = _among(letters, _LEADING) & precedes_in_row(texts, _among(letters, _VOWELS))
    vowels = follows_in_row(texts, starts)
    opens = _among(letters, _SYLLABLES) & tf.equal((letters - _SYLLABLES[0]) % _OF_A_VOWEL, 0)
    trailing = _among(letters, _TRAILING) & follows_in_row(texts, vowels | opens)
    # What stands one and two places behind each letter, as far as it belongs to the same syllable.
    vowel = tf.where(vowels, letters - _VOWELS[0], 0)
    end = tf.pad(tf.where(trailing, letters - _TRAILING[0] + 1, 0), [[0, 2]])
    spelled = ((letters - _LEADING[0]) * len(_VOWELS) + tf.pad(vowel, [[0, 1]])[1:]) * _OF_A_VOWEL + end[2:]
    kept = tf.where(vowels | trailing, 0, letters + tf.where(opens, end[1:-1], 0))
    return tf.where(starts, _SYLLABLES[0] + spelled, kept)


def _among(letters: tf.Tensor, codes: range) -> tf.Tensor:
    return (letters >= codes[0]) & (letters <= codes[-1])
