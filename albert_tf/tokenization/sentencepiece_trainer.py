"""SentencePiece's trainer behind one function: quiet, the same at every run, with errors that say what to change."""

import io
import re
from collections.abc import Iterable, Iterator, Sequence

import sentencepiece

# SentencePiece sums what its threads found in an order that depends on their number, so that number is fixed.
_NUM_THREADS = 16
_COVERAGES = (0.98, 1.0)


def run_trainer(
    lines: Iterator[str], *, vocab_size: int, surplus: int = 0, character_coverage: float, **settings
) -> bytes:
    """Trains a SentencePiece model.

    Args:
        lines: the text.
        vocab_size: the number of pieces as the user gave it.
        surplus: how many of these SentencePiece does not know of.
        character_coverage: the share of the text's characters that the pieces cover.
        **settings: more of SentencePiece's own settings.

    Returns:
        The serialised model.

    Raises:
        ValueError: if the text is too small or too rich for `vocab_size`, or a setting cannot be.
    """
    lowest, highest = _COVERAGES
    if not lowest <= character_coverage <= highest:
        raise ValueError(
            f"`character_coverage` must lie between {lowest} and {highest}. "
            f"Received: character_coverage={character_coverage!r}."
        )
    if isinstance(vocab_size, bool) or not isinstance(vocab_size, int) or not surplus < vocab_size < 2**31:
        raise ValueError(
            f"`vocab_size` must be a whole number with room for more than special pieces and user-defined symbols. "
            f"Received: vocab_size={vocab_size!r}."
        )
    written, reading_errors = io.BytesIO(), []
    try:
        sentencepiece.SentencePieceTrainer.Train(
            sentence_iterator=_recording_errors(lines, reading_errors),
            model_writer=written,
            vocab_size=vocab_size - surplus,
            character_coverage=character_coverage,
            bos_id=-1,
            eos_id=-1,
            shuffle_input_sentence=True,
            num_threads=_NUM_THREADS,
            minloglevel=2,
            **settings,
        )
    except RuntimeError as error:
        if reading_errors:
            raise reading_errors[0] from None
        raise ValueError(_explain(str(error), vocab_size, surplus)) from error
    finally:
        sentencepiece.set_min_log_level(0)
    return written.getvalue()


def _recording_errors(lines: Iterator[str], errors: list[Exception]) -> Iterator[str]:
    """The lines; SentencePiece would make an error in reading them part of a message of its own."""
    try:
        yield from lines
    except Exception as error:
        errors.append(error)
        raise


def checked_symbols(symbols: Iterable[str], special: Sequence[str]) -> list[str]:
    """Returns user-defined symbols, each once.

    Args:
        symbols: as the user gave them.
        special: the vocabulary's special pieces.

    Returns:
        The symbols in the order in which they were given.

    Raises:
        ValueError: if one is empty, holds white space or is a special piece.

    Example:

    >>> checked_symbols(["@user", "#tag", "@user"], ["[CLS]"])
    ['@user', '#tag']
    """
    symbols = [symbols] if isinstance(symbols, str) else list(dict.fromkeys(symbols))
    for symbol in symbols:
        if symbol.split() != [symbol]:
            raise ValueError(
                "Each of `user_defined_symbols` must be text without white space. "
                f"Received: user_defined_symbols={symbols!r} with {symbol!r}."
            )
        if symbol in special:
            raise ValueError(
                f"`user_defined_symbols` must not name special pieces, which every vocabulary has and no text yields. "
                f"Received: user_defined_symbols={symbols!r} with {symbol!r}; leave it out."
            )
    return symbols


def _explain(message: str, vocab_size: int, surplus: int) -> str:
    """Turns SentencePiece's message into one that says what to change."""
    if largest := re.search(r"too high \(\d+\)\..*<= (\d+)", message):
        return (
            "`vocab_size` must not be larger than what the text can fill. "
            f"Received: vocab_size={vocab_size}; the largest that fits is {int(largest[1]) + surplus}."
        )
    if smallest := re.search(r"smaller than required_chars. -?\d+ vs (\d+)", message):
        return (
            "`vocab_size` must have room for every character of the text. "
            f"Received: vocab_size={vocab_size}; the smallest that fits is {int(smallest[1]) + surplus}, or lower "
            "character_coverage."
        )
    return f"SentencePiece could not train on this text. Received: vocab_size={vocab_size}; it says: {message}"
