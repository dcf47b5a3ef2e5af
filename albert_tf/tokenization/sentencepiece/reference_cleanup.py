"""ALBERT's clean-up of text before SentencePiece, in plain Python: what everything faster is tested against.

The tokenizer itself never runs this over a text: the same rules are compiled into the SentencePiece model (see
`charsmap`). A compiled rule sees one character at a time, so the one rule of `str.lower()` that looks at neighbours is
out of its reach: a capital sigma at the end of a Greek word becomes "σ" there and "ς" here. For the same reason a
combining mark between two parts of one syllable (Hangul jamo, some Indic vowel signs) keeps the parts from being joined
there.
"""

import unicodedata


def clean_text(text: str, *, do_lower_case: bool = True, keep_accents: bool = False) -> str:
    """Cleans one text as the reference does before it calls SentencePiece.

    White space is collapsed first, so a character whose compatibility form holds a space (such as "¨") still gives one.

    Args:
        text: the raw text.
        do_lower_case: lower-case the text. All of Google's English models want this.
        keep_accents: leave characters as they are. By default they are decomposed (NFKD) and combining marks are
            dropped.

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
    """Does the part of `clean_text` that works character by character, leaving white space as it is.

    >>> clean_characters("É  a", do_lower_case=True, keep_accents=False)
    'e  a'
    """
    if not keep_accents:
        decomposed = unicodedata.normalize("NFKD", text)
        text = "".join(character for character in decomposed if not unicodedata.combining(character))
    return text.lower() if do_lower_case else text
