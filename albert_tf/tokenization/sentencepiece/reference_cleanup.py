"""ALBERT's clean-up of text before SentencePiece in plain Python: the reference for tests.

The tokenizer compiles the same rules into the SentencePiece model instead (see `charsmap`). Compiled rules apply to
single characters, with two differences: a capital sigma at the end of a Greek word becomes "σ" there and "ς" here; and
a combining mark between two parts of a syllable (Hangul jamo, some Indic vowel signs) prevents their composition there.
"""

import unicodedata


def clean_text(text: str, *, do_lower_case: bool = True, keep_accents: bool = False) -> str:
    """Cleans a text as the reference does before SentencePiece.

    White space is collapsed first, so characters whose compatibility form has a space (such as "¨") still give one.

    Args:
        text: the raw text.
        do_lower_case: lower-case text, as required by Google's English models.
        keep_accents: do not decompose characters (NFKD) and drop combining marks.

    Example:

    >>> clean_text("  The  Café ﬁrst ")
    'the cafe first'
    >>> clean_text("Café", do_lower_case=False, keep_accents=True)
    'Café'

    References:
        `preprocess_text` in google-research/albert, tokenization.py.
    """
    return clean_characters(" ".join(text.split()), do_lower_case=do_lower_case, keep_accents=keep_accents)


def clean_characters(text: str, *, do_lower_case: bool, keep_accents: bool) -> str:
    """The part of `clean_text` that applies to single characters; white space is not changed.

    >>> clean_characters("É  a", do_lower_case=True, keep_accents=False)
    'e  a'
    """
    if not keep_accents:
        decomposed = unicodedata.normalize("NFKD", text)
        text = "".join(character for character in decomposed if not unicodedata.combining(character))
    return text.lower() if do_lower_case else text
