"""Spans of characters to tokens and back: answers and entities are marked, and cut, in the original text.

L sequence.
"""

import numpy as np


def find_tokens(offsets: np.ndarray, start: int, end: int) -> slice:
    """Finds the tokens that characters of a text went into.

    Args:
        offsets: int [L, 2], a row of what a tokenizer returns with `return_offsets`; an empty span is a special token
            or padding, and never found. Of a pair, give the rows of the text that is meant.
        start: the first character.
        end: the character after the last one.

    Returns:
        slice. The shortest run of tokens that holds every token with a character of the span.

    Raises:
        ValueError: where no token holds a character of the span; a window of a long text may lie elsewhere.

    Example:

    >>> from albert_tf import AlbertTokenizer
    >>> text = "The Café, 1999, says hello"
    >>> offsets = AlbertTokenizer.english()(text, return_offsets=True)["offsets"][0]
    >>> find_tokens(offsets, 4, 8), cut_text(text, offsets, find_tokens(offsets, 4, 8))
    (slice(2, 3, None), 'Café')
    """
    starts, ends = np.asarray(offsets).T
    inside = np.flatnonzero((starts < end) & (ends > start) & (ends > starts))
    if not start < end or not inside.size:
        raise ValueError(
            f"A span must hold a character of some token. Received: start={start}, end={end} and tokens from "
            f"{starts.min(initial=0)} to {ends.max(initial=0)}; look in the window that holds the span."
        )
    return slice(int(inside[0]), int(inside[-1]) + 1)


def cut_text(text: str, offsets: np.ndarray, tokens: slice) -> str:
    """Cuts the text that tokens came from, as it was written, without the white space around it.

    Args:
        text: the text that was tokenized.
        offsets: int [L, 2], as for `find_tokens`.
        tokens: slice of L, such as from the first to the last token of an answer.

    Returns:
        The part of `text`, empty where the tokens are special ones.
    """
    spans = [(start, end) for start, end in np.asarray(offsets)[tokens].tolist() if end > start]
    return text[spans[0][0] : spans[-1][1]].strip() if spans else ""
