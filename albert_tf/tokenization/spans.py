"""Converts character spans, such as answers and entities, to tokens and back.

L sequence.
"""

import numpy as np


def find_tokens(offsets: np.ndarray, start: int, end: int) -> slice:
    """Finds the tokens of a character span.

    Args:
        offsets: int [L, 2], a row of `offsets` as returned by a tokenizer; empty spans, of special tokens and padding,
            are ignored. For pairs, pass only the offsets of the text in question.
        start: start of the span.
        end: exclusive end of the span.

    Returns:
        slice. The smallest slice with every token that overlaps the span.

    Raises:
        ValueError: no token overlaps the span, which may be outside of this window of a long text.

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
            f"The span must overlap a token. Received: start={start}, end={end} and tokens from "
            f"{starts.min(initial=0)} to {ends.max(initial=0)}; use the window that contains the span."
        )
    return slice(int(inside[0]), int(inside[-1]) + 1)


def trim_span(text: str, start: int, end: int) -> tuple[int, int]:
    """Start and end of a character span without its surrounding white space.

    Example:

    >>> trim_span("The cat sat.", 3, 8)
    (4, 7)
    """
    part = text[start:end]
    start += len(part) - len(part.lstrip())
    return start, start + len(part.strip())


def cut_text(text: str, offsets: np.ndarray, tokens: slice) -> str:
    """Returns the original text of tokens, without surrounding white space.

    Args:
        text: the text that was tokenized.
        offsets: int [L, 2], as for `find_tokens`.
        tokens: slice of L.

    Returns:
        A substring of `text`, empty for special tokens.
    """
    spans = [(start, end) for start, end in np.asarray(offsets)[tokens].tolist() if end > start]
    return text[spans[0][0] : spans[-1][1]].strip() if spans else ""
